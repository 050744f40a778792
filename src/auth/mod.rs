//! Who is calling, and how one becomes somebody.
//!
//! [`Auth::identify`] runs on the edge for each request of a user's route: from memory alone, never
//! waiting. Everything else here (`accounts`) parks, for a hash or for the store. Which database it
//! is, which accounts there are and what is revoked is loaded from the store at start; until that
//! has worked nobody is identified, because a token that was revoked must not come back to life
//! with a broken disk.

mod accounts;
mod care;
pub(crate) mod common_passwords;
mod email;
mod error;
mod hs256;
mod identity;
mod keys;
pub(crate) mod known_networks;
mod passwords;
pub(crate) mod revocations;
mod tokens;
mod users;

pub use accounts::{
    AccountError, NAME_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, Session, refuse_weak,
};
pub use common_passwords::Weakness;
pub use email::{EMAIL_BYTES_MAX, normalised};
pub use error::AuthError;
pub use identity::{Auth, AuthCounts, Caller, PreparedAuth, Unidentified};
pub use keys::{KeyError, KeyState};
pub use passwords::{CryptoError, hash_here};
pub use tokens::{TOKEN_BYTES_MAX, TOKEN_LIFE_S};
