//! Answers if a portfolio's response could not be computed, or if the user has to wait before a
//! call to the broker.

use crate::api::errors::too_early;
use crate::api::portfolio::export_limit::Crowded;
use crate::base::Broker;
use crate::base::limiter::TooEarly;
use crate::http::Problem;
use crate::portfolio::Overflow;

/// `Retry-After` of a full queue, or of another request of the same user.
const BUSY_RETRY_S: u64 = 5;
/// `Retry-After` of a full lane whose jobs are short.
const LANE_RETRY_S: u64 = 1;

impl From<Overflow> for Problem {
    fn from(error: Overflow) -> Self {
        Self::internal().because(error)
    }
}

impl From<Crowded> for Problem {
    fn from(Crowded: Crowded) -> Self {
        let detail = "Too many long exports are under way.";
        Self::unavailable("export_busy", detail, BUSY_RETRY_S)
    }
}

/// The user has tried to sync too often; no broker was called.
pub(super) fn too_many_attempts(throttled: TooEarly) -> Problem {
    let detail = "You have tried to sync too often; the code was not used.";
    too_early("too_many_attempts", detail, throttled)
}

/// The lane of the broker is full.
pub(super) fn sync_busy() -> Problem {
    let detail = "Too many syncs are under way; nothing was changed.";
    Problem::unavailable("sync_busy", detail, BUSY_RETRY_S)
}

/// The lane of the broker is full, for an activation.
pub(super) fn activation_busy() -> Problem {
    let detail = "Too many calls to the broker are under way.";
    Problem::unavailable("upstream_busy", detail, LANE_RETRY_S)
}

/// The user's own sync or deletion is under way.
pub(super) fn in_progress() -> Problem {
    let detail = "Another sync or deletion of yours is under way; the code was not used.";
    Problem::new(409, "sync_in_progress", detail).with("Retry-After", BUSY_RETRY_S.to_string())
}

/// The code belongs to another person at the broker than the stored portfolio. The code is used up,
/// because only the broker knows its owner.
pub(super) fn broker_user_changed(broker: Broker, kept: &str, sent: &str) -> Problem {
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

/// A broker answered with no holdings, where some are stored.
pub(super) fn no_holdings_sent(broker: Broker, holdings: usize) -> Problem {
    let detail = format!(
        "{} names no holdings, and {holdings} of it are stored here; nothing was changed. Brokers \
         send an empty list at times when they mean an error. The code is used. If there is \
         nothing left, log in at the broker again and send replace_with_none with the new code.",
        broker.name(),
    );
    Problem::new(409, "no_holdings_sent", detail)
}

/// First and last letter: enough for a user who knows both ids, useless to others.
fn masked(id: &str) -> String {
    let mut letters = id.chars();
    match (letters.next(), letters.next_back(), letters.count()) {
        (Some(first), Some(last), 1..) => format!("{first}***{last}"),
        _ => "***".into(),
    }
}

/// The user's last export is not finished.
pub(super) fn export_in_progress() -> Problem {
    let detail = "Another export of yours is under way, or not read to its end yet.";
    Problem::new(409, "export_in_progress", detail).with("Retry-After", BUSY_RETRY_S.to_string())
}

/// A journal that was written before its text was bounded is too long.
pub(super) fn export_too_long() -> Problem {
    let detail = "The journal is too long for one document; read it by pages from /api/journal.";
    Problem::new(409, "export_too_long", detail)
}

/// The lane that makes answers is full or slow.
pub(super) fn portfolio_busy() -> Problem {
    let detail = "Too many portfolios are being read.";
    Problem::unavailable("portfolio_busy", detail, LANE_RETRY_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_told_by_its_first_and_last_letter_alone() {
        for (id, expected) in [
            ("ZX0042", "Z***2"),
            ("ABC", "A***C"),
            ("AB", "***"),
            ("", "***"),
        ] {
            assert_eq!(masked(id), expected, "{id}");
        }
    }
}
