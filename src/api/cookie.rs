//! The cookie that a login sets where a page asks for it: scripts cannot read it, and no other
//! site's request carries it.

use super::body::Fields;
use super::state::State;
use crate::auth::{COOKIE, EARLIER_COOKIE, PROOF_LIFE_S, Session, TOKEN_LIFE_S};
use crate::http::{Problem, Request};

/// Where the proof of an earlier login is sent: to the next login alone.
const EARLIER_PATH: &str = "/api/auth/login";

/// A login that answers with a cookie in place of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginCookie {
    /// Only sent over TLS. So exactly where the page came by TLS: over plain HTTP to the name of
    /// another machine, browsers drop a cookie that says it.
    secure: bool,
}

/// Whether the client asks for a cookie.
#[derive(Debug, Clone, Copy)]
pub struct Wanted(bool);

impl LoginCookie {
    /// Reads the member `cookie` of a body.
    pub fn wanted(fields: &mut Fields<'_>) -> Wanted {
        Wanted(fields.flag("cookie"))
    }

    /// The values of `Set-Cookie`: with the session's token, and with the proof of this login that
    /// stays when the token has ended.
    pub fn set(self, session: &Session) -> [String; 2] {
        [
            written(COOKIE, &session.token, "/", TOKEN_LIFE_S, self.secure),
            written(EARLIER_COOKIE, &session.proof, EARLIER_PATH, PROOF_LIFE_S, self.secure),
        ]
    }
}

impl Wanted {
    /// The cookie to set; `None` if the client does not want one.
    ///
    /// # Errors
    /// 403 for a page of another site: it could log its visitors in to an account of its own, who
    /// would then leave their data there.
    pub fn admitted(
        self,
        state: &State,
        request: &Request<'_>,
    ) -> Result<Option<LoginCookie>, Problem> {
        if !self.0 {
            return Ok(None);
        }
        let origin = request.origin();
        if origin == Some(b"null") || !state.cors().trusts(request) {
            let detail = "A login by cookie must come from a page of this site.";
            return Err(Problem::new(403, "cross_site_request", detail));
        }
        let secure = is_secure(request);
        if secure && !state.cors().is_from_here(request) {
            let detail = "The page came by https from another name than the Host of this request. \
                          The proxy in front must pass the header Host on unchanged.";
            return Err(Problem::new(403, "cross_site_request", detail));
        }
        Ok(Some(LoginCookie { secure }))
    }
}

/// The value of `Set-Cookie` that deletes the token.
pub fn cleared(request: &Request<'_>) -> String {
    written(COOKIE, "", "/", 0, is_secure(request))
}

/// The same of the proof of an earlier login, for an account that is gone.
pub fn proof_cleared(request: &Request<'_>) -> String {
    written(EARLIER_COOKIE, "", EARLIER_PATH, 0, is_secure(request))
}

/// Whether the page came by TLS. Browsers name its origin in every POST and DELETE by script, so
/// no header of a proxy has to be trusted.
fn is_secure(request: &Request<'_>) -> bool {
    request.origin().is_some_and(|origin| origin.starts_with(b"https://"))
}

fn written(name: &str, value: &str, path: &str, life_s: i64, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{name}={value}; HttpOnly; SameSite=Strict; Path={path}; Max-Age={life_s}{secure}")
}
