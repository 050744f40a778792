//! The service's own reports, and what of them is shown of its tokens and its backup.

use jiff::Timestamp;
use serde::Serialize;

use crate::base::ByBroker;
use crate::views::account::SessionStatus;
use crate::views::health::{Health, HealthBackup};
use crate::views::values::Instant;

#[derive(Debug, Serialize)]
pub(super) struct TokenFacts {
    pub broker: &'static str,
    /// `valid`, `dead` or `none`.
    pub state: &'static str,
    pub expires_at: Option<Instant>,
    pub left_s: Option<i64>,
    /// Another node was given it.
    pub of_other_node: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct BackupFacts {
    /// Of the last good one.
    pub succeeded_ist: Option<Instant>,
    pub age_s: Option<i64>,
    /// Whether the last attempt failed.
    pub failed: bool,
}

/// The service's own reports, and the time by its clock and ours.
pub(super) struct ServiceReport {
    pub health: Health,
    /// Broker A's has a member more, which is not shown.
    pub tokens: ByBroker<SessionStatus>,
    /// The service's clock and this machine's at the same moment.
    pub service_now: Option<Timestamp>,
    pub here_now: Timestamp,
}

/// Backups are dated by the machine's clock, whatever the service's reads.
pub(super) fn backed_up(backup: &HealthBackup, here_now: Timestamp) -> BackupFacts {
    let age_s = |at: Instant| here_now.duration_since(at.0).as_secs().max(0);
    BackupFacts {
        succeeded_ist: backup.succeeded_ist,
        age_s: backup.succeeded_ist.map(age_s),
        failed: backup.failed,
    }
}
