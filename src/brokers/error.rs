//! Why a call to a broker or to the public provider brought nothing: one error for feeds, syncs and
//! logins.
//!
//! Its text is for the log and for the operator's health page. It is made of our own words, of
//! numbers, and of what a feed's upstream said about our own request. A user's sync repeats no word
//! of the broker, which may have repeated the credentials.

use std::fmt;
use std::time::Duration;

use super::feed::Readiness;

/// A call that brought nothing. Nothing is returned of a batch or a sync that failed half-way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerError {
    /// Whose call it was, as the log calls it.
    pub upstream: &'static str,
    pub kind: BrokerErrorKind,
    /// Particulars; empty where the kind says everything.
    pub detail: String,
    retry_after: Option<Duration>,
}

/// What went wrong. What a caller does next depends on this alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerErrorKind {
    /// The call was not made: a limit, the open circuit, no token, or a switch.
    NotReady(Readiness),
    /// No connection, or one that broke before the reply was complete.
    Unreachable,
    /// No complete reply in time.
    TimedOut,
    /// The upstream wants fewer calls.
    RateLimited,
    /// The broker names a limit that it documents as the API key's own.
    KeySpent,
    /// The server's access token is no longer accepted.
    TokenDead,
    /// The one-time code of a login is wrong, used or expired, or the session made of it ended.
    CodeRefused,
    /// The API key is unknown, or the secret does not match it.
    KeyRefused,
    /// The API key is good, but its app or plan may not do this.
    NotPermitted,
    /// The account is blocked or incomplete. Only its owner can settle that with the broker.
    AccountProblem,
    /// The account's second factor is missing or blocked. Only its owner can settle that.
    SecondFactorProblem,
    /// The broker accepts calls of this API key from registered network addresses only.
    AddressRefused,
    /// The request itself was refused, for instance for one of its symbols.
    Refused,
    /// The upstream reports a failure of its own.
    Failed { status: u16 },
    /// A reply that the upstream's documentation does not have. It is never an empty portfolio.
    Malformed,
    /// A redirect, which is not followed: it would take credentials to another host.
    Redirected,
}

impl BrokerError {
    pub(crate) fn new(
        upstream: &'static str,
        kind: BrokerErrorKind,
        detail: impl Into<String>,
    ) -> Self {
        Self { upstream, kind, detail: detail.into(), retry_after: None }
    }

    /// A call that was not made.
    pub(crate) fn not_ready(upstream: &'static str, readiness: Readiness) -> Self {
        Self::new(upstream, BrokerErrorKind::NotReady(readiness), "")
    }

    /// The same, not to be tried again before `wait` has passed.
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        match &mut self.kind {
            BrokerErrorKind::NotReady(Readiness::Paced(own) | Readiness::Open(own)) => *own = wait,
            _ => self.retry_after = Some(wait),
        }
        self
    }

    /// How long to wait before the same call may succeed, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            BrokerErrorKind::NotReady(Readiness::Paced(wait) | Readiness::Open(wait)) => Some(wait),
            _ => self.retry_after,
        }
    }

    /// Whether the upstream refuses what was sent. Whoever sends the like is refused again and
    /// again, so users' refusals are counted. False for failures of the upstream itself.
    pub(super) fn blames_request(&self) -> bool {
        use BrokerErrorKind as Kind;
        match self.kind {
            Kind::KeySpent
            | Kind::TokenDead
            | Kind::CodeRefused
            | Kind::KeyRefused
            | Kind::NotPermitted
            | Kind::AccountProblem
            | Kind::SecondFactorProblem
            | Kind::AddressRefused
            | Kind::Refused => true,
            Kind::NotReady(_)
            | Kind::Unreachable
            | Kind::TimedOut
            | Kind::RateLimited
            | Kind::Failed { .. }
            | Kind::Malformed
            | Kind::Redirected => false,
        }
    }
}

impl fmt::Display for BrokerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        use BrokerErrorKind as Kind;
        let Self { upstream, kind, detail, .. } = self;
        match kind {
            Kind::NotReady(readiness) => write!(out, "not asked: {readiness:?}"),
            Kind::Unreachable => write!(out, "cannot reach {upstream}: {detail}"),
            Kind::TimedOut => write!(out, "{upstream} took longer than {detail}"),
            Kind::RateLimited => write!(out, "{upstream} refused for too many requests"),
            Kind::KeySpent => write!(out, "{upstream}: the API key has no calls left"),
            Kind::TokenDead => write!(out, "{upstream} says the token is dead"),
            Kind::CodeRefused => {
                write!(out, "{upstream} does not accept the one-time code: {detail}")
            }
            Kind::KeyRefused => {
                write!(out, "{upstream} does not accept the API key or its signature: {detail}")
            }
            Kind::NotPermitted => write!(out, "{upstream}: {detail}"),
            Kind::AccountProblem => {
                write!(out, "{upstream}: the broker says that the account has a problem")
            }
            Kind::SecondFactorProblem => write!(
                out,
                "{upstream}: the broker says that the account's second factor has a problem"
            ),
            Kind::AddressRefused => {
                write!(out, "{upstream} does not accept calls from this address: {detail}")
            }
            Kind::Refused => write!(out, "{upstream} refused the request: {detail}"),
            Kind::Failed { status } => {
                write!(out, "{upstream} failed with HTTP {status}: {detail}")
            }
            Kind::Malformed => write!(out, "{upstream} answered nonsense: {detail}"),
            Kind::Redirected => {
                write!(out, "{upstream} answered with a redirect that is not followed")
            }
        }
    }
}

impl std::error::Error for BrokerError {}
