//! Why an operation of the store failed.

/// The text is for the log. Clients get an error code, which `api/errors` chooses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the e-mail is registered already")]
    EmailTaken,
    /// There is or was another account already, and only the first was to be added.
    #[error("this is not the first account of the database")]
    NotFirst,
    /// The user was erased meanwhile.
    #[error("no such user")]
    NoSuchUser,
    /// A user has reached a bound on what is stored.
    #[error("at most {limit} {what} per user")]
    TooMany { what: &'static str, limit: usize },
    /// The record is not in the state that the change expects. Nothing was written.
    #[error("the record is not in the state that the change expects")]
    NotAsExpected,
    /// Another node has led since. Nothing was written.
    #[error("another node leads")]
    Deposed,
    /// The user's turn ran out and another change took it. Nothing was written.
    #[error("another change of the user's portfolio has taken the turn")]
    TurnLost,
    /// The portfolio is that of another person at the broker. Nothing was written. The id is not
    /// for the log.
    #[error("the portfolio is of another person at the broker")]
    OtherBrokerUser { kept: String },
    #[error("too much is waiting for the store")]
    Busy,
    /// The deadline passed. A write may still happen.
    #[error("the store did not answer in time")]
    Late,
    /// The disk is full, or the file is read-only, corrupt or not open.
    #[error("the store cannot be used: {0}")]
    Unavailable(String),
    /// A row that this program could not have written.
    #[error("a stored row is damaged: {0}")]
    Damaged(&'static str),
}
