//! The health report of the feeds and of what is shown of the market. On the scheduler's thread;
//! nothing here waits.

use serde::Serialize;

use super::duties::calendar_until;
use super::states::feed_state;
use crate::base::ist;
use crate::warmers::quotes::feed_state::FeedState;
use crate::warmers::scheduler::Scheduler;

#[derive(Serialize)]
pub(crate) struct Feeds {
    pub(crate) broker_a: Feed,
    pub(crate) public: Feed,
}

#[derive(Serialize)]
pub(crate) struct Feed {
    pub(crate) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) age_ms: Option<u64>,
    /// How far it runs behind the exchange by its nature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay_s: Option<u32>,
    pub(crate) rounds: u64,
    pub(crate) failures: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Market {
    pub(crate) phase: &'static str,
    pub(crate) calendar_known: bool,
    /// The last date of which it is known whether the market trades.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calendar_until: Option<String>,
    /// How old what the snapshot shows is, as it says itself.
    pub(crate) as_of_ist: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay_s: Option<u32>,
    pub(crate) stale: Option<bool>,
    pub(crate) source: Option<&'static str>,
    pub(crate) instruments: usize,
    pub(crate) instruments_origin: &'static str,
}

/// The market, and what is shown of it.
pub(crate) fn market(scheduler: &Scheduler) -> Market {
    let instruments = scheduler.parts.instruments.load();
    let age = scheduler.snapshot.as_ref().map(|held| held.market.age);
    Market {
        phase: scheduler.status.phase.as_str(),
        calendar_known: scheduler.status.calendar_known,
        calendar_until: calendar_until(scheduler).map(|date| date.to_string()),
        as_of_ist: age.map(|age| ist::iso(age.as_of)),
        delay_s: age.and_then(|age| age.delay_s),
        stale: age.map(|age| age.stale),
        source: age.map(|age| age.source.as_str()),
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
        delay_s: slot.succeeded_mono_ms.and_then(|_| slot.time.delay_of_primary_s()),
        rounds: slot.rounds,
        failures: slot.failures,
        failure: slot.failure.clone(),
    }
}
