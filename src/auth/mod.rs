//! Accounts, passwords and tokens.
//!
//! [`Auth::identify`] runs on the edge for each request of a user's route, and reads memory. All
//! other calls (`accounts`) park while a password is hashed or the store is read. The database's
//! incarnation, the accounts and the revocations are loaded from the store at start, and then
//! follow its changes (`changes`). Until they are loaded, no token is accepted: a broken disk must
//! not make a revoked token valid again.

mod accounts;
mod care;
mod changes;
pub(crate) mod common_passwords;
mod email;
mod error;
mod hs256;
mod identity;
mod keys;
pub(crate) mod known_networks;
mod passwords;
pub(crate) mod revocations;
pub mod settings;
mod tokens;
mod users;

pub use accounts::{
    AccountError, NAME_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, Session, refuse_weak,
};
pub use changes::{ChangesBell, ChangesParts, ChangesReader, ChangesReading};
pub use common_passwords::Weakness;
pub use email::{EMAIL_BYTES_MAX, normalised};
pub use error::AuthError;
pub use identity::{Auth, AuthCounts, COOKIE, Caller, EARLIER_COOKIE, PreparedAuth, Unidentified};
pub use keys::{KeyError, KeyState};
pub use passwords::{CryptoError, hash_here};
pub use tokens::{PROOF_LIFE_S, TOKEN_BYTES_MAX, TOKEN_LIFE_S};
