//! The cookie that a login sets where a page asks for it: scripts cannot read it, and no other
//! site's request carries it.

use super::body::Fields;
use super::state::State;
use crate::auth::{COOKIE, TOKEN_LIFE_S};
use crate::http::{Problem, Request};

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

    /// The value of `Set-Cookie` with this token.
    pub fn set(self, token: &str) -> String {
        written(token, TOKEN_LIFE_S, self.secure)
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

/// The value of `Set-Cookie` that deletes the cookie.
pub fn cleared(request: &Request<'_>) -> String {
    written("", 0, is_secure(request))
}

/// Whether the page came by TLS. Browsers name its origin in every POST and DELETE by script, so
/// no header of a proxy has to be trusted.
fn is_secure(request: &Request<'_>) -> bool {
    request.origin().is_some_and(|origin| origin.starts_with(b"https://"))
}

fn written(token: &str, life_s: i64, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={life_s}{secure}")
}
