//! `GET /api/auth/session`: the user who is logged in.
//!
//! Always 200: a page asks at every visit, and a guest is no error. Parks only to read the user of
//! a valid token from the store.

use crate::api::call::{Call, Handled};
use crate::api::errors;
use crate::api::replies::show;
use crate::api::state::State;
use crate::auth::{Caller, Unidentified};
use crate::http::{Problem, Response};
use crate::store::{StoreError, User};
use crate::views::account::{LoginPages, SessionKey, SessionState, SessionUser};
use crate::views::values::Instant;
use crate::web::Site;

/// `GET /api/auth/session`.
pub(super) fn read(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let caller = match &call.caller {
        Some(owner) => Some(owner.clone()),
        None => caller(state, call)?,
    };
    let key = call.key();
    let user = match &caller {
        Some(caller) => user(state, caller)?,
        None => None,
    };
    let shown = user.as_ref().map(|user| SessionUser {
        id: user.id.0,
        email: key.is_none().then_some(&*user.email),
        name: user.name.as_deref(),
    });
    let expires_ms = match key {
        Some(key) => key.expires_ms,
        None => caller
            .as_ref()
            .map(|caller| caller.expires_s.saturating_mul(1_000)),
    };
    let view = SessionState {
        user: shown,
        key: key.map(|key| SessionKey {
            id: &key.id,
            name: &key.name,
            scopes: key.scopes.iter().collect(),
        }),
        expires_at: expires_ms.filter(|_| user.is_some()).map(Instant::of_ms),
        refused: if caller.is_none() {
            refused(state, call)
        } else {
            None
        },
        registration: if state.auth.is_registration_open() {
            "open"
        } else {
            "closed"
        },
        version: env!("CARGO_PKG_VERSION"),
        web: state.site.map(Site::version),
        login_pages: state.login_pages.as_ref().map(LoginPages::of),
    };
    show(&view, call, response)
}

/// `None` for a guest, and for a token that is refused.
fn caller(state: &State, call: &Call<'_>) -> Result<Option<Caller>, Problem> {
    match state.auth.identify(call.request) {
        Ok(caller) => Ok(Some(caller)),
        Err(unready @ Unidentified::Unready) => Err(errors::unidentified(unready)),
        Err(_) => Ok(None),
    }
}

/// Why the request's cookies are refused, where another login would not help.
fn refused(state: &State, call: &Call<'_>) -> Option<&'static str> {
    match state.auth.identify(call.request) {
        Err(why @ (Unidentified::Ambiguous | Unidentified::Crowded)) => {
            errors::cookies_refused(why)
        }
        _ => None,
    }
}

fn user(state: &State, caller: &Caller) -> Result<Option<User>, StoreError> {
    let found = state.store.user_by_id(caller.id)?;
    Ok(found
        .filter(|secrets| !secrets.disabled)
        .map(|secrets| secrets.user))
}
