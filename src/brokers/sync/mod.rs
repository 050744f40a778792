//! What users' syncs go through before a broker is called: limits of keys, users and networks.
//!
//! Runs on the broker's lane, and on the edge before it.

pub(crate) mod guard;
pub(crate) mod key_limiter;
