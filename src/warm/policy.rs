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

/// During continuous trading an index moves every second. A source whose newest index price is
/// older than this answers, but is mute. The public provider is a quarter of an hour late by
/// nature.
const MUTE_BROKER_A_MS: i64 = 60_000;
const MUTE_PUBLIC_MS: i64 = 40 * 60_000;

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
    /// An index price whose own time lies further back is stale; `None` while indices rest.
    pub mute_after_ms: Option<i64>,
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
        let pace = |budget_ms: u64, resting_ms: u64, grace_ms: u64, mute_ms: i64| {
            let interval_ms = if moving { 0 } else { resting_ms };
            let stale_after_ms = budget_ms.max(interval_ms) * 2 + grace_ms;
            Pace { interval_ms, stale_after_ms, mute_after_ms: trading.then_some(mute_ms) }
        };
        Self {
            broker_a: pace(
                broker_a_interval_ms,
                RESTING_BROKER_A_MS,
                GRACE_BROKER_A_MS,
                MUTE_BROKER_A_MS,
            ),
            public: pace(public_interval_ms, RESTING_PUBLIC_MS, GRACE_PUBLIC_MS, MUTE_PUBLIC_MS),
        }
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
        assert_eq!(open.broker_a.mute_after_ms, Some(60_000));
        assert_eq!(at("2026-11-20T09:15:10+05:30", 10_000).broker_a.mute_after_ms, None);
    }

    #[test]
    fn a_frozen_auction_is_not_mute_and_a_closed_market_rests() {
        let closing = at("2026-11-20T15:20:00+05:30", 300_000);
        assert_eq!(closing.broker_a.mute_after_ms, None);
        assert_eq!(closing.broker_a.interval_ms, 0);
        let night = at("2026-11-20T22:00:00+05:30", 9_000_000);
        assert_eq!(night.broker_a.interval_ms, RESTING_BROKER_A_MS);
        assert!(night.broker_a.stale_after_ms > RESTING_BROKER_A_MS * 2);
    }
}
