//! (what this file is)

use crate::auth::keys::KeyError;
use std::io;

/// Why accounts could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("{0}")]
    System(#[from] io::Error),
}
