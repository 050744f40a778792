//! What an operator has to see to now and then: backups, reloads, the calendar, the clock, the
//! log, the listener of metrics. On the scheduler's thread; nothing here waits.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;

use super::states::clock_ahead_ms;
use crate::base::ist;
use crate::ops::log;
use crate::warmers::scheduler::Scheduler;

/// What the log lost since the start.
#[derive(Serialize)]
pub(crate) struct LogReport {
    lines_dropped: u64,
    writes_failed: u64,
}

/// The last backup that a command made beside the service, or tried to.
#[derive(Serialize)]
pub(crate) struct BackupReport {
    /// Of the last good one.
    #[serde(skip_serializing_if = "Option::is_none")]
    succeeded_ist: Option<String>,
    /// The last attempt came to nothing.
    failed: bool,
}

/// The last reload, where it was refused.
#[derive(Serialize)]
pub(crate) struct ReloadReport {
    refused_ist: String,
}

/// This machine's clock against the exchange's.
#[derive(Serialize)]
pub(crate) struct ClockReport {
    /// Only where it is too far for honest delays; negative: behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead_of_exchange_ms: Option<i64>,
    /// Only where it was set to another time (`BHAV_NOW`, the demo).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    set: bool,
}

pub(crate) fn clock(scheduler: &Scheduler, now_mono_ms: u64) -> ClockReport {
    let ahead_of_exchange_ms = clock_ahead_ms(scheduler, now_mono_ms);
    ClockReport { ahead_of_exchange_ms, set: scheduler.parts.clock.is_set() }
}

/// The listener of metrics and probes, where it could not be had at its default address.
#[derive(Serialize)]
pub(crate) struct AdminListenerReport {
    failure: String,
}

pub(crate) fn admin_listener(scheduler: &Scheduler) -> Option<AdminListenerReport> {
    let failure = scheduler.parts.admin_failure.clone()?;
    Some(AdminListenerReport { failure })
}

pub(crate) fn backup(scheduler: &Scheduler) -> Option<BackupReport> {
    let record = scheduler.store_probe.last_backup()?;
    let succeeded = record.succeeded_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    Some(BackupReport { succeeded_ist: succeeded.map(ist::iso), failed: record.failed() })
}

pub(crate) fn reload(scheduler: &Scheduler) -> Option<ReloadReport> {
    let refused_at = scheduler.parts.reloads.refused_at()?;
    Some(ReloadReport { refused_ist: ist::iso(refused_at) })
}

/// The last date of which the calendar knows whether the market trades.
pub(crate) fn calendar_until(scheduler: &Scheduler) -> Option<Date> {
    let today = ist::zoned(scheduler.parts.clock.now()).date();
    scheduler.parts.calendar.covered_until(today)
}

/// The midnight after it.
pub(crate) fn calendar_ends(scheduler: &Scheduler) -> Option<Timestamp> {
    let after = calendar_until(scheduler)?.tomorrow().ok()?;
    Some(ist::instant(after.at(0, 0, 0, 0)))
}

pub(crate) fn log_report() -> LogReport {
    LogReport { lines_dropped: log::lines_dropped(), writes_failed: log::writes_failed() }
}
