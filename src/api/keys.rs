//! `/api/keys`: the account's API keys are made, listed and revoked, with a login alone. The text
//! of a key is in the answer that makes it and nowhere else.
//!
//! Runs on the edge; parks for the store, and while the password is checked.

use jiff::Timestamp;

use crate::api::body::Fields;
use crate::api::call::{Call, Handled};
use crate::api::replies::{NO_STORE, reply_with, show};
use crate::api::state::State;
use crate::auth::{NewKey, PASSWORD_CHARS_MAX, id_text};
use crate::base::words::Words;
use crate::base::{Scope, Scopes};
use crate::http::document::coding::etag;
use crate::http::{Problem, Response, Verdict};
use crate::store::StoredKey;
use crate::views::account::{ApiKey, ApiKeys, NewApiKey};
use crate::views::values::{self, Instant};

/// Longest name of a key.
const NAME_CHARS_MAX: usize = 60;
/// Longest time as text: RFC 3339 with all digits of a second, and room.
const TIME_CHARS_MAX: usize = 40;

/// `GET /api/keys`.
pub(super) fn list(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let keys = state.auth.list_keys(call.caller().id)?;
    show(&view(&keys), call, response)
}

/// `POST /api/keys`.
pub(super) fn make(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let mut fields = Fields::of(call.request)?;
    let name = fields.name("name", NAME_CHARS_MAX);
    let scopes = scopes(&mut fields);
    let expires = fields.optional_text("expires_at", TIME_CHARS_MAX);
    let expires_ms = expires.and_then(|text| match text.parse::<Timestamp>() {
        Ok(at) if at > state.clock.now() => Some(at.as_millisecond()),
        Ok(_) => {
            fields.fault("expires_at", "This is past.");
            None
        }
        Err(_) => {
            fields.fault("expires_at", "This field must be a time as a string, RFC 3339.");
            None
        }
    });
    let password = fields.password("current_password", PASSWORD_CHARS_MAX);
    fields.done()?;
    state.admit_write(call.caller())?;
    let given = call.request.preconditions();
    if !given.is_empty() {
        let keys = state.auth.list_keys(call.caller().id)?;
        let present = etag(&values::to_vec(&view(&keys)));
        if given.judge(Some(present.as_bytes()))? == Verdict::NotModified {
            return Err(Problem::precondition_failed());
        }
    }
    let new = NewKey {
        name,
        scopes,
        expires_ms,
    };
    let client = call.request.client_address();
    let (key, text) = state.auth.make_key(call.caller(), new, password, client)?;
    reply_with(
        201,
        &NewApiKey {
            key: &text,
            about: of(&key),
        },
        response,
    );
    Ok(())
}

/// `DELETE /api/keys/{id}`.
pub(super) fn revoke(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    state.admit_write(call.caller())?;
    let id = id_text(call.path_id.unwrap_or_default().cast_unsigned());
    if !state.auth.revoke_key(call.caller(), &id)? {
        return Err(Problem::new(404, "key_not_found", "You have no API key with this id."));
    }
    response.body();
    response.send(204, "", &[NO_STORE]);
    Ok(())
}

/// At least one scope, each once.
fn scopes(fields: &mut Fields<'_>) -> Scopes {
    const NAME: &str = "scopes";
    let words = fields.texts(NAME, Scope::ALL.len(), NAME_CHARS_MAX);
    let known: Option<Vec<Scope>> = words
        .iter()
        .map(|word| <Scope as Words>::parse(word))
        .collect();
    let scopes: Scopes = known.iter().flatten().copied().collect();
    if known.is_none() {
        let all = Scope::ALL.map(Scope::as_str).join(", ");
        fields.fault(NAME, format!("Each is one of {all}."));
    } else if words.is_empty() {
        fields.fault(NAME, "At least one of them.");
    } else if scopes.iter().count() < words.len() {
        fields.fault(NAME, "Each once.");
    }
    scopes
}

fn view(keys: &[StoredKey]) -> ApiKeys<'_> {
    ApiKeys {
        keys: keys.iter().map(of).collect(),
    }
}

pub(super) fn of(key: &StoredKey) -> ApiKey<'_> {
    ApiKey {
        id: &key.id,
        name: &key.name,
        scopes: key.scopes.iter().collect(),
        created_at: Instant::of_ms(key.created_ms),
        expires_at: key.expires_ms.map(Instant::of_ms),
        last_used_at: key.used_ms.map(Instant::of_ms),
        last_used_from: key.used_from.as_deref(),
    }
}
