//! Decides which symbols broker A's ticker subscribes to, and how its ticks ease the polls of the
//! same source. On the scheduler's thread.

use jiff::{SignedDuration, Timestamp};

use crate::base::{Source, Symbol};
use crate::brokers::Batch;
use crate::brokers::broker_a::ticker::Wanted;
use crate::market::{MarketCalendar, MarketStatus, Phase};
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::feed_state::{Answer, FeedState};
use crate::warmers::quotes::tick_log::TickLog;

/// The ticker connects this long before the first session of a date and disconnects this long after
/// the last: at 08:45 for a pre-open at 09:00.
const WAKES_BEFORE: SignedDuration = SignedDuration::from_mins(15);
const RESTS_AFTER: SignedDuration = SignedDuration::from_mins(30);

/// Prices that only slow polls confirmed count as fresh for this long after the ticks were seen to
/// have stopped, until a call could be made and answered.
const SETTLE_MS: u64 = 2_500;

/// Ticks flow while they have vouched for the leading indices within this time. Those tick each
/// second. Polls do not count here: late or disbelieved ticks are no reason to poll less.
const VOUCHED_MS: u64 = 4_000;

/// Owner of the ticker's subscription, and of how its ticks ease polls.
pub(crate) struct TickingTask {
    /// The second, by the wall clock, of the last update of the subscription.
    told_s: i64,
    /// Ticks flow and are believed.
    pub is_live: bool,
    /// When ticks were first seen to have stopped; `None` while they flow or before they ever did.
    stopped_mono_ms: Option<u64>,
    /// Number of polls that confirm every wanted symbol.
    calls: u64,
    /// The comparison of ticks with polls.
    pub log: TickLog,
}

/// The purpose of a source's polls now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Eased {
    /// The source's ticks flow, and polls only confirm them: the number of polls that confirm all.
    pub confirming: Option<u64>,
    /// Ticks flow, or did a moment ago: prices that no poll has confirmed since are not stale yet.
    pub limits: bool,
}

impl TickingTask {
    pub(crate) fn new() -> Self {
        Self {
            told_s: 0,
            is_live: false,
            stopped_mono_ms: None,
            calls: 1,
            log: TickLog::new(),
        }
    }

    pub(crate) fn pushed(&mut self, source: Source, batch: &Batch, now_mono_ms: u64) {
        if source == Source::BrokerA {
            self.log.pushed(&batch.quotes, now_mono_ms);
        }
    }

    /// Compares a poll's quotes with the ticks, while ticks flow.
    pub(crate) fn polled(&mut self, source: Source, answer: Option<&Answer>, now_mono_ms: u64) {
        if let (Source::BrokerA, true, Some(Ok(batch))) = (source, self.is_live, answer) {
            self.log.polled(&batch.quotes, now_mono_ms);
        }
    }

    /// Checks whether ticks flow, and updates the subscription once a second.
    pub(crate) fn poll(
        &mut self,
        context: &WarmerContext,
        status: &MarketStatus,
        feed: &FeedState,
        now_mono_ms: u64,
    ) {
        let ticker = &context.ticker;
        let is_live = ticker.is_live() && feed.pushed_within(VOUCHED_MS, now_mono_ms);
        self.follow(is_live, now_mono_ms);
        let now = context.clock.now();
        if now.as_second() == self.told_s || !ticker.is_on() {
            return;
        }
        self.told_s = now.as_second();
        let indices: Vec<Symbol> = context
            .indices
            .all()
            .map(|index| index.symbol.clone())
            .collect();
        let shares = context.l1.wanted(now_mono_ms, 1, ticker.symbols_max());
        let calls = (indices.len() + shares.len()).div_ceil(feed.feed.batch_max().max(1));
        self.calls = calls as u64;
        ticker.want(Wanted {
            // Only the leader's ticker runs.
            awake: context.lead.may_ask() && is_awake(&context.calendar, now),
            moves: status.phase == Phase::Open,
            trades: matches!(status.phase, Phase::PreOpen | Phase::Open | Phase::Closing),
            indices,
            shares,
            standing: self.log.standing(now_mono_ms),
        });
    }

    /// The settling time counts from when the stop was seen, so that a scheduler that did not run
    /// for a while still polls first.
    fn follow(&mut self, is_live: bool, now_mono_ms: u64) {
        match (self.is_live, is_live) {
            (true, false) => {
                self.stopped_mono_ms = Some(now_mono_ms);
                self.log.forget();
            }
            (_, true) => self.stopped_mono_ms = None,
            (false, false) => {}
        }
        self.is_live = is_live;
    }

    /// The effect of ticks on the polls of `source`.
    pub(crate) fn eased(&self, source: Source, now_mono_ms: u64) -> Eased {
        let lately = |at: u64| now_mono_ms.saturating_sub(at) <= SETTLE_MS;
        match source {
            Source::BrokerA => Eased {
                confirming: self.is_live.then_some(self.calls),
                limits: self.is_live || self.stopped_mono_ms.is_some_and(lately),
            },
            Source::Public => Eased::default(),
        }
    }
}

/// Whether some session runs, has just ended or is about to begin.
fn is_awake(calendar: &MarketCalendar, now: Timestamp) -> bool {
    let trades =
        |at: Timestamp| !matches!(calendar.status(at).phase, Phase::Closed | Phase::Holiday);
    let before = now.checked_sub(RESTS_AFTER).is_ok_and(trades);
    before || trades(now) || now.checked_add(WAKES_BEFORE).is_ok_and(trades)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_awake_from_a_quarter_before_nine_until_half_an_hour_after_the_last_session() {
        let calendar = MarketCalendar::embedded();
        for (at, expected) in [
            ("2026-11-20T08:44:59+05:30", false),
            ("2026-11-20T08:45:00+05:30", true),
            ("2026-11-20T11:00:00+05:30", true),
            ("2026-11-20T15:45:00+05:30", true),
            ("2026-11-20T16:29:59+05:30", true),
            ("2026-11-20T16:31:00+05:30", false),
            ("2026-11-20T23:00:00+05:30", false),
            ("2026-11-21T11:00:00+05:30", false),
            ("2026-12-25T11:00:00+05:30", false),
        ] {
            assert_eq!(is_awake(&calendar, at.parse().unwrap()), expected, "{at}");
        }
    }

    #[test]
    fn limits_stay_wide_until_calls_could_be_made_counted_from_when_the_end_was_seen() {
        let mut ticking = TickingTask::new();
        let eased = |ticking: &TickingTask, at| {
            let eased = ticking.eased(Source::BrokerA, at);
            (eased.confirming.is_some(), eased.limits)
        };
        assert_eq!(eased(&ticking, 0), (false, false), "never flowed");
        ticking.follow(false, 0);
        assert_eq!(eased(&ticking, 1), (false, false));
        ticking.follow(true, 1_000);
        assert_eq!(eased(&ticking, 60_000), (true, true), "the scheduler did not run");
        ticking.follow(false, 60_000);
        ticking.follow(false, 60_200);
        assert_eq!(eased(&ticking, 62_500), (false, true));
        assert_eq!(eased(&ticking, 62_501), (false, false));
        ticking.follow(true, 63_000);
        assert_eq!(eased(&ticking, 63_000), (true, true));
        assert_eq!(ticking.eased(Source::Public, 63_000), Eased::default());
    }
}
