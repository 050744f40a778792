//! The error of a failed call to a broker or to the public provider: one type for feeds, syncs and
//! logins.
//!
//! Its text is for the log and for the operator's health page. It consists of our own text, of
//! numbers, and of a feed's message about our own request. The error of a user's sync contains no
//! text of the broker, which may have repeated the credentials.

use std::fmt;
use std::time::Duration;

use crate::base::words;
use crate::brokers::readiness::Readiness;

/// A failed call. A batch or sync that failed half-way returns no data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerError {
    /// The upstream's name in the log.
    pub upstream: &'static str,
    pub kind: BrokerErrorKind,
    /// Particulars; empty if the kind is enough.
    pub detail: String,
    retry_after: Option<Duration>,
}

/// The kind of an error. A caller's next step depends on this alone.
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
    /// The account is blocked or incomplete. Only its owner can solve that with the broker.
    AccountProblem,
    /// The account's second factor is missing or blocked. Only its owner can settle that.
    SecondFactorProblem,
    /// The broker accepts calls of this API key from registered network addresses only.
    AddressRefused,
    /// The request itself was refused, for instance for one of its symbols.
    Refused,
    /// The upstream reports a failure of its own.
    Failed { status: u16 },
    /// A reply that the upstream does not document. It is never an empty portfolio.
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
        Self {
            upstream,
            kind,
            detail: detail.into(),
            retry_after: None,
        }
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

    /// Time until the same call may succeed, if that is known.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            BrokerErrorKind::NotReady(Readiness::Paced(wait) | Readiness::Open(wait)) => Some(wait),
            _ => self.retry_after,
        }
    }
}

/// The meaning of an error for the upstream's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It answered, though with an error.
    Works,
    /// It wants fewer calls. The pace handles that, not the circuit.
    Throttles,
    Fails,
    /// It sent a malformed answer. For a call of the server itself that is a failure. A user's odd
    /// key can cause odd answers, and must not open the circuit for everyone.
    Strange,
}

words! {
    /// Outcome of a call that was made, for metrics.
    pub(super) enum Outcome {
        Ok = "ok",
        Unreachable = "unreachable",
        TimedOut = "timed_out",
        RateLimited = "rate_limited",
        TokenDead = "token_dead",
        NoPermission = "no_permission",
        Refused = "refused",
        UpstreamError = "upstream_error",
        Malformed = "malformed",
    }
}

/// The meaning of an error for the circuit, the metrics and the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    pub(super) health: Health,
    /// `None` if no call was made.
    pub(super) outcome: Option<Outcome>,
    /// Whether the upstream refuses the request's content. The same content is refused again each
    /// time, so users' refusals are counted.
    pub(super) blames_request: bool,
}

impl BrokerErrorKind {
    /// The table of what errors mean here. The table of answers to clients is in `api/errors.rs`.
    pub(super) fn judged(self) -> Judged {
        let (health, outcome, blames_request) = match self {
            Self::NotReady(_) => (Health::Works, None, false),
            Self::Unreachable => (Health::Fails, Some(Outcome::Unreachable), false),
            Self::TimedOut => (Health::Fails, Some(Outcome::TimedOut), false),
            Self::Failed { .. } => (Health::Fails, Some(Outcome::UpstreamError), false),
            Self::Malformed | Self::Redirected => {
                (Health::Strange, Some(Outcome::Malformed), false)
            }
            Self::RateLimited => (Health::Throttles, Some(Outcome::RateLimited), false),
            Self::KeySpent => (Health::Works, Some(Outcome::RateLimited), true),
            Self::TokenDead => (Health::Works, Some(Outcome::TokenDead), true),
            Self::NotPermitted => (Health::Works, Some(Outcome::NoPermission), true),
            Self::CodeRefused
            | Self::KeyRefused
            | Self::AccountProblem
            | Self::SecondFactorProblem
            | Self::AddressRefused
            | Self::Refused => (Health::Works, Some(Outcome::Refused), true),
        };
        Judged {
            health,
            outcome,
            blames_request,
        }
    }
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use BrokerErrorKind as Kind;
        let Self {
            upstream: name,
            kind,
            detail,
            ..
        } = self;
        match kind {
            Kind::NotReady(readiness) => write!(f, "not asked: {readiness:?}"),
            Kind::Unreachable => write!(f, "cannot reach {name}: {detail}"),
            Kind::TimedOut => write!(f, "{name} took longer than {detail}"),
            Kind::RateLimited => write!(f, "{name} refused for too many requests"),
            Kind::KeySpent => write!(f, "{name}: the API key has no calls left"),
            Kind::TokenDead => write!(f, "{name} says the token is dead"),
            Kind::CodeRefused => write!(f, "{name} does not accept the one-time code: {detail}"),
            Kind::KeyRefused => {
                write!(f, "{name} does not accept the API key or its signature: {detail}")
            }
            Kind::NotPermitted => write!(f, "{name}: {detail}"),
            Kind::AccountProblem => {
                write!(f, "{name}: the broker says that the account has a problem")
            }
            Kind::SecondFactorProblem => {
                write!(f, "{name}: the broker says that the account's second factor has a problem")
            }
            Kind::AddressRefused => {
                write!(f, "{name} does not accept calls from this address: {detail}")
            }
            Kind::Refused => write!(f, "{name} refused the request: {detail}"),
            Kind::Failed { status } => write!(f, "{name} failed with HTTP {status}: {detail}"),
            Kind::Malformed => write!(f, "{name} answered nonsense: {detail}"),
            Kind::Redirected => write!(f, "{name} answered with a redirect that is not followed"),
        }
    }
}

impl std::error::Error for BrokerError {}
