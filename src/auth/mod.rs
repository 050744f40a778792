//! Accounts, passwords and tokens.
//!
//! [`Auth::identify`] runs on the edge for each request of a user's route, and normally reads only
//! memory. All other calls (`accounts`) park while a password is hashed or the store is read. The
//! database's incarnation, the accounts and the revocations are loaded from the store at start, and
//! then follow its changes (`changes`). Until they are loaded, no token is accepted: a broken disk
//! must not make a revoked token valid again.

mod accounts;
mod api_keys;
mod changes;
mod changes_bell;
mod email;
pub(crate) mod endings;
mod followed;
mod identity;
mod key_form;
pub mod keys;
pub(crate) mod known_networks;
pub(crate) mod passwords;
pub(crate) mod revocations;
pub(crate) mod throttle;
pub(crate) mod token_epochs;
mod tokens;
mod upkeep;

pub(crate) use crate::auth::changes_bell::ChangesBell;
pub(crate) use crate::auth::key_form::PREFIX;
pub use accounts::Session;
pub(crate) use accounts::{
    AccountError, NAME_CHARS_MAX, NewKey, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, refuse_weak,
};
pub(crate) use api_keys::{ApiKey, ApiKeys, KeyRefusal, NoKey};
pub(crate) use changes::{ChangesParts, ChangesReading, start_changes};
pub(crate) use email::{EMAIL_BYTES_MAX, Email};
pub(crate) use identity::{
    Auth, AuthError, COOKIE, Caller, EARLIER_COOKIE, PreparedAuth, Unidentified,
};
pub(crate) use key_form::{holds_key, id_text, number};
pub(crate) use keys::KeyError;
pub(crate) use passwords::{CryptoError, Weakness, hash_here};
pub(crate) use tokens::{PROOF_LIFE_S, TOKEN_LIFE_S};
