//! The answers to a client for a broker's error: one table for syncs and activations.
//!
//! The same error is answered differently in these places:
//!
//! - A key that is refused, lacks a permission or is called from an unregistered address: 401, 403
//!   and 502 for a sync, 409 for an activation. A user sends the key and can send another. The
//!   server's own key is a setting, which no request can change.
//! - A broker that is unavailable and names no time: a sync has `Retry-After: 30`, an activation
//!   has none. Programs repeat syncs. An activation is made by a person, who reads the log.
//! - The text. A user may sync with both brokers and wants to know the state of the data. The
//!   administrator has just called one broker and wants to know the state of the code.

use std::time::Duration;

use crate::base::Broker;
use crate::brokers::{BrokerError, BrokerErrorKind as Kind, Readiness};
use crate::http::Problem;

/// `Retry-After` for a user if the broker names no time.
const BROKER_RETRY: Duration = Duration::from_secs(30);

/// The route that answers with the broker's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrokerRoute {
    /// A user syncs a portfolio with an API key, a secret and a one-time code of their own.
    Sync,
    /// The administrator activates the server's own session with a one-time code. Key and secret
    /// are settings.
    Activation,
}

/// The answer to a failed sync or activation, with the error for the log.
pub(super) fn broker_problem(error: BrokerError, broker: Broker, route: BrokerRoute) -> Problem {
    let (status, code, detail) = row(error.kind, route);
    let wait = match (error.retry_after(), code, route) {
        (wait, "broker_rate_limited" | "calls_held_back", _) => Some(wait.unwrap_or_default()),
        (None, "broker_unavailable", BrokerRoute::Sync) => Some(BROKER_RETRY),
        (wait, "broker_unavailable", _) => wait,
        _ => None,
    };
    let wait_s = wait.map(whole_seconds);
    let detail = detail.replace("{broker}", broker.name());
    let detail = detail.replace("{s}", &wait_s.unwrap_or_default().to_string());
    let mut problem = Problem::new(status, code, detail);
    if status == 401 {
        problem = problem.with("WWW-Authenticate", "Bearer");
    }
    if let Some(wait_s) = wait_s {
        problem = problem.with("Retry-After", wait_s.to_string());
    }
    problem.because(error)
}

/// The call waited too long for a thread, so the broker was not called.
pub(super) fn broker_timed_out(broker: Broker, route: BrokerRoute) -> Problem {
    let detail = "the time that it may wait for a thread";
    broker_problem(BrokerError::new(broker.name(), Kind::TimedOut, detail), broker, route)
}

/// The rows of an activation alone: the server's own key is a setting.
fn row_of_settings(kind: Kind) -> Option<(u16, &'static str, &'static str)> {
    match kind {
        Kind::KeyRefused | Kind::NotPermitted | Kind::AddressRefused => {
            Some((409, "broker_key_refused", SERVER_KEY_REFUSED))
        }
        Kind::NotReady(Readiness::Off) => Some((409, "broker_not_configured", NOT_CONFIGURED)),
        _ => None,
    }
}

/// The table: status, code and text. `{broker}` stands for the broker's name, `{s}` for the seconds
/// to wait.
fn row(kind: Kind, route: BrokerRoute) -> (u16, &'static str, &'static str) {
    let words = |sync, activation| match route {
        BrokerRoute::Sync => sync,
        BrokerRoute::Activation => activation,
    };
    if route == BrokerRoute::Activation
        && let Some(row) = row_of_settings(kind)
    {
        return row;
    }
    match kind {
        Kind::CodeRefused | Kind::TokenDead => (
            401,
            "broker_session_invalid",
            words(
                "{broker} does not accept the one-time code: it is wrong, used or expired.",
                "The broker does not accept the code: wrong, used or expired.",
            ),
        ),
        Kind::KeyRefused => (
            401,
            "broker_credentials_invalid",
            "{broker} does not accept the API key or secret.",
        ),
        Kind::NotPermitted => (
            403,
            "broker_not_permitted",
            "{broker} does not permit this API key to read the portfolio.",
        ),
        Kind::AddressRefused => (502, "broker_address_refused", ADDRESS_REFUSED),
        Kind::AccountProblem => (403, "broker_account_problem", ACCOUNT_PROBLEM),
        Kind::SecondFactorProblem => (403, "broker_two_factor_problem", SECOND_FACTOR_PROBLEM),
        Kind::NotReady(Readiness::Paced(_)) => {
            (429, "calls_held_back", words(CALLS_HELD_BACK, RATE_LIMITED))
        }
        Kind::RateLimited | Kind::KeySpent => (
            429,
            "broker_rate_limited",
            words("{broker} wants fewer calls; nothing was changed.", RATE_LIMITED),
        ),
        Kind::TimedOut => (
            504,
            "broker_timeout",
            words(
                "{broker} did not answer in time; nothing was changed.",
                "The broker did not answer in time.",
            ),
        ),
        // The broker refused the request itself. That is our fault, and the client cannot change
        // it.
        Kind::Malformed | Kind::Refused => (
            502,
            "broker_answer_invalid",
            words(
                "{broker} gave an answer that makes no sense; nothing was changed.",
                "The broker's answer is not understood.",
            ),
        ),
        Kind::Redirected => (502, "broker_redirected", REDIRECTED),
        Kind::Unreachable | Kind::Failed { .. } | Kind::NotReady(_) => (
            502,
            "broker_unavailable",
            words(
                "{broker} cannot be reached or has a fault; nothing was changed.",
                "The broker cannot be reached.",
            ),
        ),
    }
}

const CALLS_HELD_BACK: &str = "For now this service holds back further calls to {broker} of this \
                               user, network or API key. {broker} was not asked, and nothing was \
                               changed. Try again in {s} s.";

const SERVER_KEY_REFUSED: &str = "The broker does not accept the server's API key, or not from \
                                  here; the log has the reason.";
const NOT_CONFIGURED: &str = "The server's settings have no API key and secret for this broker.";
const ADDRESS_REFUSED: &str = "{broker} takes calls of this API key from registered network \
                               addresses only, and this server's is not one of them.";
const ACCOUNT_PROBLEM: &str = "{broker} says that the account has a problem there. Its owner has \
                               to settle that with the broker; nothing was changed.";
const SECOND_FACTOR_PROBLEM: &str = "{broker} says that the account's two-factor login has a \
                                     problem there. Its owner has to settle that with the broker; \
                                     nothing was changed.";
const RATE_LIMITED: &str = "The broker takes only so many calls, and this service keeps to that: \
                            the code was not judged. Try again in {s} s.";
const REDIRECTED: &str = "{broker} answered with a redirect, which is not followed: it has none of \
                          its own. Nothing was changed.";

/// The value of `Retry-After`: rounded up, and never 0.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "SECRET-WORDS";
    const WAIT: Duration = Duration::from_millis(61_500);

    fn header<'a>(problem: &'a Problem, name: &str) -> Option<&'a str> {
        let found = problem.headers.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.as_ref())
    }

    /// Status and code.
    type Told = (u16, &'static str);

    /// Every kind, with the answers to a user and to the administrator.
    const TABLE: &[(Kind, Told, Told)] = &[
        (
            Kind::CodeRefused,
            (401, "broker_session_invalid"),
            (401, "broker_session_invalid"),
        ),
        (
            Kind::TokenDead,
            (401, "broker_session_invalid"),
            (401, "broker_session_invalid"),
        ),
        (
            Kind::KeyRefused,
            (401, "broker_credentials_invalid"),
            (409, "broker_key_refused"),
        ),
        (Kind::NotPermitted, (403, "broker_not_permitted"), (409, "broker_key_refused")),
        (
            Kind::AddressRefused,
            (502, "broker_address_refused"),
            (409, "broker_key_refused"),
        ),
        (
            Kind::AccountProblem,
            (403, "broker_account_problem"),
            (403, "broker_account_problem"),
        ),
        (
            Kind::SecondFactorProblem,
            (403, "broker_two_factor_problem"),
            (403, "broker_two_factor_problem"),
        ),
        (Kind::RateLimited, (429, "broker_rate_limited"), (429, "broker_rate_limited")),
        (Kind::KeySpent, (429, "broker_rate_limited"), (429, "broker_rate_limited")),
        (
            Kind::NotReady(Readiness::Paced(WAIT)),
            (429, "calls_held_back"),
            (429, "calls_held_back"),
        ),
        (Kind::TimedOut, (504, "broker_timeout"), (504, "broker_timeout")),
        (Kind::Malformed, (502, "broker_answer_invalid"), (502, "broker_answer_invalid")),
        (Kind::Refused, (502, "broker_answer_invalid"), (502, "broker_answer_invalid")),
        (Kind::Redirected, (502, "broker_redirected"), (502, "broker_redirected")),
        (Kind::Unreachable, (502, "broker_unavailable"), (502, "broker_unavailable")),
        (
            Kind::Failed { status: 503 },
            (502, "broker_unavailable"),
            (502, "broker_unavailable"),
        ),
        (
            Kind::NotReady(Readiness::Open(WAIT)),
            (502, "broker_unavailable"),
            (502, "broker_unavailable"),
        ),
        (
            Kind::NotReady(Readiness::Off),
            (502, "broker_unavailable"),
            (409, "broker_not_configured"),
        ),
    ];

    #[test]
    fn each_kind_has_its_answer_and_hides_the_brokers_words() {
        for (kind, user, administrator) in TABLE {
            for broker in Broker::ALL {
                for (route, expected) in [
                    (BrokerRoute::Sync, user),
                    (BrokerRoute::Activation, administrator),
                ] {
                    let error = BrokerError::new("a broker", *kind, SAID);
                    let problem = broker_problem(error, broker, route);
                    let about = format!("{kind:?} {route:?}: {}", problem.detail);
                    assert_eq!((problem.status, problem.code), *expected, "{about}");
                    assert!(!problem.detail.contains("SECRET"), "{about}");
                    assert!(!problem.detail.contains(['{', '}']), "{about}");
                    let named = problem.detail.contains(broker.name());
                    assert!(named || route == BrokerRoute::Activation, "{about}");
                    let bearer = header(&problem, "WWW-Authenticate");
                    assert_eq!(bearer.is_some(), problem.status == 401, "{about}");
                }
            }
        }
    }

    #[test]
    fn a_wait_is_told_in_whole_seconds_to_whoever_has_to_wait() {
        let told = |error, route| {
            let problem = broker_problem(error, Broker::A, route);
            header(&problem, "Retry-After").map(str::to_owned)
        };
        let failed = |wait: Option<Duration>| {
            let error = BrokerError::new("a broker", Kind::Failed { status: 503 }, "");
            wait.into_iter().fold(error, BrokerError::after)
        };
        for route in [BrokerRoute::Sync, BrokerRoute::Activation] {
            assert_eq!(told(failed(Some(WAIT)), route).as_deref(), Some("62"));
            for kind in [Kind::RateLimited, Kind::KeySpent] {
                let error = BrokerError::new("a broker", kind, "").after(WAIT);
                assert_eq!(told(error, route).as_deref(), Some("62"), "{kind:?}");
            }
            for readiness in [Readiness::Paced(WAIT), Readiness::Open(WAIT)] {
                let error = BrokerError::not_ready("a broker", readiness);
                assert_eq!(told(error, route).as_deref(), Some("62"), "{readiness:?}");
            }
            let malformed = BrokerError::new("a broker", Kind::Malformed, "").after(WAIT);
            assert_eq!(told(malformed, route), None);
        }
        assert_eq!(told(failed(None), BrokerRoute::Sync).as_deref(), Some("30"));
        assert_eq!(told(failed(None), BrokerRoute::Activation), None);
    }

    #[test]
    fn an_administrator_who_has_to_wait_is_told_whose_pace_it_is() {
        let error = BrokerError::not_ready("a broker", Readiness::Paced(WAIT));
        let problem = broker_problem(error, Broker::A, BrokerRoute::Activation);
        assert!(problem.detail.contains("this service keeps to that"), "{}", problem.detail);
        assert!(problem.detail.ends_with("Try again in 62 s."), "{}", problem.detail);
    }

    #[test]
    fn a_user_whom_this_service_holds_back_is_not_told_that_the_broker_does() {
        for (error, code, said) in [
            (
                BrokerError::not_ready("a broker", Readiness::Paced(WAIT)),
                "calls_held_back",
                "was not asked, and nothing was changed. Try again in 62 s.",
            ),
            (
                BrokerError::new("a broker", Kind::RateLimited, "").after(WAIT),
                "broker_rate_limited",
                "wants fewer calls",
            ),
        ] {
            let problem = broker_problem(error, Broker::A, BrokerRoute::Sync);
            assert_eq!((problem.status, problem.code), (429, code));
            assert!(problem.detail.contains(said), "{}", problem.detail);
        }
    }
}
