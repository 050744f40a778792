//! Errors of authentication at start.

use std::io;

use crate::auth::keys::KeyError;

/// Why authentication could not be started.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("{0}")]
    Key(#[from] KeyError),
    /// The other nodes would refuse this one's tokens, and it theirs.
    #[error(
        "JWT_SECRET (fingerprint {own}) is another than the one that nodes of this database sign \
         with (fingerprint {recorded}): give every node the same one; to change it, name the \
         former one in JWT_PREVIOUS_SECRETS; bhav renew-identity forgets it and ends every login"
    )]
    OtherSecret { own: String, recorded: String },
    #[error("{0}")]
    System(#[from] io::Error),
}
