//! The rate limiter: a burst of calls at once, then one call each interval (GCRA, a token bucket).
//!
//! A bucket is stored as one number: the time at which it will be full again. Times are monotonic
//! milliseconds of the caller's [`Clock`](super::Clock). [`Limiter`] is one bucket without a lock.
//! [`KeyedLimiter`] has a bucket for each key, a bounded number of them, under a lock that is held
//! only for a look-up. For limits that a broker counts per second, see
//! [`CallWindow`](super::CallWindow).

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::base::bounded_map::BoundedMap;

/// A rate: `burst` calls at once, and in the long run one call each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    interval_ms: u64,
    /// A call is admitted if the bucket will be full within this time.
    tolerance_ms: u64,
}

impl Rate {
    /// One call each `interval_ms`, after `burst` at once. Zero counts as one for either.
    pub(crate) const fn new(interval_ms: u64, burst: u64) -> Self {
        let interval_ms = if interval_ms == 0 { 1 } else { interval_ms };
        Self {
            interval_ms,
            tolerance_ms: interval_ms * burst.saturating_sub(1),
        }
    }

    /// One call each `interval_ms`, without a burst.
    pub(crate) const fn every_ms(interval_ms: u64) -> Self {
        Self::new(interval_ms, 1)
    }

    pub(crate) const fn interval_ms(self) -> u64 {
        self.interval_ms
    }

    /// Longest time to a full bucket at which a call is still admitted.
    pub(crate) const fn tolerance_ms(self) -> u64 {
        self.tolerance_ms
    }

    fn wait_ms(self, full_at_ms: u64, now_ms: u64) -> u64 {
        full_at_ms
            .saturating_sub(now_ms)
            .saturating_sub(self.tolerance_ms)
    }

    /// Counts one call in the bucket that will be full at `full_at_ms`. A refused call is not
    /// counted and writes nothing.
    ///
    /// # Errors
    /// [`TooEarly`].
    pub(crate) fn admit(self, full_at_ms: &AtomicU64, now_ms: u64) -> Result<(), TooEarly> {
        let updated = full_at_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, |full_at_ms| {
            let admitted = self.wait_ms(full_at_ms, now_ms) == 0;
            admitted.then(|| self.full_at_after_call_ms(full_at_ms, now_ms))
        });
        let refusal = |full_at_ms| TooEarly {
            retry_after_ms: self.wait_ms(full_at_ms, now_ms),
        };
        updated.map(|_| ()).map_err(refusal)
    }

    /// Time at which the bucket will be full again after one more call.
    fn full_at_after_call_ms(self, full_at_ms: u64, now_ms: u64) -> u64 {
        full_at_ms.max(now_ms).saturating_add(self.interval_ms)
    }
}

/// A refused call, and the time after which the next one is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooEarly {
    pub retry_after_ms: u64,
}

/// One bucket, shared by all callers.
#[derive(Debug)]
pub(crate) struct Limiter {
    rate: Rate,
    full_at_ms: AtomicU64,
}

impl Limiter {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self {
            rate,
            full_at_ms: AtomicU64::new(0),
        }
    }

    /// Counts one call. A refused call is not counted and writes nothing.
    ///
    /// # Errors
    /// [`TooEarly`].
    pub(crate) fn admit(&self, now_ms: u64) -> Result<(), TooEarly> {
        self.rate.admit(&self.full_at_ms, now_ms)
    }

    /// Time until a call is admitted; zero if it would be now. Counts nothing.
    pub(crate) fn wait_ms(&self, now_ms: u64) -> u64 {
        self.rate
            .wait_ms(self.full_at_ms.load(Ordering::Acquire), now_ms)
    }

    /// Admits nothing before `until_ms`. From then on calls are admitted one each interval, without
    /// a burst.
    pub(crate) fn hold_until(&self, until_ms: u64) {
        let full_at_ms = until_ms.saturating_add(self.rate.tolerance_ms);
        self.full_at_ms.fetch_max(full_at_ms, Ordering::AcqRel);
    }
}

/// A bucket for each key. Past the maximum of keys, the buckets nearest to full are forgotten. A
/// forgotten bucket counts as full.
#[derive(Debug)]
pub(crate) struct KeyedLimiter {
    hasher: RandomState,
    buckets: Mutex<Buckets>,
}

#[derive(Debug)]
struct Buckets {
    /// `None` if the limit is off.
    rate: Option<Rate>,
    /// When each bucket will be full again, by the hash of its key. The hash is seeded with a
    /// random secret, so a caller cannot construct a key that shares another caller's bucket.
    full_at_ms: BoundedMap<u64, u64>,
}

impl Buckets {
    fn full_at_ms(&self, hash: u64) -> u64 {
        self.full_at_ms.get(&hash).copied().unwrap_or(0)
    }
}

impl KeyedLimiter {
    /// A limiter with `rate` for each key, which remembers at most `keys_max` keys. Without a rate
    /// there is no limit.
    pub(crate) fn new(rate: Option<Rate>, keys_max: usize) -> Self {
        let full_at_ms = BoundedMap::evicting_in_batches(keys_max);
        Self {
            hasher: RandomState::new(),
            buckets: Mutex::new(Buckets { rate, full_at_ms }),
        }
    }

    /// Changes the rate. The time at which each bucket will be full stays as it was.
    pub(crate) fn set_rate(&self, rate: Option<Rate>) {
        self.buckets.lock().rate = rate;
    }

    /// The rate of every key; `None` if the limit is off.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.buckets.lock().rate
    }

    /// Counts one call in the bucket of every key, or in none if any of them refuses.
    ///
    /// # Errors
    /// [`TooEarly`], with the longest wait among the keys.
    pub(crate) fn admit(&self, keys: &[impl Hash], now_ms: u64) -> Result<(), TooEarly> {
        let hashes = || keys.iter().map(|key| self.hasher.hash_one(key));
        let mut buckets = self.buckets.lock();
        let Some(rate) = buckets.rate else {
            return Ok(());
        };
        let waits = hashes().map(|hash| rate.wait_ms(buckets.full_at_ms(hash), now_ms));
        let retry_after_ms = waits.max().unwrap_or(0);
        if retry_after_ms > 0 {
            return Err(TooEarly { retry_after_ms });
        }
        // A full bucket need not be remembered.
        let worth = |full_at_ms: &u64| (*full_at_ms > now_ms).then_some(*full_at_ms);
        for hash in hashes() {
            let full_at_ms = buckets.full_at_ms.or_insert_with(hash, worth, || now_ms);
            *full_at_ms = rate.full_at_after_call_ms(*full_at_ms, now_ms);
        }
        Ok(())
    }

    /// Forgets the calls of `key`: its bucket is full again.
    pub(crate) fn forgive(&self, key: &impl Hash) {
        self.buckets
            .lock()
            .full_at_ms
            .remove(&self.hasher.hash_one(key));
    }

    /// Number of remembered keys.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.buckets.lock().full_at_ms.len()
    }
}

// ---- Shared
//
// Limits over all nodes together. The node's own limiter is asked first. An attempt that it admits
// is then counted together with the other nodes, off the edge.

/// Counts attempts of all nodes. Calls block for a bounded time, so they run on a lane.
pub trait SharedCounts: Send + Sync {
    /// Counts `cost` attempts in the bucket of every value, or none if any bucket refuses. Values
    /// of another `kind` have other buckets. Without an answer in time this admits, and the node's
    /// own limiter alone decides.
    ///
    /// # Errors
    /// [`TooEarly`].
    fn admit(
        &self,
        kind: &'static str,
        values: &[&[u8]],
        rate: Rate,
        cost: u64,
    ) -> Result<(), TooEarly>;

    /// Forgets the attempts of a value.
    fn forgive(&self, kind: &'static str, value: &[u8]);

    /// Results of attempts since the start.
    fn tally(&self) -> SharedTally;
}

/// Results of attempts counted at all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedTally {
    /// All nodes together had admitted too many.
    pub refused: u64,
    /// There was no answer in time.
    pub unknown: u64,
}

// ---- Network
//
// Grouping of client addresses for limits. Pure.

/// Providers give each IPv6 subscriber a /64 or more, so a limit by address would not bind.
const IPV6_PREFIX_BITS: u32 = 64;

/// The prefixes that one organisation commonly has.
const IPV4_SITE_BITS: u32 = 24;
const IPV6_SITE_BITS: u32 = 48;

/// The network by which limits count a client: the address itself for IPv4, its /64 for IPv6.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    begin(address, 32, IPV6_PREFIX_BITS)
}

/// The wider network of a client, for its share of the places of all clients: a /24 of IPv4, a /48
/// of IPv6.
pub(crate) fn site(address: IpAddr) -> IpAddr {
    begin(address, IPV4_SITE_BITS, IPV6_SITE_BITS)
}

/// The first bits of an address, at least one, and zeros.
fn begin(address: IpAddr, ipv4_bits: u32, ipv6_bits: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & u32::MAX << (32 - ipv4_bits)).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & u128::MAX << (128 - ipv6_bits)).into(),
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

    /// Pauses between attempts: most are shorter than a bucket takes to fill, some longer.
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
        fn any_span_admits_at_most_the_burst_and_one_call_an_interval(
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
        fn a_refusal_names_the_first_instant_that_is_admitted(
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
        fn each_key_has_its_own_bucket_and_a_call_counts_in_all_or_none(
            (_, _, rate) in rate(),
            tries in prop::collection::vec(
                (0u64..200, prop::collection::btree_set(0usize..4, 1..4)),
                1..200,
            ),
        ) {
            let keyed = KeyedLimiter::new(Some(rate), 100);
            let single: Vec<Limiter> = (0..4).map(|_| Limiter::new(rate)).collect();
            let mut now_ms = 0;
            for (pause_ms, keys) in tries {
                now_ms += pause_ms;
                let wait_ms = keys.iter().map(|key| single[*key].wait_ms(now_ms)).max().unwrap();
                let keys: Vec<usize> = keys.into_iter().collect();
                let admitted = keyed.admit(&keys, now_ms);
                if wait_ms == 0 {
                    keys.iter().for_each(|key| single[*key].admit(now_ms).unwrap());
                    prop_assert_eq!(admitted, Ok(()));
                } else {
                    prop_assert_eq!(admitted, Err(TooEarly { retry_after_ms: wait_ms }));
                }
            }
        }

        #[test]
        fn remembered_keys_are_bounded(
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
        fn a_change_of_rate_keeps_the_time_at_which_buckets_are_full(
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
            let refused = keyed.admit(&["key"], 0).err();
            prop_assert_eq!(refused.map_or(0, |early| early.retry_after_ms), wait_ms);
        }
    }

    #[test]
    fn a_held_limiter_admits_nothing_until_then_and_no_burst_after() {
        let limiter = Limiter::new(Rate::new(10, 5));
        limiter.hold_until(1_000);
        limiter.hold_until(500);
        assert_eq!(
            limiter.admit(0),
            Err(TooEarly {
                retry_after_ms: 1_000
            })
        );
        assert_eq!(limiter.admit(1_000), Ok(()));
        assert_eq!(limiter.admit(1_000), Err(TooEarly { retry_after_ms: 10 }));
    }

    #[test]
    fn concurrent_threads_together_get_only_the_burst() {
        let limiter = Limiter::new(Rate::new(1_000, 7));
        let admitted: usize = std::thread::scope(|scope| {
            let each = || (0..1_000).filter(|_| limiter.admit(5).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(each)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(admitted, 7);
    }

    #[test]
    fn an_empty_bucket_survives_a_flood_of_other_keys() {
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

#[cfg(test)]
mod network_tests {
    use super::*;

    #[test]
    fn an_ipv6_address_counts_by_its_network_and_a_mapped_ipv4_by_itself() {
        for (address, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:ffff::9", "2001:db8:1:2::"),
            ("::1", "::"),
        ] {
            let expected: IpAddr = expected.parse().unwrap();
            assert_eq!(network(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn a_site_is_a_24_of_ipv4_and_a_48_of_ipv6() {
        for (address, expected) in [
            ("192.0.2.77", "192.0.2.0"),
            ("::ffff:192.0.2.1", "192.0.2.0"),
            ("2001:db8:1:2:ffff::9", "2001:db8:1::"),
        ] {
            let expected: IpAddr = expected.parse().unwrap();
            assert_eq!(site(address.parse().unwrap()), expected, "{address}");
        }
    }
}
