//! What becomes of an activation that brought no token. Told to the administrator: the words differ
//! from those for a user's sync where the same fault means something else.

use std::time::Duration;

use super::portfolio::{account_trouble, redirected};
use crate::base::Broker;
use crate::brokers::{FeedError, Readiness, SyncError};
use crate::http::Problem;

/// When to try again after a full lane.
const RETRY_AFTER_S: u64 = 1;

/// The lane of the broker is full.
pub(in crate::api) fn activation_busy() -> Problem {
    let detail = "Too many calls to the broker are under way.";
    Problem::unavailable("upstream_busy", detail, RETRY_AFTER_S)
}

/// A conflict with the server's state: asking again does not help, the settings have to change.
pub(in crate::api) fn broker_not_configured() -> Problem {
    let detail = "The server's settings have no API key and secret for this broker.";
    Problem::new(409, "broker_not_configured", detail)
}

fn code_refused() -> Problem {
    let detail = "The broker does not accept the code: wrong, used or expired.";
    Problem::new(401, "broker_session_invalid", detail).with("WWW-Authenticate", "Bearer")
}

fn rate_limited(wait: Duration) -> Problem {
    let s = whole_seconds(wait);
    let detail = format!(
        "The broker takes only so many calls, and this service keeps to that: the code was not \
         judged. Try again in {s} s."
    );
    after(Problem::new(429, "broker_rate_limited", detail), Some(wait))
}

fn unavailable(wait: Option<Duration>) -> Problem {
    after(Problem::new(502, "broker_unavailable", "The broker cannot be reached."), wait)
}

pub(in crate::api) fn activation_timed_out() -> Problem {
    Problem::new(504, "broker_timeout", "The broker did not answer in time.")
}

fn nonsense() -> Problem {
    Problem::new(502, "broker_answer_invalid", "The broker's answer is not understood.")
}

fn not_permitted() -> Problem {
    let detail = "The broker does not accept the server's API key, or not from here; the log has \
                  the reason.";
    Problem::new(409, "broker_key_refused", detail)
}

fn after(problem: Problem, wait: Option<Duration>) -> Problem {
    match wait {
        Some(wait) => problem.with("Retry-After", whole_seconds(wait).to_string()),
        None => problem,
    }
}

fn whole_seconds(wait: Duration) -> u128 {
    wait.as_millis().div_ceil(1_000).max(1)
}

/// Broker A's failure; neither it nor [`of_activation`]'s repeats what was sent.
pub(in crate::api) fn of_feed(error: FeedError) -> Problem {
    let problem = match &error {
        FeedError::Refused { .. } | FeedError::TokenDead { .. } => code_refused(),
        FeedError::NotReady(Readiness::Off) => broker_not_configured(),
        FeedError::NotReady(Readiness::Paced(wait)) => rate_limited(*wait),
        FeedError::NotReady(Readiness::Open(wait)) => unavailable(Some(*wait)),
        FeedError::RateLimited { retry_after, .. } => rate_limited(*retry_after),
        FeedError::NoPermission { .. } => not_permitted(),
        FeedError::AccountTrouble { trouble, .. } => account_trouble(Broker::A.name(), *trouble),
        FeedError::TimedOut { .. } => activation_timed_out(),
        FeedError::Malformed { .. } => nonsense(),
        FeedError::Redirected { .. } => redirected(Broker::A.name()),
        FeedError::NotReady(Readiness::Ready | Readiness::NoToken | Readiness::NoPermission)
        | FeedError::Unreachable { .. }
        | FeedError::Upstream { .. } => unavailable(None),
    };
    problem.because(error)
}

/// Broker B's.
pub(in crate::api) fn of_activation(error: SyncError) -> Problem {
    let problem = match &error {
        SyncError::CodeRefused(_) => code_refused(),
        SyncError::KeyRefused(_) | SyncError::NotPermitted(_) | SyncError::AddressRefused(_) => {
            not_permitted()
        }
        SyncError::AccountTrouble(trouble) => account_trouble(Broker::B.name(), *trouble),
        SyncError::RateLimited(wait) | SyncError::KeySpent(wait) => rate_limited(*wait),
        SyncError::TimedOut => activation_timed_out(),
        SyncError::Unavailable { retry_after, .. } => unavailable(*retry_after),
        SyncError::Malformed(_) => nonsense(),
        SyncError::Redirected => redirected(Broker::B.name()),
    };
    problem.because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_wait_is_told_whose_pace_it_is_and_how_long() {
        let problem = of_feed(FeedError::NotReady(Readiness::Paced(Duration::from_millis(29_500))));
        assert_eq!((problem.status, problem.code), (429, "broker_rate_limited"));
        assert!(problem.detail.contains("this service keeps to that"), "{}", problem.detail);
        assert!(problem.detail.ends_with("Try again in 30 s."), "{}", problem.detail);
        assert!(
            problem
                .headers
                .iter()
                .any(|(name, value)| (*name, value.as_ref()) == ("Retry-After", "30"))
        );
    }
}
