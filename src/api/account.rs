//! The account's routes: register, log in, log out, change the password, delete the account.
//!
//! Runs on the edge; parks while a password is hashed and while the store works. A password goes
//! from the request's buffer into memory that is wiped after use, and from there to the lane
//! `crypto`, which hashes it.

use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use crate::api::body::Fields;
use crate::api::call::{Call, Handled};
use crate::api::errors;
use crate::api::replies::{NO_STORE, reply_with};
use crate::api::state::State;
use crate::auth::{
    AccountError, COOKIE, EARLIER_COOKIE, EMAIL_BYTES_MAX, Email, NAME_CHARS_MAX,
    PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, PROOF_LIFE_S, Session, TOKEN_LIFE_S,
};
use crate::base::visible;
use crate::http::document::variants::JSON;
use crate::http::{Problem, Request, Response};
use crate::views::account::{AccountErased, LoggedIn, Message, User};
use crate::views::values;

/// `POST /api/auth/register`.
pub(super) fn register(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let mut fields = Fields::of(call.request)?;
    let email = fields.text("email", EMAIL_BYTES_MAX * 2);
    let parsed = Email::parse(&email);
    if let Err(why) = &parsed
        && !email.is_empty()
    {
        fields.fault("email", why.to_string());
    }
    let password = new_password(&mut fields, "password");
    let name = name(&mut fields);
    let wants_cookie = fields.flag("cookie");
    fields.done()?;
    let cookie = LoginCookie::admitted(wants_cookie, state, call.request)?;
    let email = parsed.unwrap_or_else(|_| Email::given(&email));
    let client = call.request.client_address();
    let session = state.auth.register(&email, name, password, client);
    let session = session.map_err(|error| about(error, "password"))?;
    logged_in(201, &session, cookie, response);
    Ok(())
}

/// `POST /api/auth/login`.
pub(super) fn login(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let mut fields = Fields::of(call.request)?;
    let email = fields.text("email", EMAIL_BYTES_MAX * 2);
    let password = fields.password("password", PASSWORD_CHARS_MAX);
    let wants_cookie = fields.flag("cookie");
    fields.done()?;
    let cookie = LoginCookie::admitted(wants_cookie, state, call.request)?;
    // Text that is no e-mail address is answered like an unknown address.
    let email = Email::given(&email);
    let session = state.auth.login(&email, password, call.request)?;
    logged_in(200, &session, cookie, response);
    Ok(())
}

/// `POST /api/auth/logout`.
pub(crate) fn logout(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let (everywhere, keys) = match call.request.body {
        [] => (false, false),
        _ => {
            let mut fields = Fields::of(call.request)?;
            let everywhere = fields.flag("everywhere");
            let keys = fields.flag("keys");
            if keys && !everywhere {
                fields.fault("keys", "API keys end with `everywhere` alone.");
            }
            fields.done()?;
            (everywhere, keys)
        }
    };
    // The account of a public demo is everybody's.
    if everywhere && state.is_read_only {
        return Err(errors::read_only("OPTIONS, POST".to_owned()));
    }
    let cleared = cleared(call.request);
    let ended = match everywhere {
        false => {
            let logins = state.auth.logins_beside(call.caller(), call.request);
            state.auth.logout(&logins)
        }
        true => state.auth.logout_everywhere(call.caller(), keys),
    };
    let message = match (everywhere, keys) {
        (false, _) => "Logged out; this token is refused from now on.",
        (true, false) => {
            "Logged out everywhere; every token of this account is refused from now on."
        }
        (true, true) => {
            "Logged out everywhere; every token and every API key of this account is refused from \
             now on."
        }
    };
    // The browser's cookie is deleted even if the logout could not be stored.
    ended.map_err(|error| Problem::from(error).with("Set-Cookie", cleared.clone()))?;
    reply_and_set(200, &Message { message }, &[cleared], response);
    Ok(())
}

/// `POST /api/auth/password`.
pub(super) fn password(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let mut fields = Fields::of(call.request)?;
    let current = fields.password("current_password", PASSWORD_CHARS_MAX);
    let new = new_password(&mut fields, "new_password");
    let wants_cookie = fields.flag("cookie");
    fields.done()?;
    let cookie = LoginCookie::admitted(wants_cookie, state, call.request)?;
    let client = call.request.client_address();
    let session = state
        .auth
        .change_password(call.caller(), current, new, client);
    let session = session.map_err(|error| about(error, "new_password"))?;
    match cookie {
        Some(_) => logged_in(200, &session, cookie, response),
        // The cookie's token is among those that were revoked.
        None => {
            let cleared = cleared(call.request);
            reply_and_set(200, &view(&session, false), &[cleared], response);
        }
    }
    Ok(())
}

/// `DELETE /api/auth/account`.
pub(super) fn erase(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let mut fields = Fields::of(call.request)?;
    let password = fields.password("password", PASSWORD_CHARS_MAX);
    fields.done()?;
    let client = call.request.client_address();
    let deleted = state.auth.erase(call.caller(), password, client)?;
    // No client can request the user's cached responses any more, but they must not stay in memory.
    state.portfolio.responses.invalidate(call.caller().id.0);
    let message = "The account and everything stored for it are erased.";
    let cleared = [cleared(call.request), proof_cleared(call.request)];
    reply_and_set(200, &AccountErased { message, deleted }, &cleared, response);
    Ok(())
}

/// A password that is refused as too weak is reported as a fault of `field`.
fn about(error: AccountError, field: &'static str) -> Problem {
    let AccountError::WeakPassword(weakness) = error else {
        return error.into();
    };
    Problem::from(error).field(field, format!("This is {}.", weakness.as_str()))
}

fn new_password(fields: &mut Fields<'_>, field: &'static str) -> SecretString {
    let password = fields.password(field, PASSWORD_CHARS_MAX);
    // Counted as it is hashed.
    let chars = visible::composed(password.expose_secret()).chars().count();
    if (1..PASSWORD_CHARS_MIN).contains(&chars) {
        fields.fault(field, format!("At least {PASSWORD_CHARS_MIN} characters."));
    }
    password
}

/// The user's name as people see it; `None` if it is empty.
fn name(fields: &mut Fields<'_>) -> Option<String> {
    let given = fields.optional_text("name", NAME_CHARS_MAX)?;
    Some(fields.seen("name", &given)).filter(|name| !name.is_empty())
}

/// Sends the token in the body or, so that no script can read it, as a cookie.
fn logged_in(
    status: u16,
    session: &Session,
    cookie: Option<LoginCookie>,
    response: &mut Response<'_>,
) {
    match cookie {
        Some(cookie) => {
            reply_and_set(status, &view(session, true), &cookie.set(session), response);
        }
        None => reply_with(status, &view(session, false), response),
    }
}

fn view(session: &Session, by_cookie: bool) -> LoggedIn<'_> {
    let user = &session.user;
    LoggedIn {
        access_token: (!by_cookie).then_some(&*session.token),
        token_type: "Bearer",
        expires_in: TOKEN_LIFE_S,
        user: User {
            id: user.id.0,
            email: &user.email,
            name: user.name.as_deref(),
        },
    }
}

/// Sends `view` with a `Set-Cookie` for each of `cookies`.
fn reply_and_set(
    status: u16,
    view: &impl Serialize,
    cookies: &[String],
    response: &mut Response<'_>,
) {
    values::write(response.body(), view);
    let mut headers = vec![NO_STORE];
    headers.extend(cookies.iter().map(|cookie| ("Set-Cookie", cookie.as_str())));
    response.send(status, JSON, &headers);
}

// ---- Cookie
//
// The cookie that a login sets if the page asks for one. Scripts cannot read it, and requests from
// other sites do not carry it.

/// Path to which a browser sends the proof of an earlier login: only the next login.
const EARLIER_PATH: &str = "/api/auth/login";

/// A login that answers with a cookie instead of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoginCookie {
    /// Whether the cookie has `Secure`. Set exactly if the page came over TLS, because over plain
    /// HTTP from another machine browsers drop such a cookie.
    secure: bool,
}

impl LoginCookie {
    /// The values of `Set-Cookie`: the session's token, and the proof of this login, which outlives
    /// the token.
    fn set(self, session: &Session) -> [String; 2] {
        [
            written(COOKIE, &session.token, "/", TOKEN_LIFE_S, self.secure),
            written(EARLIER_COOKIE, &session.proof, EARLIER_PATH, PROOF_LIFE_S, self.secure),
        ]
    }

    /// The cookie to set; `None` if the client does not want one.
    ///
    /// # Errors
    /// 403 for a page of another site. It could log its visitors in to its own account, where they
    /// would leave their data.
    fn admitted(
        is_wanted: bool,
        state: &State,
        request: &Request<'_>,
    ) -> Result<Option<Self>, Problem> {
        if !is_wanted {
            return Ok(None);
        }
        let origin = request.origin();
        if origin == Some(b"null") || !state.cors.load().trusts(request) {
            return Err(errors::cross_site(request, "A login by cookie"));
        }
        let secure = is_secure(request);
        if secure && !state.cors.load().is_from_here(request) {
            return Err(errors::cross_site(request, "A login by cookie"));
        }
        Ok(Some(Self { secure }))
    }
}

/// The value of `Set-Cookie` that deletes the token.
pub(super) fn cleared(request: &Request<'_>) -> String {
    written(COOKIE, "", "/", 0, is_secure(request))
}

/// The value of `Set-Cookie` that deletes the proof of an earlier login, for an erased account.
pub(crate) fn proof_cleared(request: &Request<'_>) -> String {
    written(EARLIER_COOKIE, "", EARLIER_PATH, 0, is_secure(request))
}

/// Whether the page came over TLS. Browsers send its origin with every POST and DELETE by script,
/// so no proxy's header has to be trusted.
fn is_secure(request: &Request<'_>) -> bool {
    request
        .origin()
        .is_some_and(|origin| origin.starts_with(b"https://"))
}

fn written(name: &str, value: &str, path: &str, life_s: i64, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{name}={value}; HttpOnly; SameSite=Strict; Path={path}; Max-Age={life_s}{secure}")
}
