//! What both brokers' portfolio clients take and give: a user's credentials, the rows, the reasons
//! for failing.
//!
//! Credentials are owned by one call, wiped when it ends and never kept: no field of a client has
//! room for them. Errors name no value of theirs.

use std::time::Duration;

use secrecy::SecretString;

/// What a user sends for one sync. Shows nothing when printed, is wiped when dropped, and cannot be
/// serialised.
#[derive(Debug)]
pub struct Credentials {
    pub api_key: SecretString,
    pub api_secret: SecretString,
    /// Broker A's `request_token`, broker B's `api_session`.
    pub one_time_code: SecretString,
}

/// Why a sync brought nothing. Each is one documented answer of the API; an answer of the broker
/// that is not understood is never an empty portfolio.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    /// The one-time code is wrong, used or expired, or the session made of it died.
    #[error("the broker does not accept the one-time code: {0}")]
    CodeRefused(String),
    /// The API key or secret is wrong.
    #[error("the broker does not accept the API key or its signature: {0}")]
    KeyRefused(String),
    /// The key is good but may not do this, or the account has a problem.
    #[error("the broker does not permit this: {0}")]
    NotPermitted(String),
    /// The broker wants calls from a registered network address.
    #[error("the broker does not accept calls from this address: {0}")]
    AddressRefused(String),
    #[error("the broker wants to be left alone for {} s", .0.as_secs())]
    RateLimited(Duration),
    #[error("the broker did not answer in time")]
    TimedOut,
    /// Unreachable, an error of its own, or its circuit is open.
    #[error("the broker is not available: {detail}")]
    Unavailable { detail: String, retry_after: Option<Duration> },
    /// An answer that the documentation does not have.
    #[error("the broker answered nonsense: {0}")]
    Malformed(String),
}
