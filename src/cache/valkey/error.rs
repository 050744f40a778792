//! Why a call of the server failed.

use redis::{ErrorKind, RedisError};

use super::refusals::Refusal;

/// Why a call failed. Nothing in it names a key's value or a password.
#[derive(Debug, thiserror::Error)]
pub enum ValkeyError {
    /// Not tried: it failed a moment ago, and the next try is due in this time.
    #[error("the server is away; next try in {retry_ms} ms")]
    Away { retry_ms: u64 },
    #[error("cannot connect: {detail}")]
    Connect { detail: String },
    /// The outcome of a call that writes is unknown then.
    #[error("no answer in time")]
    Late,
    /// Every connection is in use for as long as the call may take.
    #[error("the connection is busy")]
    Busy,
    #[error("the connection broke: {detail}")]
    Broken { detail: String },
    /// Nothing can be named on the server before the database has said which one it is.
    #[error("not known yet of which database this node is")]
    NoNamespace,
    /// The server answered with an error, of which this is the first word.
    #[error("the server refuses: {detail}")]
    Refused { detail: String, refusal: Refusal },
}

impl ValkeyError {
    /// Of an error of the library.
    pub(super) fn of(error: &RedisError) -> Self {
        if error.is_timeout() {
            return Self::Late;
        }
        match error.kind() {
            // The first word tells the kind. The rest may repeat what was sent.
            ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::AuthenticationFailed => {
                let detail = error.code().unwrap_or("ERR").to_owned();
                let refusal = Refusal::of(&detail, error.detail().unwrap_or_default());
                Self::Refused { detail, refusal }
            }
            ErrorKind::Io => Self::Broken { detail: error.to_string() },
            kind => Self::Broken { detail: format!("{kind:?}") },
        }
    }

    /// Whether the connection can be used for another call.
    pub(super) fn keeps_connection(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}
