//! The health report of the feeds and of what is shown of the market. On the scheduler's thread;
//! nothing here waits.

use super::duties::calendar_until;
use super::states::feed_state;
use crate::views::health::{Feed, HealthMarket};
use crate::views::values::{Day, Delay, Instant};
use crate::warmers::quotes::feed_state::FeedState;
use crate::warmers::scheduler::Scheduler;

/// The market, and what is shown of it.
pub(crate) fn market(scheduler: &Scheduler) -> HealthMarket {
    let instruments = scheduler.parts.instruments.load();
    let age = scheduler.snapshot.as_ref().map(|held| held.market.age);
    HealthMarket {
        phase: scheduler.status.phase,
        calendar_known: scheduler.status.calendar_known,
        calendar_until: calendar_until(scheduler).map(Day),
        as_of_ist: age.map(|age| Instant(age.as_of)),
        delay_s: age.and_then(|age| age.delay_s).map(Delay),
        stale: age.map(|age| age.stale),
        source: age.map(|age| age.source),
        instruments: instruments.len(),
        instruments_origin: instruments.origin().as_str(),
    }
}

/// A feed, which may be switched off.
pub(crate) fn feed(scheduler: &Scheduler, slot: Option<&FeedState>, now_mono_ms: u64) -> Feed {
    let Some(slot) = slot else {
        let (state, age_ms, delay_s, failure) = ("off", None, None, None);
        return Feed { state, age_ms, delay_s, rounds: 0, failures: 0, failure };
    };
    let state = feed_state(scheduler, slot, now_mono_ms);
    Feed {
        state,
        age_ms: slot.succeeded_mono_ms.map(|at| now_mono_ms.saturating_sub(at)),
        delay_s: slot.succeeded_mono_ms.and_then(|_| slot.time.delay_of_primary_s()).map(Delay),
        rounds: slot.rounds,
        failures: slot.failures,
        failure: slot.failure.clone(),
    }
}
