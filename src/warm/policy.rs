//! How often feeds are asked and when what they said counts as stale, by market phase. Pure.

use crate::base::Source;
use crate::market::{MarketStatus, Phase};

/// Between rounds while the market rests: prices do not move, so this only notices a feed that
/// comes back.
const RESTING_BROKER_A_MS: u64 = 30_000;
const RESTING_PUBLIC_MS: u64 = 60_000;

/// A feed may miss one round and take this long before its data counts as stale.
const GRACE_BROKER_A_MS: u64 = 1_500;
const GRACE_PUBLIC_MS: u64 = 7_000;

/// What is received while the market rests is a closing price and stays one: the tight budget is
/// spent on other symbols before it is asked for again. Beyond this the feed itself is in doubt.
const QUOTE_RESTING_MS: u64 = 30 * 60_000;

/// A call that is not answered for this long, or a feed that may not be asked for this long, is not
/// relied on. A quote call takes a fraction of a second; what is left of the time until the data
/// counts as stale is enough for the other feed's answer.
const PATIENCE_MS: u64 = 1_500;

/// During continuous trading an index moves every second, so a source whose index time stands still
/// answers but is mute. Standing is measured with our own clock, which a wrong wall clock on either
/// side cannot mislead; the age only finds a source that was mute before it was first asked, and
/// leaves room for clocks that are minutes apart. The public provider is a quarter of an hour late
/// by nature, and steps by the minute.
const MUTE_BROKER_A: Mute = Mute { stands_ms: 30_000, age_ms: 5 * 60_000 };
const MUTE_PUBLIC: Mute = Mute { stands_ms: 10 * 60_000, age_ms: 40 * 60_000 };

/// After the opening bell the last prices of the pre-open may stand for a while.
const MUTE_LEAD_IN_MS: i64 = 120_000;

/// Intervals and limits in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub broker_a: Pace,
    pub public: Pace,
}

/// For one feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two rounds that nobody asked for; 0: as fast as the feed's budget allows.
    pub interval_ms: u64,
    /// Data received longer ago is stale.
    pub stale_after_ms: u64,
    /// The same for the quote of a single symbol, which comes less often than the indices.
    pub quote_stale_after_ms: u64,
    /// Not relied on after waiting this long.
    pub patience_ms: u64,
    /// When the index's own time shows that nobody moves it; `None` while indices rest.
    pub mute: Option<Mute>,
}

/// Limits on the primary index's own time, either of which makes a feed mute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mute {
    /// Unchanged for longer than this, by our monotonic clock.
    pub stands_ms: u64,
    /// Further back than this, by the wall clock.
    pub age_ms: i64,
}

impl Policy {
    /// The policy for a market status that has stood for `stood_ms`.
    pub fn of(
        status: &MarketStatus,
        stood_ms: i64,
        broker_a_interval_ms: u64,
        public_interval_ms: u64,
    ) -> Self {
        let moving = matches!(
            status.phase,
            Phase::PreOpen | Phase::Open | Phase::Closing | Phase::PostClose
        );
        let trading = status.phase == Phase::Open && stood_ms >= MUTE_LEAD_IN_MS;
        let pace = |budget_ms: u64, resting_ms: u64, grace_ms: u64, mute: Mute| {
            let interval_ms = if moving { 0 } else { resting_ms };
            let stale_after_ms = budget_ms.max(interval_ms) * 2 + grace_ms;
            // The pace itself is no reason for doubt.
            let patience_ms = PATIENCE_MS.max(budget_ms + PATIENCE_MS / 3);
            let quote_stale_after_ms =
                if moving { stale_after_ms } else { stale_after_ms.max(QUOTE_RESTING_MS) };
            let mute = trading.then_some(mute);
            Pace { interval_ms, stale_after_ms, quote_stale_after_ms, patience_ms, mute }
        };
        Self {
            broker_a: pace(
                broker_a_interval_ms,
                RESTING_BROKER_A_MS,
                GRACE_BROKER_A_MS,
                MUTE_BROKER_A,
            ),
            public: pace(public_interval_ms, RESTING_PUBLIC_MS, GRACE_PUBLIC_MS, MUTE_PUBLIC),
        }
    }

    /// These limits, or those of `before` where they are wider: until a round could be asked under
    /// a new phase's limits, they would call everything stale.
    pub fn widened_to(mut self, before: &Self) -> Self {
        let paces = [(&mut self.broker_a, &before.broker_a), (&mut self.public, &before.public)];
        for (pace, before) in paces {
            pace.stale_after_ms = pace.stale_after_ms.max(before.stale_after_ms);
            pace.quote_stale_after_ms = pace.quote_stale_after_ms.max(before.quote_stale_after_ms);
        }
        self
    }

    /// For one feed.
    pub fn pace(&self, source: Source) -> Pace {
        match source {
            Source::BrokerA => self.broker_a,
            Source::Public => self.public,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::MarketCalendar;

    fn at(text: &str, stood_ms: i64) -> Policy {
        let status = MarketCalendar::embedded().status(text.parse().unwrap());
        Policy::of(&status, stood_ms, 1_050, 15_000)
    }

    #[test]
    fn trading_hours_use_the_whole_budget() {
        let open = at("2026-11-20T11:00:00+05:30", 3_600_000);
        assert_eq!(open.broker_a.interval_ms, 0);
        assert_eq!(open.broker_a.stale_after_ms, 3_600);
        assert_eq!(open.public.stale_after_ms, 37_000);
        assert!(open.broker_a.patience_ms < open.broker_a.stale_after_ms / 2);
        assert_eq!(open.broker_a.mute, Some(MUTE_BROKER_A));
        assert_eq!(at("2026-11-20T09:15:10+05:30", 10_000).broker_a.mute, None);
    }

    #[test]
    fn a_frozen_auction_is_not_mute_and_a_closed_market_rests() {
        let closing = at("2026-11-20T15:20:00+05:30", 300_000);
        assert_eq!(closing.broker_a.mute, None);
        assert_eq!(closing.broker_a.interval_ms, 0);
        let night = at("2026-11-20T22:00:00+05:30", 9_000_000);
        assert_eq!(night.broker_a.interval_ms, RESTING_BROKER_A_MS);
        assert!(night.broker_a.stale_after_ms > RESTING_BROKER_A_MS * 2);
        assert_eq!(night.public.quote_stale_after_ms, QUOTE_RESTING_MS);
        assert_eq!(closing.public.quote_stale_after_ms, closing.public.stale_after_ms);
    }
}
