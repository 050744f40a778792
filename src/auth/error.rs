//! What can go wrong with accounts at the start.

use std::io;

use crate::auth::keys::KeyError;

/// Why accounts could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("{0}")]
    System(#[from] io::Error),
}
