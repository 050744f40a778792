//! `GET /api/auth/session`: who is logged in.
//!
//! Always 200: a page asks at every visit, and a guest is no error. Parks only to read the user of
//! a valid token from the store.

use super::broker_status::show;
use super::call::Call;
use super::state::State;
use crate::auth::{Caller, Unidentified};
use crate::http::{Problem, Response};
use crate::store::{StoreError, User};
use crate::views::account::{self, LoginPages, SessionState};
use crate::views::values::Instant;
use crate::web::Site;

/// `GET /api/auth/session`.
pub fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let caller = caller(state, call)?;
    let user = match &caller {
        Some(caller) => user(state, caller)?,
        None => None,
    };
    let shown = user.as_ref().map(|user| account::User {
        id: user.id.0,
        email: &user.email,
        name: user.name.as_deref(),
    });
    let expires = caller
        .filter(|_| user.is_some())
        .and_then(|caller| jiff::Timestamp::from_second(caller.expires_s).ok().map(Instant));
    let view = SessionState {
        user: shown,
        expires_at: expires,
        registration: if state.auth.is_registration_open() { "open" } else { "closed" },
        version: env!("CARGO_PKG_VERSION"),
        web: state.site.map(Site::version),
        login_pages: LoginPages { a: &state.login_pages[0], b: &state.login_pages[1] },
    };
    show(&view, call, reply)
}

/// `None` for a guest, and for a token that is refused.
fn caller(state: &State, call: &Call<'_>) -> Result<Option<Caller>, Problem> {
    match state.auth.identify(&call.request) {
        Ok(caller) => Ok(Some(caller)),
        Err(Unidentified::Missing | Unidentified::Invalid) => Ok(None),
        Err(unready @ Unidentified::Unready) => Err(super::errors::unidentified(unready)),
    }
}

fn user(state: &State, caller: &Caller) -> Result<Option<User>, StoreError> {
    let found = state.store.user_by_id(caller.id)?;
    Ok(found.filter(|secrets| !secrets.disabled).map(|secrets| secrets.user))
}
