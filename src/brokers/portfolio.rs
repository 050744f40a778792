//! What both brokers' portfolio clients take and give: a user's credentials, the rows, the reasons
//! for failing.
//!
//! Credentials are owned by one call, wiped when it ends and never kept: no field of a client has
//! room for them. Errors are made of our own words alone: a broker's text may repeat what was sent.

use std::net::IpAddr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

/// What a user sends for one sync. Shows nothing when printed, is wiped when dropped, and cannot be
/// serialised.
#[derive(Debug)]
pub struct Credentials {
    /// The number of the account that syncs: what it causes is not charged to others.
    pub user: i64,
    /// Where the request comes from, as far as that is known; counted for the same reason.
    pub client: Option<IpAddr>,
    pub api_key: SecretString,
    pub api_secret: SecretString,
    /// Broker A's `request_token`, broker B's `api_session`.
    pub one_time_code: SecretString,
}

/// Longest key, secret or one-time code that is passed on; real ones have some tens of characters.
pub const CREDENTIAL_BYTES_MAX: usize = 512;

impl Credentials {
    /// # Errors
    /// One of them is empty or longer than any broker makes them.
    pub(super) fn check(&self) -> Result<(), SyncError> {
        let fits = |value: &SecretString| {
            (1..=CREDENTIAL_BYTES_MAX).contains(&value.expose_secret().len())
        };
        if !fits(&self.api_key) || !fits(&self.api_secret) {
            return Err(SyncError::KeyRefused("wrong length".into()));
        }
        if !fits(&self.one_time_code) {
            return Err(SyncError::CodeRefused("wrong length".into()));
        }
        Ok(())
    }
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
    /// The key is good but may not do this.
    #[error("the broker does not permit this: {0}")]
    NotPermitted(String),
    /// Neither key nor code is at fault.
    #[error("{0}")]
    AccountTrouble(AccountTrouble),
    /// The broker wants calls from a registered network address.
    #[error("the broker does not accept calls from this address: {0}")]
    AddressRefused(String),
    #[error("the broker wants to be left alone for {} s", .0.as_secs())]
    RateLimited(Duration),
    /// The broker names a limit that it documents as the API key's own.
    #[error("the API key has no calls left for {} s", .0.as_secs())]
    KeySpent(Duration),
    #[error("the broker did not answer in time")]
    TimedOut,
    /// Unreachable, an error of its own, or its circuit is open.
    #[error("the broker is not available: {detail}")]
    Unavailable { detail: String, retry_after: Option<Duration> },
    /// An answer that the documentation does not have.
    #[error("the broker answered nonsense: {0}")]
    Malformed(String),
    /// Neither broker's API has redirects, and what a call carries goes to nobody else.
    #[error("the broker answered with a redirect, which was not followed")]
    Redirected,
}

/// What a broker says about the account itself. No other key, code or session mends it: its owner
/// has to see the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountTrouble {
    #[error("the broker says that the account has a problem")]
    Account,
    #[error("the broker says that the account's second factor has a problem")]
    SecondFactor,
}

/// [`SyncError`] without its particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncErrorKind {
    CodeRefused,
    KeyRefused,
    NotPermitted,
    AccountProblem,
    SecondFactorProblem,
    AddressRefused,
    RateLimited,
    TimedOut,
    Unavailable,
    Malformed,
    Redirected,
}

impl SyncError {
    /// Whether the broker says no to what was sent, and not of itself: such a refusal can be had
    /// again and again by whoever sends the like.
    pub(super) fn is_of_what_was_sent(&self) -> bool {
        match self {
            Self::CodeRefused(_)
            | Self::KeyRefused(_)
            | Self::NotPermitted(_)
            | Self::AccountTrouble(_)
            | Self::AddressRefused(_)
            | Self::KeySpent(_) => true,
            Self::RateLimited(_)
            | Self::TimedOut
            | Self::Unavailable { .. }
            | Self::Malformed(_)
            | Self::Redirected => false,
        }
    }

    /// Which one it is.
    pub fn kind(&self) -> SyncErrorKind {
        match self {
            Self::CodeRefused(_) => SyncErrorKind::CodeRefused,
            Self::KeyRefused(_) => SyncErrorKind::KeyRefused,
            Self::NotPermitted(_) => SyncErrorKind::NotPermitted,
            Self::AccountTrouble(AccountTrouble::Account) => SyncErrorKind::AccountProblem,
            Self::AccountTrouble(AccountTrouble::SecondFactor) => {
                SyncErrorKind::SecondFactorProblem
            }
            Self::AddressRefused(_) => SyncErrorKind::AddressRefused,
            Self::RateLimited(_) | Self::KeySpent(_) => SyncErrorKind::RateLimited,
            Self::TimedOut => SyncErrorKind::TimedOut,
            Self::Unavailable { .. } => SyncErrorKind::Unavailable,
            Self::Malformed(_) => SyncErrorKind::Malformed,
            Self::Redirected => SyncErrorKind::Redirected,
        }
    }
}

/// Something a broker may answer, and what we make of it: the rows of the table "broker replies,
/// our answers".
#[derive(Clone, Copy, Debug)]
pub struct DocumentedReply {
    /// The broker's call, as in `POST /session/token`.
    pub call: &'static str,
    /// What it means, for a person.
    pub meaning: &'static str,
    pub http_status: u16,
    pub content_type: &'static str,
    pub body: &'static str,
    /// `None` is success with zero rows.
    pub answer: Option<SyncErrorKind>,
}

const JSON: &str = "application/json";
const HTML: &str = "text/html";

impl DocumentedReply {
    /// A document; `answer` is `None` for what is a success.
    pub(super) const fn json(
        call: &'static str,
        meaning: &'static str,
        http_status: u16,
        body: &'static str,
        answer: Option<SyncErrorKind>,
    ) -> Self {
        Self { call, meaning, http_status, content_type: JSON, body, answer }
    }

    /// A page for people, or nothing at all, where a document should be.
    pub(super) const fn page(
        call: &'static str,
        meaning: &'static str,
        http_status: u16,
        body: &'static str,
        answer: SyncErrorKind,
    ) -> Self {
        Self { call, meaning, http_status, content_type: HTML, body, answer: Some(answer) }
    }
}
