//! Decides until when a price is fresh: the one rule behind every `stale` that clients see.
//!
//! A source *vouches for* a price at the moment at which it was asked for it, minus the delay that
//! its index data had then (docs/feeds.md, "How old a price is"). The price is stale once that
//! moment is longer ago than the time between two polls of its symbol, one call more and a grace
//! period. While the market is closed, a closing price does not age: it is fresh as long as any
//! feed answers.
//!
//! A few relaxed atomics, set by the scheduler and read by every look-up on the edge. Never blocks.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64};

use crate::base::{Source, settings};

/// The limits until the scheduler sets others.
const UNSET: Limits = Limits {
    period_ms: 1_000,
    grace_ms: 1_500,
};

/// The moment for which a source vouches for a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vouched {
    /// Milliseconds of the monotonic clock; negative if the moment is before the process began.
    pub mono_ms: i64,
    /// Number of calls after which the source is asked for the same symbol again.
    /// [`IN_TURN`](Self::IN_TURN) for a symbol that is polled once in each round of its source.
    pub calls: u8,
}

impl Vouched {
    /// No source has vouched in this run: the price was restored after a restart.
    pub(crate) const NEVER: Self = Self {
        mono_ms: i64::MIN,
        calls: 1,
    };

    /// The value of `calls` for a symbol that is polled round-robin with all others in demand. It
    /// stands for the current length of the source's round.
    pub(crate) const IN_TURN: u8 = 0;
}

/// The times that decide how long a price of a source stays fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time between two polls of the source.
    pub period_ms: u64,
    /// Time that a reply may take beyond that.
    pub grace_ms: u64,
}

impl Limits {
    /// Age beyond which a price is stale if it is polled once in `calls` calls. One call may be
    /// missed.
    pub(crate) fn stale_after_ms(self, calls: u8) -> u64 {
        let round_ms = self.period_ms.saturating_mul(1 + u64::from(calls.max(1)));
        round_ms.saturating_add(self.grace_ms)
    }
}

/// The freshness rules as one node sends them to another. They are durations, because each node's
/// monotonic clock has a zero of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshnessRules {
    /// Indexed by [`Source`].
    pub sources: [SourceRules; Source::ALL.len()],
    /// Time for which the last reply of any feed still vouches for every closing price. Negative
    /// once it no longer does.
    pub spoken_for_ms: Option<i64>,
}

/// The freshness rules of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRules {
    pub moving: Limits,
    pub resting: Limits,
    /// Time since its prices became closing prices; `None` while they move.
    pub rests_for_ms: Option<i64>,
    /// Number of calls in which every symbol in demand is polled once.
    pub round: u8,
}

/// The limits of both sources, and whether the market is closed for them.
pub struct Freshness {
    sources: [OfSource; Source::ALL.len()],
    /// Until this moment the last reply of any feed vouches for every closing price, whichever
    /// source gave it. Used while the market is closed.
    spoken_until_mono_ms: AtomicI64,
}

struct OfSource {
    moving: AtomicLimits,
    resting: AtomicLimits,
    /// Prices asked for from this moment on are closing prices; `i64::MAX` while prices move.
    rests_since_mono_ms: AtomicI64,
    /// Number of calls in which every symbol in demand is polled once.
    round: AtomicU8,
}

struct AtomicLimits {
    period_ms: AtomicU64,
    grace_ms: AtomicU64,
}

impl AtomicLimits {
    fn of(limits: Limits) -> Self {
        let Limits {
            period_ms,
            grace_ms,
        } = limits;
        Self {
            period_ms: period_ms.into(),
            grace_ms: grace_ms.into(),
        }
    }

    fn set(&self, limits: Limits) {
        self.period_ms.store(limits.period_ms, Relaxed);
        self.grace_ms.store(limits.grace_ms, Relaxed);
    }

    fn get(&self) -> Limits {
        Limits {
            period_ms: self.period_ms.load(Relaxed),
            grace_ms: self.grace_ms.load(Relaxed),
        }
    }
}

impl Default for Freshness {
    fn default() -> Self {
        let unset = || OfSource {
            moving: AtomicLimits::of(UNSET),
            resting: AtomicLimits::of(UNSET),
            rests_since_mono_ms: AtomicI64::new(i64::MAX),
            round: AtomicU8::new(1),
        };
        Self {
            sources: [unset(), unset()],
            spoken_until_mono_ms: AtomicI64::new(i64::MIN),
        }
    }
}

impl Freshness {
    fn of(&self, source: Source) -> &OfSource {
        &self.sources[source as usize]
    }

    /// Sets the limits of `source`: one while prices move, one for closing prices.
    pub fn set_limits(&self, source: Source, moving: Limits, resting: Limits) {
        self.of(source).moving.set(moving);
        self.of(source).resting.set(resting);
    }

    /// Sets the number of calls of `source` in which every symbol in demand is polled once.
    pub(crate) fn set_round(&self, source: Source, calls: u8) {
        self.of(source).round.store(calls, Relaxed);
    }

    /// Marks the prices of `source` asked for at or after `since_mono_ms` as closing prices.
    pub(crate) fn set_closing(&self, source: Source, since_mono_ms: u64) {
        self.of(source)
            .rests_since_mono_ms
            .store(signed(since_mono_ms), Relaxed);
    }

    /// Marks the prices of `source` as moving. No earlier reply vouches for closing prices any
    /// longer.
    pub(crate) fn set_moving(&self, source: Source) {
        self.of(source).rests_since_mono_ms.store(i64::MAX, Relaxed);
        self.spoken_until_mono_ms.store(i64::MIN, Relaxed);
    }

    /// Notes that `source` vouched for its indices at `vouched`. While it gives closing prices,
    /// this vouches for every closing price, since none can have changed.
    pub(crate) fn note_vouched(&self, source: Source, vouched: Vouched) {
        if self.is_closing(source, vouched) {
            let until_mono_ms = self.own_until_mono_ms(source, vouched);
            self.spoken_until_mono_ms.fetch_max(until_mono_ms, Relaxed);
        }
    }

    /// The last moment at which the price is fresh.
    pub(crate) fn until_mono_ms(&self, source: Source, vouched: Vouched) -> i64 {
        let own = self.own_until_mono_ms(source, vouched);
        match self.is_closing(source, vouched) {
            true => own.max(self.spoken_until_mono_ms.load(Relaxed)),
            false => own,
        }
    }

    /// Whether the price is stale now.
    pub(crate) fn is_stale(&self, source: Source, vouched: Vouched, now_mono_ms: u64) -> bool {
        signed(now_mono_ms) > self.until_mono_ms(source, vouched)
    }

    /// The current rules, for other nodes.
    pub(crate) fn rules(&self, now_mono_ms: u64) -> FreshnessRules {
        let now_ms = signed(now_mono_ms);
        let sources = Source::ALL.map(|source| {
            let of = self.of(source);
            let since_ms = of.rests_since_mono_ms.load(Relaxed);
            SourceRules {
                moving: of.moving.get(),
                resting: of.resting.get(),
                rests_for_ms: (since_ms != i64::MAX).then(|| now_ms.saturating_sub(since_ms)),
                round: of.round.load(Relaxed),
            }
        });
        let until_ms = self.spoken_until_mono_ms.load(Relaxed);
        let spoken_for_ms = (until_ms != i64::MIN).then(|| until_ms.saturating_sub(now_ms));
        FreshnessRules {
            sources,
            spoken_for_ms,
        }
    }

    /// Takes over another node's rules. `told_mono_ms` is when they were sent, by this node's
    /// clock.
    pub(crate) fn adopt(&self, rules: &FreshnessRules, told_mono_ms: i64) {
        for (source, rules) in Source::ALL.into_iter().zip(&rules.sources) {
            self.set_limits(source, rules.moving, rules.resting);
            self.set_round(source, rules.round);
            let since_ms = rules
                .rests_for_ms
                .map_or(i64::MAX, |ms| told_mono_ms.saturating_sub(ms));
            self.of(source).rests_since_mono_ms.store(since_ms, Relaxed);
        }
        let until_ms = rules
            .spoken_for_ms
            .map_or(i64::MIN, |ms| told_mono_ms.saturating_add(ms));
        self.spoken_until_mono_ms.store(until_ms, Relaxed);
    }

    fn is_closing(&self, source: Source, vouched: Vouched) -> bool {
        vouched.mono_ms >= self.of(source).rests_since_mono_ms.load(Relaxed)
    }

    fn own_until_mono_ms(&self, source: Source, vouched: Vouched) -> i64 {
        let of = self.of(source);
        let limits = if self.is_closing(source, vouched) {
            &of.resting
        } else {
            &of.moving
        };
        let calls = match vouched.calls {
            Vouched::IN_TURN => of.round.load(Relaxed),
            calls => calls,
        };
        vouched
            .mono_ms
            .saturating_add(signed(limits.get().stale_after_ms(calls)))
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

// ---- Settings
//
// Settings of both cache levels.

settings! {
    /// The two cache levels.
    pub struct CacheSettings {
        /// Quotes and negative entries held in memory.
        pub l1_entries_max: usize = 10_000,
        /// Longest wait of a live-prices request for symbols that are not cached.
        pub miss_wait_ms: u64 = 2_500,
        /// Requests that may wait at once.
        pub waiters_max: usize = 2_000,
        /// Symbols that a client asked for within this time are kept fresh.
        pub demand_ttl_ms: u64 = 60_000,
        /// Records of each kind that L2 keeps on disk.
        pub l2_records_max: usize = 10_000,
        /// Bytes of users' finished responses held in memory.
        pub answers_bytes_max: usize = 64 * 1024 * 1024,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVING: Limits = Limits {
        period_ms: 1_050,
        grace_ms: 1_500,
    };
    const RESTING: Limits = Limits {
        period_ms: 30_000,
        grace_ms: 1_500,
    };

    fn freshness() -> Freshness {
        let freshness = Freshness::default();
        freshness.set_limits(Source::BrokerA, MOVING, RESTING);
        let slower = Limits {
            period_ms: 15_000,
            grace_ms: 7_000,
        };
        freshness.set_limits(
            Source::Public,
            slower,
            Limits {
                period_ms: 60_000,
                ..slower
            },
        );
        freshness
    }

    fn at(mono_ms: i64) -> Vouched {
        Vouched { mono_ms, calls: 1 }
    }

    #[test]
    fn a_price_stays_fresh_over_one_missed_poll() {
        let freshness = freshness();
        for (source, calls, stale_after_ms) in [
            (Source::BrokerA, 1, 3_600),
            (Source::Public, 1, 37_000),
            (Source::Public, 3, 67_000),
        ] {
            let vouched = Vouched {
                mono_ms: 1_000,
                calls,
            };
            assert!(!freshness.is_stale(source, vouched, 1_000 + stale_after_ms));
            assert!(freshness.is_stale(source, vouched, 1_001 + stale_after_ms));
        }
        assert!(freshness.is_stale(Source::BrokerA, Vouched::NEVER, 0));
    }

    #[test]
    fn a_price_that_comes_in_turn_is_fresh_for_the_round_of_its_source() {
        let freshness = freshness();
        let in_turn = Vouched {
            mono_ms: 0,
            calls: Vouched::IN_TURN,
        };
        for (round, stale_after_ms) in [(1, 37_000), (4, 82_000), (1, 37_000)] {
            freshness.set_round(Source::Public, round);
            assert_eq!(freshness.until_mono_ms(Source::Public, in_turn), stale_after_ms);
            // An index is in each call.
            assert_eq!(freshness.until_mono_ms(Source::Public, at(0)), 37_000);
        }
    }

    #[test]
    fn a_closing_price_is_fresh_while_any_feed_answers() {
        let freshness = freshness();
        freshness.set_closing(Source::BrokerA, 10_000);
        let stale = |vouched, now_ms| freshness.is_stale(Source::BrokerA, vouched, now_ms);
        assert!(stale(at(9_999), 9_999 + 3_601), "asked before the close");
        assert!(!stale(at(10_000), 71_500) && stale(at(10_000), 71_501));
        // A source whose prices move vouches for no closing price.
        freshness.note_vouched(Source::Public, at(60_000));
        assert!(stale(at(10_000), 71_501));
        freshness.set_closing(Source::Public, 60_000);
        freshness.note_vouched(Source::Public, at(60_000));
        assert!(!stale(at(10_000), 187_000) && stale(at(10_000), 187_001));
        assert!(stale(at(9_999), 71_501), "the other kind stays stale");
        freshness.set_moving(Source::BrokerA);
        assert!(stale(at(10_000), 13_601));
    }

    #[test]
    fn a_node_that_adopts_anothers_rules_judges_every_price_as_that_one_does() {
        // The other node's clock began a minute earlier.
        const APART_MS: i64 = 60_000;
        let one = freshness();
        let other = Freshness::default();
        let later = |mono_ms: i64| (mono_ms - APART_MS, mono_ms);
        let agree = |now_mono_ms: u64| {
            other.adopt(&one.rules(now_mono_ms), now_mono_ms as i64 - APART_MS);
            for source in Source::ALL {
                for (asked_ms, calls) in (90_000..200_000).step_by(7_000).zip([0, 1].repeat(8)) {
                    let (at_other, at_one) = later(asked_ms);
                    let at = |mono_ms| Vouched { mono_ms, calls };
                    assert_eq!(
                        other.until_mono_ms(source, at(at_other)),
                        one.until_mono_ms(source, at(at_one)) - APART_MS,
                        "{source:?} {asked_ms} at {now_mono_ms}"
                    );
                }
            }
        };
        agree(100_000);
        one.set_closing(Source::BrokerA, 100_000);
        one.set_round(Source::Public, 5);
        agree(110_000);
        one.note_vouched(Source::BrokerA, at(130_000));
        one.set_closing(Source::Public, 140_000);
        agree(150_000);
        one.set_moving(Source::BrokerA);
        agree(160_000);
    }
}
