//! How often feeds are asked, how long they may leave a price as it is, and when they can be
//! expected to know the official close. Pure.

use jiff::SignedDuration;

use crate::base::Source;
use crate::cache::Limits;

/// Between polls while the market rests: prices do not move, so this only notices a feed that
/// comes back.
const RESTING_BROKER_A_MS: u64 = 30_000;
const RESTING_PUBLIC_MS: u64 = 60_000;

/// A feed may miss one poll and take this long before its data counts as stale.
const GRACE_BROKER_A_MS: u64 = 1_500;
const GRACE_PUBLIC_MS: u64 = 7_000;

/// A call that is not answered for this long, or a feed that may not be asked for this long, is not
/// relied on. A quote call takes a fraction of a second; what is left of the time until the data
/// counts as stale is enough for the other feed's answer.
const PATIENCE_MS: u64 = 1_500;

/// After the official close providers need a moment to settle on it.
const CLOSE_MARGIN_BROKER_A: SignedDuration = SignedDuration::from_mins(10);

/// The public provider is a quarter of an hour late by nature.
const CLOSE_MARGIN_PUBLIC: SignedDuration = SignedDuration::from_mins(30);

/// How long after the official close `source` can be expected to say it.
pub fn close_margin(source: Source) -> SignedDuration {
    match source {
        Source::BrokerA => CLOSE_MARGIN_BROKER_A,
        Source::Public => CLOSE_MARGIN_PUBLIC,
    }
}

/// Within so long polls of a source whose prices are pushed confirm each price, and bring what is
/// not pushed.
const CONFIRMING_MS: u64 = 10_000;

/// How often one feed is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two polls that nobody asked for; 0: as fast as the feed's budget allows.
    pub interval_ms: u64,
    /// Not relied on after waiting this long.
    pub patience_ms: u64,
}

impl Pace {
    /// Of a feed whose budget allows a call each `budget_ms`.
    pub fn of(source: Source, budget_ms: u64, rests: bool) -> Self {
        Self {
            interval_ms: if rests { resting_ms(source) } else { 0 },
            // The pace itself is no reason for doubt.
            patience_ms: PATIENCE_MS.max(budget_ms + PATIENCE_MS / 3),
        }
    }

    /// The same of a feed whose prices are pushed, where it takes so many calls to confirm all.
    pub fn confirming(self, calls: u64) -> Self {
        let interval_ms = self.interval_ms.max(CONFIRMING_MS / calls.max(1));
        Self { interval_ms, ..self }
    }
}

impl Pace {
    /// The same where nodes that hear no leader share the provider.
    pub fn sparing(self, budget_ms: u64) -> Self {
        Self { interval_ms: self.interval_ms.max(budget_ms), ..self }
    }
}

/// How long a feed may leave a price as it is: while prices move, and closing prices. `step_ms`:
/// how long its index stands by its nature, though it is asked more often.
pub fn limits(source: Source, budget_ms: u64, step_ms: u64) -> (Limits, Limits) {
    let grace_ms = match source {
        Source::BrokerA => GRACE_BROKER_A_MS,
        Source::Public => GRACE_PUBLIC_MS,
    };
    let moving = Limits { period_ms: budget_ms.max(step_ms), grace_ms };
    let resting = Limits { period_ms: budget_ms.max(resting_ms(source)), grace_ms };
    (moving, resting)
}

/// Time between two polls of a feed that are there to confirm what is pushed, for [`limits`].
pub fn confirming_ms(budget_ms: u64) -> u64 {
    budget_ms.max(CONFIRMING_MS)
}

fn resting_ms(source: Source) -> u64 {
    match source {
        Source::BrokerA => RESTING_BROKER_A_MS,
        Source::Public => RESTING_PUBLIC_MS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_prices_move_the_whole_budget_is_used_and_one_poll_may_be_missed() {
        let pace = Pace::of(Source::BrokerA, 1_050, false);
        let (moving, _) = limits(Source::BrokerA, 1_050, 0);
        assert_eq!((pace.interval_ms, moving.stale_after_ms(1)), (0, 3_600));
        assert!(pace.patience_ms < moving.stale_after_ms(1) / 2);
        assert_eq!(limits(Source::Public, 15_000, 0).0.stale_after_ms(1), 37_000);
        // A source that moves by the minute is given the minute.
        assert_eq!(limits(Source::Public, 15_000, 60_000).0.stale_after_ms(1), 127_000);
    }

    #[test]
    fn what_is_pushed_is_confirmed_within_ten_seconds_however_many_calls_that_takes() {
        let pace = Pace::of(Source::BrokerA, 1_050, false);
        for (calls, interval_ms) in [(0, 10_000), (1, 10_000), (2, 5_000), (7, 1_428)] {
            assert_eq!(pace.confirming(calls), Pace { interval_ms, ..pace });
        }
        let resting = Pace::of(Source::BrokerA, 1_050, true);
        assert_eq!(resting.confirming(7), resting, "never sooner than without");
    }

    #[test]
    fn a_market_that_rests_is_asked_rarely() {
        for (source, budget_ms) in [(Source::BrokerA, 1_050), (Source::Public, 15_000)] {
            let pace = Pace::of(source, budget_ms, true);
            let (_, resting) = limits(source, budget_ms, 0);
            assert!(pace.interval_ms >= 30_000);
            assert!(resting.stale_after_ms(1) > 2 * pace.interval_ms);
        }
    }
}
