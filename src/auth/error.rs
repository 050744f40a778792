//! Errors of authentication at start.

use std::io;

use crate::auth::keys::KeyError;

/// Why authentication could not be started.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("{0}")]
    System(#[from] io::Error),
}
