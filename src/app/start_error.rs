//! Why the service did not start, and the exit code that tells whether a restart can help.

use std::io;

use crate::auth::{AuthError, KeyError};
use crate::brokers::call::transport::BadUrl;
use crate::http::ListenError;
use crate::market::DataError;
use crate::ops::Exit;
use crate::store::OpenError;

#[cfg(feature = "engines")]
use crate::config::check::NoSharedKey;

#[cfg(feature = "engines")]
use crate::nodes::valkey::Unusable;

/// Why the service did not start, with the cure if it is not obvious.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("BHAV_LISTEN: {0}")]
    Listen(#[from] ListenError),
    #[error("BHAV_ADMIN_LISTEN: {0}")]
    AdminListen(ListenError),
    #[error("state directory {path}: {source}{}", cure(source))]
    StateDir { path: String, source: io::Error },
    #[error("state directory {path} is in use by another instance")]
    StateInUse { path: String },
    #[error("{0}")]
    MarketData(#[from] DataError),
    #[error("{0}")]
    Url(#[from] BadUrl),
    /// A newer schema or a foreign file: only the operator can decide.
    #[error("{0}")]
    Store(#[from] OpenError),
    #[error("{0}")]
    Auth(#[from] AuthError),
    #[cfg(feature = "engines")]
    #[error("{0}")]
    SharedCache(#[from] Unusable),
    #[cfg(feature = "engines")]
    #[error("{0}")]
    NoSharedKey(#[from] NoSharedKey),
    /// The settings are checked before, so this caller skipped the check.
    #[cfg(not(feature = "engines"))]
    #[error("{setting}={value} needs a program built with --features engines")]
    NotBuiltIn {
        setting: &'static str,
        value: String,
    },
    #[error("the system refuses a thread or a descriptor: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    /// The exit code that tells a supervisor whether a restart can help.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Listen(error) | Self::AdminListen(error) => match error {
                ListenError::BadAddress(_) | ListenError::NotASocket { .. } => Exit::Usage,
                ListenError::Io { source, .. } => Exit::of_io(source, Exit::Unavailable),
                _ => Exit::Unavailable,
            },
            Self::MarketData(DataError::Unreadable { cause, .. }) => {
                Exit::of_io(cause, Exit::Usage)
            }
            Self::MarketData(_) | Self::Url(_) => Exit::Usage,
            #[cfg(feature = "engines")]
            Self::SharedCache(Unusable::System(_)) => Exit::Internal,
            #[cfg(feature = "engines")]
            Self::SharedCache(_) | Self::NoSharedKey(_) => Exit::Usage,
            #[cfg(not(feature = "engines"))]
            Self::NotBuiltIn { .. } => Exit::Usage,
            Self::Store(OpenError::System(_)) => Exit::Internal,
            Self::Store(_) => Exit::Usage,
            Self::StateInUse { .. } => Exit::Unavailable,
            Self::StateDir { source, .. }
            | Self::Auth(AuthError::Key(KeyError::Unreadable { source, .. })) => {
                Exit::of_io(source, Exit::StateDir)
            }
            Self::Auth(AuthError::System(_) | AuthError::Key(KeyError::NoRandomness(_))) => {
                Exit::Internal
            }
            Self::Auth(AuthError::OtherSecret { .. }) => Exit::Usage,
            Self::Auth(AuthError::Key(_)) => Exit::StateDir,
            Self::System(_) => Exit::Internal,
        }
    }
}

/// What an operator can do about a state directory that cannot be used, as the end of a sentence.
/// The program's user is named because a volume or a bind mount often belongs to another.
pub(super) fn cure(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let user = rustix::process::geteuid().as_raw();
            format!(
                "; this process is user {user}: give it the directory (chown {user}), or run it as \
                 the directory's owner"
            )
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; mount a volume that can be written there, or name another by BHAV_STATE_DIR".into()
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space".into(),
        _ => String::new(),
    }
}
