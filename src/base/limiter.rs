//! The one rate limiter: so many calls at once, then one each interval (GCRA).
//!
//! A bucket is one number, the time at which it will be full again. Times are monotonic
//! milliseconds of the caller's [`Clock`](super::Clock). [`Limiter`] is one bucket without a lock;
//! [`KeyedLimiter`] has one for each key, at most so many, under a lock that is held for a look-up.
//! Who is counted by what, and what a refusal means, is decided where they are used. What a broker
//! counts within a span of time is another thing: [`CallWindow`](super::CallWindow).

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::bounded_map::BoundedMap;

/// `burst` calls at once, and in the long run one each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    interval_ms: u64,
    /// How far from full a bucket may be for one more call.
    tolerance_ms: u64,
}

impl Rate {
    /// Zero counts as one for either.
    pub const fn new(interval_ms: u64, burst: u64) -> Self {
        let interval_ms = if interval_ms == 0 { 1 } else { interval_ms };
        Self { interval_ms, tolerance_ms: interval_ms * burst.saturating_sub(1) }
    }

    /// Evenly spaced, never two at once.
    pub const fn every_ms(interval_ms: u64) -> Self {
        Self::new(interval_ms, 1)
    }

    fn wait_ms(self, full_at_ms: u64, now_ms: u64) -> u64 {
        full_at_ms.saturating_sub(now_ms).saturating_sub(self.tolerance_ms)
    }

    fn taken(self, full_at_ms: u64, now_ms: u64) -> u64 {
        full_at_ms.max(now_ms).saturating_add(self.interval_ms)
    }
}

/// Too early: the next call may come after this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooEarly {
    pub retry_after_ms: u64,
}

/// One bucket for everybody.
#[derive(Debug)]
pub struct Limiter {
    rate: Rate,
    full_at_ms: AtomicU64,
}

impl Limiter {
    pub const fn new(rate: Rate) -> Self {
        Self { rate, full_at_ms: AtomicU64::new(0) }
    }

    /// Takes one call. A refused one takes nothing, and only reads.
    ///
    /// # Errors
    /// [`TooEarly`].
    pub fn admit(&self, now_ms: u64) -> Result<(), TooEarly> {
        let taken =
            self.full_at_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, |full_at_ms| {
                let free = self.rate.wait_ms(full_at_ms, now_ms) == 0;
                free.then(|| self.rate.taken(full_at_ms, now_ms))
            });
        let refused =
            |full_at_ms| TooEarly { retry_after_ms: self.rate.wait_ms(full_at_ms, now_ms) };
        taken.map(|_| ()).map_err(refused)
    }

    /// How long until a call is admitted, zero for now. Takes nothing.
    pub fn wait_ms(&self, now_ms: u64) -> u64 {
        self.rate.wait_ms(self.full_at_ms.load(Ordering::Acquire), now_ms)
    }

    /// Admits nothing before `until_ms`, and no burst right after it.
    pub fn hold_until(&self, until_ms: u64) {
        let full_at_ms = until_ms.saturating_add(self.rate.tolerance_ms);
        self.full_at_ms.fetch_max(full_at_ms, Ordering::AcqRel);
    }
}

/// A bucket for each key. Past the bound those nearest to full are dropped, which gives the least
/// away.
#[derive(Debug)]
pub struct KeyedLimiter {
    hasher: RandomState,
    buckets: Mutex<Buckets>,
}

#[derive(Debug)]
struct Buckets {
    /// None where the limit is off.
    rate: Option<Rate>,
    /// When each will be full again. Keyed by a hash with a secret of this process, so that nobody
    /// can aim at another's bucket.
    full_at_ms: BoundedMap<u64, u64>,
}

impl Buckets {
    fn full_at_ms(&self, hash: u64) -> u64 {
        self.full_at_ms.get(&hash).copied().unwrap_or(0)
    }
}

impl KeyedLimiter {
    /// `rate` for each key, at most `keys_max` of them; no rate is no limit.
    pub fn new(rate: Option<Rate>, keys_max: usize) -> Self {
        let full_at_ms = BoundedMap::evicting_in_batches(keys_max);
        Self { hasher: RandomState::new(), buckets: Mutex::new(Buckets { rate, full_at_ms }) }
    }

    /// Changes the rate. A bucket that is part empty stays as far from full as it was.
    pub fn set_rate(&self, rate: Option<Rate>) {
        self.buckets.lock().rate = rate;
    }

    /// Takes one call from each key's bucket, or from none.
    ///
    /// # Errors
    /// [`TooEarly`], by the bucket that takes longest.
    pub fn admit(&self, keys: &[impl Hash], now_ms: u64) -> Result<(), TooEarly> {
        let hashes = || keys.iter().map(|key| self.hasher.hash_one(key));
        let mut buckets = self.buckets.lock();
        let Some(rate) = buckets.rate else { return Ok(()) };
        let waits = hashes().map(|hash| rate.wait_ms(buckets.full_at_ms(hash), now_ms));
        let retry_after_ms = waits.max().unwrap_or(0);
        if retry_after_ms > 0 {
            return Err(TooEarly { retry_after_ms });
        }
        // A full bucket is as good as none.
        let worth = |full_at_ms: &u64| (*full_at_ms > now_ms).then_some(*full_at_ms);
        for hash in hashes() {
            let full_at_ms = buckets.full_at_ms.or_insert_with(hash, worth, || now_ms);
            *full_at_ms = rate.taken(*full_at_ms, now_ms);
        }
        Ok(())
    }

    /// Fills the key's bucket.
    pub fn forgive(&self, key: &impl Hash) {
        self.buckets.lock().full_at_ms.remove(&self.hasher.hash_one(key));
    }

    /// Keys that are remembered now.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.buckets.lock().full_at_ms.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate() -> impl Strategy<Value = (u64, u64, Rate)> {
        (1u64..500, 1u64..20)
            .prop_map(|(interval_ms, burst)| (interval_ms, burst, Rate::new(interval_ms, burst)))
    }

    /// Pauses before attempts: many within a bucket, some that fill it.
    fn pauses() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![4 => 0u64..20, 2 => 0u64..400, 1 => 0u64..20_000], 1..300)
    }

    fn instants(pauses: &[u64]) -> impl Iterator<Item = u64> {
        pauses.iter().scan(0, |now_ms, pause_ms| {
            *now_ms += pause_ms;
            Some(*now_ms)
        })
    }

    proptest! {
        #[test]
        fn no_interval_sees_more_than_the_burst_and_what_its_length_allows(
            (interval_ms, burst, rate) in rate(),
            pauses in pauses(),
        ) {
            let limiter = Limiter::new(rate);
            let admitted: Vec<u64> =
                instants(&pauses).filter(|now_ms| limiter.admit(*now_ms).is_ok()).collect();
            for (at, first_ms) in admitted.iter().enumerate() {
                for (count, last_ms) in (1u64..).zip(&admitted[at..]) {
                    prop_assert!(count <= burst + (last_ms - first_ms) / interval_ms);
                }
            }
        }

        #[test]
        fn whoever_is_refused_is_told_the_first_instant_that_is_admitted(
            (_, _, rate) in rate(),
            pauses in pauses(),
        ) {
            let limiter = Limiter::new(rate);
            for now_ms in instants(&pauses) {
                let wait_ms = limiter.wait_ms(now_ms);
                match limiter.admit(now_ms) {
                    Ok(()) => prop_assert_eq!(wait_ms, 0),
                    Err(TooEarly { retry_after_ms }) => {
                        prop_assert_eq!(wait_ms, retry_after_ms);
                        prop_assert_eq!(limiter.wait_ms(now_ms + retry_after_ms - 1), 1);
                        prop_assert_eq!(limiter.wait_ms(now_ms + retry_after_ms), 0);
                    }
                }
            }
        }

        #[test]
        fn each_key_has_a_bucket_of_its_own_and_all_or_none_is_taken(
            (_, _, rate) in rate(),
            tries in prop::collection::vec(
                (0u64..200, prop::collection::btree_set(0usize..4, 1..4)),
                1..200,
            ),
        ) {
            let keyed = KeyedLimiter::new(Some(rate), 100);
            let alone: Vec<Limiter> = (0..4).map(|_| Limiter::new(rate)).collect();
            let mut now_ms = 0;
            for (pause_ms, keys) in tries {
                now_ms += pause_ms;
                let wait_ms = keys.iter().map(|key| alone[*key].wait_ms(now_ms)).max().unwrap();
                let keys: Vec<usize> = keys.into_iter().collect();
                let admitted = keyed.admit(&keys, now_ms);
                if wait_ms == 0 {
                    keys.iter().for_each(|key| alone[*key].admit(now_ms).unwrap());
                    prop_assert_eq!(admitted, Ok(()));
                } else {
                    prop_assert_eq!(admitted, Err(TooEarly { retry_after_ms: wait_ms }));
                }
            }
        }

        #[test]
        fn keys_are_bounded(
            (_, _, rate) in rate(),
            keys_max in 1usize..40,
            tries in prop::collection::vec((0u64..20, 0usize..60), 1..400),
        ) {
            let keyed = KeyedLimiter::new(Some(rate), keys_max);
            let mut now_ms = 0;
            for (pause_ms, key) in tries {
                now_ms += pause_ms;
                let before = keyed.len();
                let admitted = keyed.admit(&[key], now_ms).is_ok();
                prop_assert!(keyed.len() <= keys_max);
                prop_assert!(admitted || keyed.len() == before, "a refused key takes no room");
            }
        }

        #[test]
        fn a_change_of_rate_leaves_buckets_as_far_from_full_as_they_were(
            (interval_ms, burst, before) in rate(),
            (later_ms, later_burst, after) in rate(),
            taken in 1u64..20,
        ) {
            let taken = taken.min(burst);
            let keyed = KeyedLimiter::new(Some(before), 10);
            (0..taken).for_each(|_| keyed.admit(&["key"], 0).unwrap());
            keyed.set_rate(None);
            prop_assert_eq!(keyed.admit(&["key"], 0), Ok(()), "off");
            keyed.set_rate(Some(after));
            let wait_ms = (taken * interval_ms).saturating_sub(later_ms * (later_burst - 1));
            let told = keyed.admit(&["key"], 0).err().map_or(0, |early| early.retry_after_ms);
            prop_assert_eq!(told, wait_ms);
        }
    }

    #[test]
    fn held_back_it_admits_nothing_and_then_no_burst() {
        let limiter = Limiter::new(Rate::new(10, 5));
        limiter.hold_until(1_000);
        limiter.hold_until(500);
        assert_eq!(limiter.admit(0), Err(TooEarly { retry_after_ms: 1_000 }));
        assert_eq!(limiter.admit(1_000), Ok(()));
        assert_eq!(limiter.admit(1_000), Err(TooEarly { retry_after_ms: 10 }));
    }

    #[test]
    fn threads_together_get_no_more_than_the_burst() {
        let limiter = Limiter::new(Rate::new(1_000, 7));
        let admitted: usize = std::thread::scope(|scope| {
            let each = || (0..1_000).filter(|_| limiter.admit(5).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(each)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 7);
    }

    #[test]
    fn the_busiest_key_outlives_a_flood_of_others() {
        let limiter = KeyedLimiter::new(Some(Rate::new(6_000, 10)), 1_000);
        while limiter.admit(&["guessed"], 0).is_ok() {}
        for number in 0..10_000 {
            assert_eq!(limiter.admit(&[number.to_string()], 0), Ok(()));
        }
        assert!(limiter.admit(&["guessed"], 0).is_err() && limiter.len() > 800);
        limiter.forgive(&"guessed");
        assert_eq!(limiter.admit(&["guessed"], 0), Ok(()));
    }
}
