//! The account's routes: register, log in, log out, change the password, delete the account.
//!
//! Runs on the edge; parks while a password is hashed and while the store works. A password goes
//! from the request's buffer into memory that is wiped after use, and from there to the lane
//! `crypto`, which hashes it.

use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use super::body::Fields;
use super::call::Call;
use super::cookie::{self, LoginCookie};
use super::report::reply_with;
use super::state::State;
use crate::auth::{
    AccountError, EMAIL_BYTES_MAX, NAME_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, Session,
    TOKEN_LIFE_S, normalised,
};
use crate::http::message::response::JSON;
use crate::http::{Problem, Response};
use crate::views::account::{AccountErased, ErasedRows, LoggedIn, Message, User};
use crate::views::json;

/// `POST /api/auth/register`.
pub fn register(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let mut fields = Fields::of(&call.request)?;
    let email = fields.text("email", EMAIL_BYTES_MAX * 2);
    let normal = normalised(&email);
    if normal.is_none() && !email.is_empty() {
        fields.fault("email", "This is not an e-mail address.");
    }
    let password = new_password(&mut fields, "password");
    let name = name(&mut fields);
    let cookie = LoginCookie::wanted(&mut fields);
    fields.done()?;
    let cookie = cookie.admitted(state, &call.request)?;
    let email = normal.unwrap_or_default();
    let client = call.request.client_address();
    let session = state.auth.register(email, name, password, client);
    let session = session.map_err(|error| about(error, "password"))?;
    logged_in(201, &session, cookie, reply);
    Ok(())
}

/// `POST /api/auth/login`.
pub fn login(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let mut fields = Fields::of(&call.request)?;
    let email = fields.text("email", EMAIL_BYTES_MAX * 2);
    let password = fields.secret("password", PASSWORD_CHARS_MAX);
    let cookie = LoginCookie::wanted(&mut fields);
    fields.done()?;
    let cookie = cookie.admitted(state, &call.request)?;
    // Text that is no e-mail address is answered like an unknown address.
    let email = normalised(&email).unwrap_or(email);
    let session = state.auth.login(&email, password, &call.request)?;
    logged_in(200, &session, cookie, reply);
    Ok(())
}

/// `POST /api/auth/logout`.
pub fn logout(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let everywhere = match call.request.body {
        [] => false,
        _ => {
            let mut fields = Fields::of(&call.request)?;
            let everywhere = fields.flag("everywhere");
            fields.done()?;
            everywhere
        }
    };
    let cleared = cookie::cleared(&call.request);
    let (ended, message) = match everywhere {
        false => {
            (state.auth.logout(call.caller()), "Logged out; this token is refused from now on.")
        }
        true => (
            state.auth.logout_everywhere(call.caller()),
            "Logged out everywhere; every token of this account is refused from now on.",
        ),
    };
    // A browser is logged out even where that could not be stored.
    ended.map_err(|error| Problem::from(error).with("Set-Cookie", cleared.clone()))?;
    reply_and_set(200, &Message { message }, &[cleared], reply);
    Ok(())
}

/// `POST /api/auth/password`.
pub fn password(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let mut fields = Fields::of(&call.request)?;
    let current = fields.secret("current_password", PASSWORD_CHARS_MAX);
    let new = new_password(&mut fields, "new_password");
    let cookie = LoginCookie::wanted(&mut fields);
    fields.done()?;
    let cookie = cookie.admitted(state, &call.request)?;
    let client = call.request.client_address();
    let session = state.auth.change_password(call.caller(), current, new, client);
    let session = session.map_err(|error| about(error, "new_password"))?;
    match cookie {
        Some(_) => logged_in(200, &session, cookie, reply),
        // The cookie's token is among those that were revoked.
        None => {
            let cleared = cookie::cleared(&call.request);
            reply_and_set(200, &view(&session, false), &[cleared], reply);
        }
    }
    Ok(())
}

/// `DELETE /api/auth/account`.
pub fn erase(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let mut fields = Fields::of(&call.request)?;
    let password = fields.secret("password", PASSWORD_CHARS_MAX);
    fields.done()?;
    let client = call.request.client_address();
    let erased = state.auth.erase(call.caller(), password, client)?;
    // No client can ask for the user's cached responses any more, but they must not stay in memory.
    state.portfolio.answers.invalidate(call.caller().id.0);
    let deleted = ErasedRows {
        holdings: erased.portfolio.holdings,
        positions: erased.portfolio.positions,
        pnl_snapshots: erased.portfolio.pnl_snapshots,
        journal_entries: erased.journal_entries,
    };
    let message = "The account and everything stored for it are erased.";
    let cleared = [cookie::cleared(&call.request), cookie::proof_cleared(&call.request)];
    reply_and_set(200, &AccountErased { message, deleted }, &cleared, reply);
    Ok(())
}

/// A password that is refused as too weak is reported as a fault of `field`.
fn about(error: AccountError, field: &'static str) -> Problem {
    let weakness = match &error {
        AccountError::WeakPassword(weakness) => Some(*weakness),
        _ => None,
    };
    let problem = Problem::from(error);
    match weakness {
        Some(weakness) => problem.field(field, format!("This is {}.", weakness.as_str())),
        None => problem,
    }
}

fn new_password(fields: &mut Fields<'_>, field: &'static str) -> SecretString {
    let password = fields.secret(field, PASSWORD_CHARS_MAX);
    let chars = password.expose_secret().chars().count();
    if (1..PASSWORD_CHARS_MIN).contains(&chars) {
        fields.fault(field, format!("At least {PASSWORD_CHARS_MIN} characters."));
    }
    password
}

/// The user's name, trimmed; `None` if it is empty.
fn name(fields: &mut Fields<'_>) -> Option<String> {
    let name = fields.optional_text("name", NAME_CHARS_MAX)?;
    if name.chars().any(char::is_control) {
        fields.fault("name", "No control characters.");
    }
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// With a cookie the token is in no place that a script can read.
fn logged_in(
    status: u16,
    session: &Session,
    cookie: Option<LoginCookie>,
    reply: &mut Response<'_>,
) {
    match cookie {
        Some(cookie) => {
            reply_and_set(status, &view(session, true), &cookie.set(session), reply);
        }
        None => reply_with(status, &view(session, false), reply),
    }
}

fn view(session: &Session, by_cookie: bool) -> LoggedIn<'_> {
    let user = &session.user;
    LoggedIn {
        access_token: (!by_cookie).then_some(&*session.token),
        token_type: "Bearer",
        expires_in: TOKEN_LIFE_S,
        user: User { id: user.id.0, email: &user.email, name: user.name.as_deref() },
    }
}

/// Sends `view` with a `Set-Cookie` for each of `cookies`.
fn reply_and_set(status: u16, view: &impl Serialize, cookies: &[String], reply: &mut Response<'_>) {
    json::write(reply.body(), view);
    let mut headers = vec![("Cache-Control", "no-store")];
    headers.extend(cookies.iter().map(|cookie| ("Set-Cookie", cookie.as_str())));
    reply.send(status, JSON, &headers);
}
