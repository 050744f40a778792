//! What a broker's refusals of a sync become for a client, one documented answer each, and why an
//! answer from the store could not be made.

use std::time::Duration;

use crate::api::portfolio::export_limit;
use crate::base::Broker;
use crate::brokers::{AccountTrouble, SyncError};
use crate::http::Problem;
use crate::limits::throttle::Throttled;
use crate::portfolio::Overflow;
use crate::store::StoreError;

/// When to try again after a full queue or another request of the same user.
const BUSY_RETRY_S: u64 = 5;
/// When a broker that names no time may be tried again.
const BROKER_RETRY_S: u64 = 30;

/// Why an answer could not be made.
pub(in crate::api) enum Unmade {
    Store(StoreError),
    Overflow(Overflow),
    /// Enough long exports are under way.
    Crowded,
    /// Longer than a document may be.
    TooLong,
}

impl From<export_limit::Crowded> for Unmade {
    fn from(export_limit::Crowded: export_limit::Crowded) -> Self {
        Self::Crowded
    }
}

impl From<StoreError> for Unmade {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Overflow> for Unmade {
    fn from(error: Overflow) -> Self {
        Self::Overflow(error)
    }
}

impl From<Unmade> for Problem {
    fn from(unmade: Unmade) -> Self {
        match unmade {
            Unmade::Store(error) => error.into(),
            Unmade::Overflow(error) => Problem::internal().because(error),
            Unmade::Crowded => export_busy(),
            Unmade::TooLong => export_too_long(),
        }
    }
}

/// The answer to a sync that brought nothing.
pub(in crate::api) fn of_sync(broker: Broker, error: SyncError) -> Problem {
    let name = broker.name();
    let problem = match &error {
        SyncError::CodeRefused(_) => unauthorized(
            "broker_session_invalid",
            format!("{name} does not accept the one-time code: it is wrong, used or expired."),
        ),
        SyncError::KeyRefused(_) => unauthorized(
            "broker_credentials_invalid",
            format!("{name} does not accept the API key or secret."),
        ),
        SyncError::NotPermitted(_) => {
            let detail = format!("{name} does not permit this API key to read the portfolio.");
            Problem::new(403, "broker_not_permitted", detail)
        }
        SyncError::AccountTrouble(trouble) => account_trouble(name, *trouble),
        SyncError::AddressRefused(_) => {
            let detail = format!(
                "{name} takes calls of this API key from registered network addresses only, and \
                 this server's is not one of them."
            );
            Problem::new(502, "broker_address_refused", detail)
        }
        SyncError::RateLimited(wait) | SyncError::KeySpent(wait) => {
            let detail = format!("{name} wants fewer calls; nothing was changed.");
            Problem::new(429, "broker_rate_limited", detail).with("Retry-After", seconds(*wait))
        }
        SyncError::TimedOut => timed_out(broker),
        SyncError::Unavailable { retry_after, .. } => {
            let detail = format!("{name} cannot be reached or has a fault; nothing was changed.");
            let problem = Problem::new(502, "broker_unavailable", detail);
            let wait = retry_after.unwrap_or(Duration::from_secs(BROKER_RETRY_S));
            problem.with("Retry-After", seconds(wait))
        }
        SyncError::Malformed(_) => {
            let detail = format!("{name} gave an answer that makes no sense; nothing was changed.");
            Problem::new(502, "broker_answer_invalid", detail)
        }
        SyncError::Redirected => redirected(name),
    };
    problem.because(error)
}

/// The broker has a word to say to the account's owner, whom no other key or code helps.
pub(in crate::api) fn account_trouble(broker: &str, trouble: AccountTrouble) -> Problem {
    let detail = |what: &str| {
        format!(
            "{broker} says that {what}. Its owner has to settle that with the broker; nothing was \
             changed."
        )
    };
    match trouble {
        AccountTrouble::Account => {
            let detail = detail("the account has a problem there");
            Problem::new(403, "broker_account_problem", detail)
        }
        AccountTrouble::SecondFactor => {
            let detail = detail("the account's two-factor login has a problem there");
            Problem::new(403, "broker_two_factor_problem", detail)
        }
    }
}

/// Whoever stands in front of the broker sent us elsewhere.
pub(in crate::api) fn redirected(broker: &str) -> Problem {
    let detail = format!(
        "{broker} answered with a redirect, which is not followed: it has none of its own. Nothing \
         was changed."
    );
    Problem::new(502, "broker_redirected", detail)
}

/// The broker took too long, or its calls waited too long for their turn.
pub(in crate::api) fn timed_out(broker: Broker) -> Problem {
    let detail = format!("{} did not answer in time; nothing was changed.", broker.name());
    Problem::new(504, "broker_timeout", detail)
}

/// The user has tried to sync too often; nothing was asked of a broker.
pub(in crate::api) fn too_many_attempts(throttled: Throttled) -> Problem {
    let detail = "You have tried to sync too often; the code was not used.";
    let wait = Duration::from_millis(throttled.retry_after_ms);
    Problem::new(429, "too_many_attempts", detail).with("Retry-After", seconds(wait))
}

/// The lane of the broker is full.
pub(in crate::api) fn sync_busy() -> Problem {
    let detail = "Too many syncs are under way; nothing was changed.";
    Problem::unavailable("sync_busy", detail, BUSY_RETRY_S)
}

/// The user's own sync or deletion is under way.
pub(in crate::api) fn in_progress() -> Problem {
    let detail = "Another sync or deletion of yours is under way; the code was not used.";
    Problem::new(409, "sync_in_progress", detail).with("Retry-After", BUSY_RETRY_S.to_string())
}

/// The user's last export is not finished.
pub(in crate::api) fn export_in_progress() -> Problem {
    let detail = "Another export of yours is under way, or not read to its end yet.";
    Problem::new(409, "export_in_progress", detail).with("Retry-After", BUSY_RETRY_S.to_string())
}

/// Enough long journals are being exported.
fn export_busy() -> Problem {
    let detail = "Too many long exports are under way.";
    Problem::unavailable("export_busy", detail, BUSY_RETRY_S)
}

/// Of a journal written before its text was bounded.
fn export_too_long() -> Problem {
    let detail = "The journal is too long for one document; read it by pages from /api/journal.";
    Problem::new(409, "export_too_long", detail)
}

/// The lane that makes answers is full or slow.
pub(in crate::api) fn portfolio_busy() -> Problem {
    let detail = "Too many portfolios are being read.";
    Problem::unavailable("portfolio_busy", detail, 1)
}

fn unauthorized(code: &'static str, detail: String) -> Problem {
    Problem::new(401, code, detail).with("WWW-Authenticate", "Bearer")
}

fn seconds(wait: Duration) -> String {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_answer_and_hides_the_brokers_words() {
        let said = || "SECRET-WORDS".to_owned();
        let unavailable = |retry_after| SyncError::Unavailable { detail: said(), retry_after };
        let trouble = SyncError::AccountTrouble;
        let wait = Duration::from_millis(61_500);
        for (error, status, code, retry) in [
            (SyncError::CodeRefused(said()), 401, "broker_session_invalid", None),
            (SyncError::KeyRefused(said()), 401, "broker_credentials_invalid", None),
            (SyncError::NotPermitted(said()), 403, "broker_not_permitted", None),
            (trouble(AccountTrouble::Account), 403, "broker_account_problem", None),
            (trouble(AccountTrouble::SecondFactor), 403, "broker_two_factor_problem", None),
            (SyncError::AddressRefused(said()), 502, "broker_address_refused", None),
            (SyncError::RateLimited(wait), 429, "broker_rate_limited", Some("62")),
            (SyncError::TimedOut, 504, "broker_timeout", None),
            (unavailable(Some(wait)), 502, "broker_unavailable", Some("62")),
            (unavailable(None), 502, "broker_unavailable", Some("30")),
            (SyncError::Malformed(said()), 502, "broker_answer_invalid", None),
            (SyncError::Redirected, 502, "broker_redirected", None),
        ] {
            for broker in Broker::ALL {
                let problem = of_sync(broker, error.clone());
                assert_eq!((problem.status, problem.code), (status, code));
                assert!(problem.detail.contains(broker.name()), "{code}");
                assert!(!problem.detail.contains("SECRET"), "{code}");
                let header = |name| problem.headers.iter().find(|(key, _)| *key == name);
                let after = header("Retry-After").map(|(_, value)| value.as_ref());
                assert_eq!(after, retry, "{code}");
                assert_eq!(header("WWW-Authenticate").is_some(), status == 401, "{code}");
            }
        }
    }
}
