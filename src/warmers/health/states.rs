//! The words of the health report: what each part's state is called. Pure, on the scheduler's
//! thread; nothing here waits.

use crate::base::Source;
use crate::brokers::Readiness;
use crate::warmers::quotes::feed_state::FeedState;
use crate::warmers::scheduler::Scheduler;

/// How far the machine's clock is from the exchange's. A feed that is not asked any more may still
/// hold what it said of a clock that is right again, so who speaks has the word.
pub(crate) fn clock_ahead_ms(scheduler: &Scheduler, now_mono_ms: u64) -> Option<i64> {
    let slots = [Some(&scheduler.broker_a), scheduler.public.as_ref()];
    if slots.into_iter().flatten().any(|slot| scheduler.speaks(slot, now_mono_ms)) {
        return None;
    }
    slots.into_iter().flatten().find_map(|slot| slot.clock_ahead_ms(now_mono_ms))
}

pub(crate) fn index_state(scheduler: &Scheduler) -> &'static str {
    match &scheduler.snapshot {
        None if scheduler.slots_failed() => "failing",
        None => "starting",
        Some(snapshot) if snapshot.market.age.stale => "stale",
        Some(_) => "ok",
    }
}

pub(crate) fn quotes_state(scheduler: &Scheduler, now_mono_ms: u64) -> &'static str {
    let slots = [Some(&scheduler.broker_a), scheduler.public.as_ref()];
    let speaks = |slot: &FeedState| scheduler.speaks(slot, now_mono_ms);
    let slots = || slots.into_iter().flatten();
    match (slots().any(speaks), scheduler.slots_failed()) {
        (true, _) => "ok",
        (false, true) => "failing",
        (false, false) if slots().any(|slot| slot.succeeded_mono_ms.is_some()) => "stale",
        (false, false) => "starting",
    }
}

pub(crate) fn instruments_state(scheduler: &Scheduler) -> &'static str {
    let fetched = scheduler.parts.instruments.load().origin() == crate::market::Origin::BrokerA;
    match (&scheduler.instruments.failure, fetched) {
        (Some(_), _) => "failing",
        (None, true) => "ok",
        // The embedded list serves until a token brings the day's.
        (None, false) => "paused",
    }
}

/// The cause first, where one is known: what an operator would mend.
pub(crate) fn feed_state(
    scheduler: &Scheduler,
    slot: &FeedState,
    now_mono_ms: u64,
) -> &'static str {
    let now = scheduler.parts.clock.now();
    let status = scheduler.parts.token.status(now);
    let is_broker_a = slot.feed.source() == Source::BrokerA;
    let pace = scheduler.pace(slot.feed.source());
    match slot.feed.readiness() {
        Readiness::Off => return "off",
        Readiness::NoPermission => return "no_permission",
        Readiness::NoToken if status.initialized => return "token_dead",
        Readiness::NoToken if !scheduler.parts.broker_a.has_app() => return "off",
        Readiness::NoToken => return "no_token",
        Readiness::Open(_) => return "open",
        _ if is_broker_a && status.no_permission => return "no_permission",
        Readiness::Paced(_) | Readiness::Ready => {}
    }
    if slot.hangs(pace, now_mono_ms) {
        return "hanging";
    }
    let in_use = is_broker_a || !scheduler.speaks(&scheduler.broker_a, now_mono_ms);
    let freshness = scheduler.parts.l1.freshness();
    match slot.failure {
        // One failure may be chance; more are told while the prices are fresh still.
        Some(_) if slot.keeps_failing() => "failing",
        _ if scheduler.speaks(slot, now_mono_ms) => "ok",
        Some(_) => "failing",
        // Nobody has asked it for a while, or ever.
        None if !in_use || slot.rounds == 0 => "standby",
        // After the bell one that is behind shows yesterday's close for as long as it is behind.
        None if slot.time.is_before_the_bell(&scheduler.parts.calendar, now) => "starting",
        None if slot.is_mute(freshness, now_mono_ms) => "mute",
        None if slot.succeeded_mono_ms.is_none() => "starting",
        None => "stale",
    }
}
