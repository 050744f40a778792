//! What an operator has to see to now and then: backups, reloads, the calendar, the clock, the
//! log, the listener of metrics. On the scheduler's thread; nothing here waits.

use jiff::Timestamp;
use jiff::civil::Date;

use super::states::clock_ahead_ms;
use crate::base::ist;
use crate::ops::log;
use crate::views::health::{
    HealthAdminListener, HealthBackup, HealthClock, HealthLog, HealthReload,
};
use crate::views::values::{Instant, Mark};
use crate::warmers::scheduler::Scheduler;

pub(crate) fn clock(scheduler: &Scheduler, now_mono_ms: u64) -> HealthClock {
    let ahead_of_exchange_ms = clock_ahead_ms(scheduler, now_mono_ms);
    HealthClock { ahead_of_exchange_ms, set: Mark(scheduler.parts.clock.is_set()) }
}

pub(crate) fn admin_listener(scheduler: &Scheduler) -> Option<HealthAdminListener> {
    let failure = scheduler.parts.admin_failure.clone()?;
    Some(HealthAdminListener { failure })
}

pub(crate) fn backup(scheduler: &Scheduler) -> Option<HealthBackup> {
    let record = scheduler.store_probe.last_backup()?;
    let succeeded = record.succeeded_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    Some(HealthBackup { succeeded_ist: succeeded.map(Instant), failed: record.failed() })
}

pub(crate) fn reload(scheduler: &Scheduler) -> Option<HealthReload> {
    let refused_at = scheduler.parts.reloads.refused_at()?;
    Some(HealthReload { refused_ist: Instant(refused_at) })
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

pub(crate) fn log_report() -> HealthLog {
    HealthLog { lines_dropped: log::lines_dropped(), writes_failed: log::writes_failed() }
}
