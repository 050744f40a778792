//! Row 5: who is calling.

pub mod throttle;

use crate::http::Request;
use crate::store::AccountId;

/// The user behind a request, as its token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub id: AccountId,
    /// The token's `jti`.
    pub token_id: String,
    /// When the token expires, Unix seconds.
    pub expires_s: i64,
    /// The token came in the cookie, so a foreign page may have sent it.
    pub by_cookie: bool,
}

/// Why a request has no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unidentified {
    /// No token was sent.
    Missing,
    /// Malformed, expired, revoked, or signed by nobody we know.
    Invalid,
}

/// Tokens, passwords and their limits.
pub struct Auth {}

impl Auth {
    /// The caller, from memory alone.
    ///
    /// # Errors
    /// [`Unidentified`].
    pub fn identify(&self, _request: &Request<'_>) -> Result<Caller, Unidentified> {
        Err(Unidentified::Missing)
    }
}
