//! Why a portfolio's answer could not be made, or a user has to wait before the broker is asked.

use std::time::Duration;

use super::broker::whole_seconds;
use crate::api::portfolio::export_limit;
use crate::base::Broker;
use crate::http::Problem;
use crate::limits::throttle::Throttled;
use crate::portfolio::Overflow;

/// When to try again after a full queue or another request of the same user.
const BUSY_RETRY_S: u64 = 5;
/// When to try again after a full lane whose jobs are short.
const LANE_RETRY_S: u64 = 1;

impl From<Overflow> for Problem {
    fn from(error: Overflow) -> Self {
        Self::internal().because(error)
    }
}

impl From<export_limit::Crowded> for Problem {
    fn from(export_limit::Crowded: export_limit::Crowded) -> Self {
        let detail = "Too many long exports are under way.";
        Self::unavailable("export_busy", detail, BUSY_RETRY_S)
    }
}

/// The user has tried to sync too often; nothing was asked of a broker.
pub(in crate::api) fn too_many_attempts(throttled: Throttled) -> Problem {
    let detail = "You have tried to sync too often; the code was not used.";
    let wait = Duration::from_millis(throttled.retry_after_ms);
    Problem::new(429, "too_many_attempts", detail)
        .with("Retry-After", whole_seconds(wait).to_string())
}

/// The lane of the broker is full.
pub(in crate::api) fn sync_busy() -> Problem {
    let detail = "Too many syncs are under way; nothing was changed.";
    Problem::unavailable("sync_busy", detail, BUSY_RETRY_S)
}

/// The lane of the broker is full, for an activation.
pub(in crate::api) fn activation_busy() -> Problem {
    let detail = "Too many calls to the broker are under way.";
    Problem::unavailable("upstream_busy", detail, LANE_RETRY_S)
}

/// The user's own sync or deletion is under way.
pub(in crate::api) fn in_progress() -> Problem {
    let detail = "Another sync or deletion of yours is under way; the code was not used.";
    Problem::new(409, "sync_in_progress", detail).with("Retry-After", BUSY_RETRY_S.to_string())
}

/// The code belongs to another person at the broker than the portfolio that is stored. By now it is
/// used: the broker alone knows whose it is.
pub(in crate::api) fn broker_user_changed(broker: Broker, kept: &str, sent: &str) -> Problem {
    let detail = format!(
        "The code is of the user {} at {}, and the portfolio stored here of the user {}; nothing \
         was changed. The code is used. To put the other portfolio in its place, log in at the \
         broker again and send replace_broker_user with the new code.",
        masked(sent),
        broker.name(),
        masked(kept)
    );
    Problem::new(409, "broker_user_changed", detail)
}

/// First and last letter: enough for who knows both ids, and of no use to others.
fn masked(id: &str) -> String {
    let mut letters = id.chars();
    match (letters.next(), letters.next_back(), letters.count()) {
        (Some(first), Some(last), 1..) => format!("{first}***{last}"),
        _ => "***".into(),
    }
}

/// The user's last export is not finished.
pub(in crate::api) fn export_in_progress() -> Problem {
    let detail = "Another export of yours is under way, or not read to its end yet.";
    Problem::new(409, "export_in_progress", detail).with("Retry-After", BUSY_RETRY_S.to_string())
}

/// Of a journal written before its text was bounded.
pub(in crate::api) fn export_too_long() -> Problem {
    let detail = "The journal is too long for one document; read it by pages from /api/journal.";
    Problem::new(409, "export_too_long", detail)
}

/// The lane that makes answers is full or slow.
pub(in crate::api) fn portfolio_busy() -> Problem {
    let detail = "Too many portfolios are being read.";
    Problem::unavailable("portfolio_busy", detail, LANE_RETRY_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_told_by_its_first_and_last_letter_alone() {
        for (id, expected) in [("ZX0042", "Z***2"), ("ABC", "A***C"), ("AB", "***"), ("", "***")] {
            assert_eq!(masked(id), expected, "{id}");
        }
    }
}
