//! Why the store did not do what it was asked.

/// The text is for the log; clients get a code from one place in `api`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the e-mail is registered already")]
    EmailTaken,
    /// The user was erased meanwhile.
    #[error("no such user")]
    NoSuchUser,
    /// A bound on what one user may keep.
    #[error("at most {limit} {what} per user")]
    TooMany { what: &'static str, limit: usize },
    /// A change expects the record in another state; nothing was done.
    #[error("the record is not in the state that the change expects")]
    NotAsExpected,
    #[error("too much is waiting for the store")]
    Busy,
    /// A write that was given up may still happen.
    #[error("the store did not answer in time")]
    Late,
    /// Disk full, read-only, corrupt, or not open at all.
    #[error("the store cannot be used: {0}")]
    Unavailable(String),
    /// A row that this program could not have written.
    #[error("a stored row is damaged: {0}")]
    Damaged(&'static str),
}
