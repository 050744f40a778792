//! Up to when a price can be relied on: the one rule behind every `stale` that clients see.
//!
//! A source *stands for* a price at the moment at which it was asked for it, less what its own
//! index was late then (ARCHITECTURE.md, "How old a price is"). The price is stale once that was
//! longer ago than its source may take for two rounds and some grace. While the market rests, a
//! closing price does not get older: it is fresh as long as any feed speaks.
//!
//! A few relaxed atomics: set by the scheduler, read by every look-up on the edge. Never blocks.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::base::Source;

/// Until the scheduler has set limits.
const UNSET: Limits = Limits { period_ms: 1_000, grace_ms: 1_500 };

/// The moment for which a source stands for a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vouched {
    /// By the monotonic clock, where it may lie before the process began.
    pub mono_ms: i64,
    /// Calls after which the source comes to the same symbol again, where a call carries few.
    pub calls: u8,
}

impl Vouched {
    /// By nobody in this run: a price that was kept over a restart.
    pub const NEVER: Self = Self { mono_ms: i64::MIN, calls: 1 };
}

/// How long a source may leave a price as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Between two of its rounds.
    pub period_ms: u64,
    /// What an answer may take beyond that.
    pub grace_ms: u64,
}

impl Limits {
    /// One round may be missed.
    pub fn stale_after_ms(self, calls: u8) -> u64 {
        let rounds_ms = self.period_ms.saturating_mul(2 * u64::from(calls.max(1)));
        rounds_ms.saturating_add(self.grace_ms)
    }
}

/// The limits of both sources, and whether the market rests.
pub struct Freshness {
    sources: [OfSource; Source::ALL.len()],
    /// While the market rests: until then the word of the feed that spoke last holds for every
    /// closing price, whoever gave it.
    spoken_until_mono_ms: AtomicI64,
}

struct OfSource {
    moving: AtomicLimits,
    resting: AtomicLimits,
    /// What was asked for from then on is a closing price; `i64::MAX` while prices move.
    rests_since_mono_ms: AtomicI64,
}

struct AtomicLimits {
    period_ms: AtomicU64,
    grace_ms: AtomicU64,
}

impl AtomicLimits {
    fn of(limits: Limits) -> Self {
        let Limits { period_ms, grace_ms } = limits;
        Self { period_ms: period_ms.into(), grace_ms: grace_ms.into() }
    }

    fn set(&self, limits: Limits) {
        self.period_ms.store(limits.period_ms, Relaxed);
        self.grace_ms.store(limits.grace_ms, Relaxed);
    }

    fn get(&self) -> Limits {
        Limits { period_ms: self.period_ms.load(Relaxed), grace_ms: self.grace_ms.load(Relaxed) }
    }
}

impl Default for Freshness {
    fn default() -> Self {
        let unset = || OfSource {
            moving: AtomicLimits::of(UNSET),
            resting: AtomicLimits::of(UNSET),
            rests_since_mono_ms: AtomicI64::new(i64::MAX),
        };
        Self { sources: [unset(), unset()], spoken_until_mono_ms: AtomicI64::new(i64::MIN) }
    }
}

impl Freshness {
    fn of(&self, source: Source) -> &OfSource {
        &self.sources[source as usize]
    }

    /// From now on these limits are in force, while prices move and for closing prices.
    pub fn set_limits(&self, source: Source, moving: Limits, resting: Limits) {
        self.of(source).moving.set(moving);
        self.of(source).resting.set(resting);
    }

    /// What `source` is asked for from this moment on are closing prices.
    pub fn rest(&self, source: Source, since_mono_ms: u64) {
        self.of(source).rests_since_mono_ms.store(signed(since_mono_ms), Relaxed);
    }

    /// Prices of `source` move again.
    pub fn move_on(&self, source: Source) {
        self.of(source).rests_since_mono_ms.store(i64::MAX, Relaxed);
        self.spoken_until_mono_ms.store(i64::MIN, Relaxed);
    }

    /// `source` stands for its indices as they were at `vouched`. While it rests this holds for
    /// every closing price: none can have changed.
    pub fn spoken(&self, source: Source, vouched: Vouched) {
        if self.is_closing(source, vouched) {
            let until_mono_ms = self.own_until_mono_ms(source, vouched);
            self.spoken_until_mono_ms.fetch_max(until_mono_ms, Relaxed);
        }
    }

    /// The last moment at which a price is fresh.
    pub fn until_mono_ms(&self, source: Source, vouched: Vouched) -> i64 {
        let own = self.own_until_mono_ms(source, vouched);
        match self.is_closing(source, vouched) {
            true => own.max(self.spoken_until_mono_ms.load(Relaxed)),
            false => own,
        }
    }

    /// Whether a price is stale now.
    pub fn is_stale(&self, source: Source, vouched: Vouched, now_mono_ms: u64) -> bool {
        signed(now_mono_ms) > self.until_mono_ms(source, vouched)
    }

    fn is_closing(&self, source: Source, vouched: Vouched) -> bool {
        vouched.mono_ms >= self.of(source).rests_since_mono_ms.load(Relaxed)
    }

    fn own_until_mono_ms(&self, source: Source, vouched: Vouched) -> i64 {
        let of = self.of(source);
        let limits = if self.is_closing(source, vouched) { &of.resting } else { &of.moving };
        vouched.mono_ms.saturating_add(signed(limits.get().stale_after_ms(vouched.calls)))
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVING: Limits = Limits { period_ms: 1_050, grace_ms: 1_500 };
    const RESTING: Limits = Limits { period_ms: 30_000, grace_ms: 1_500 };

    fn freshness() -> Freshness {
        let freshness = Freshness::default();
        freshness.set_limits(Source::BrokerA, MOVING, RESTING);
        let slower = Limits { period_ms: 15_000, grace_ms: 7_000 };
        freshness.set_limits(Source::Public, slower, Limits { period_ms: 60_000, ..slower });
        freshness
    }

    fn at(mono_ms: i64) -> Vouched {
        Vouched { mono_ms, calls: 1 }
    }

    #[test]
    fn a_round_may_be_missed_and_where_a_call_carries_few_as_many_more() {
        let freshness = freshness();
        for (source, calls, stale_after_ms) in
            [(Source::BrokerA, 1, 3_600), (Source::Public, 1, 37_000), (Source::Public, 3, 97_000)]
        {
            let vouched = Vouched { mono_ms: 1_000, calls };
            assert!(!freshness.is_stale(source, vouched, 1_000 + stale_after_ms));
            assert!(freshness.is_stale(source, vouched, 1_001 + stale_after_ms));
        }
        assert!(freshness.is_stale(Source::BrokerA, Vouched::NEVER, 0));
    }

    #[test]
    fn a_closing_price_is_fresh_while_any_feed_speaks() {
        let freshness = freshness();
        freshness.rest(Source::BrokerA, 10_000);
        let stale = |vouched, now_ms| freshness.is_stale(Source::BrokerA, vouched, now_ms);
        assert!(stale(at(9_999), 9_999 + 3_601), "asked before the close");
        assert!(!stale(at(10_000), 71_500) && stale(at(10_000), 71_501));
        // Who is not at rest himself says nothing of closing prices.
        freshness.spoken(Source::Public, at(60_000));
        assert!(stale(at(10_000), 71_501));
        freshness.rest(Source::Public, 60_000);
        freshness.spoken(Source::Public, at(60_000));
        assert!(!stale(at(10_000), 187_000) && stale(at(10_000), 187_001));
        assert!(stale(at(9_999), 71_501), "the other kind stays stale");
        freshness.move_on(Source::BrokerA);
        assert!(stale(at(10_000), 13_601));
    }
}
