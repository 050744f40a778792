//! What broker A's ticker is to subscribe, and what its prices mean for the polls of the same
//! source. On the scheduler's thread.

use jiff::{SignedDuration, Timestamp};

use super::feed_state::FeedState;
use crate::base::Source;
use crate::brokers::broker_a::ticker::Wanted;
use crate::market::{MarketCalendar, MarketStatus, Phase};
use crate::warmers::context::WarmerContext;

/// The ticker opens this long before the first session of a date and closes this long after the
/// last: with a pre-open at 09:00, at 08:45.
const WAKES_BEFORE: SignedDuration = SignedDuration::from_mins(15);
const RESTS_AFTER: SignedDuration = SignedDuration::from_mins(30);

/// Prices that only slow polls confirmed count as fresh for this long after the ticks have stopped:
/// until a call could be made and answered.
const SETTLE_MS: u64 = 2_500;

/// Ticks flow while the source has vouched for its leading indices within this time. They tick each
/// second.
const VOUCHED_MS: u64 = 4_000;

/// Owner of what is told to the ticker, and of what it means.
pub struct TickingTask {
    /// The second, by the wall clock, of the last look at what is wanted.
    told_s: i64,
    /// Monotonic time at which ticks were last seen to flow.
    live_mono_ms: Option<u64>,
    is_live: bool,
}

/// What the polls of a source are for now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eased {
    /// The source's ticks flow, so that polls only confirm them.
    pub polls: bool,
    /// They did a moment ago: prices that no poll has confirmed since are not stale yet.
    pub limits: bool,
}

impl TickingTask {
    /// Nothing has been told.
    pub fn new() -> Self {
        Self { told_s: 0, live_mono_ms: None, is_live: false }
    }

    /// Looks whether ticks flow, and tells once a second what is wanted.
    pub fn poll(
        &mut self,
        context: &WarmerContext,
        status: &MarketStatus,
        feed: &FeedState,
        now_mono_ms: u64,
    ) {
        let Some(ticker) = &context.ticker else { return };
        // Ticks that are late or not believed are no reason to call less.
        self.is_live = ticker.is_live() && feed.vouched_within(VOUCHED_MS, now_mono_ms);
        if self.is_live {
            self.live_mono_ms = Some(now_mono_ms);
        }
        let now = context.clock.now();
        if now.as_second() == self.told_s {
            return;
        }
        self.told_s = now.as_second();
        let indices = context.indices.all().map(|index| index.symbol.clone()).collect();
        ticker.want(Wanted {
            awake: is_awake(&context.calendar, now),
            moves: status.phase == Phase::Open,
            trades: matches!(status.phase, Phase::PreOpen | Phase::Open | Phase::Closing),
            indices,
            shares: context.l1.wanted(now_mono_ms, context.ticker_symbols_max),
        });
    }

    /// What its ticks mean for the polls of `source`.
    pub fn eased(&self, source: Source, now_mono_ms: u64) -> Eased {
        let lately = |at: u64| now_mono_ms.saturating_sub(at) <= SETTLE_MS;
        match source {
            Source::BrokerA => {
                Eased { polls: self.is_live, limits: self.live_mono_ms.is_some_and(lately) }
            }
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
}
