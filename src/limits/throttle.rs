//! How often passwords may be tried: per account, known or not, and per client address; and what
//! else users may try so many times a minute.
//!
//! Runs on the edge, before anything is hashed. One lock, held for a look-up. Each key has a bucket
//! that refills steadily (GCRA): as many attempts at once as are allowed a minute, then one each
//! time its share of the minute has passed. A library is not used because none can both drop keys
//! by age at a bound and run on the product's clock.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::base::Clock;
use crate::base::network::network;
use crate::ops::Counter;

/// Keys remembered, about 3 MiB. Past it those that are nearest to a full bucket are dropped.
pub const KEYS_MAX: usize = 100_000;

/// Dropped at once when full, so that looking for them is rare.
const DROPPED_SHARE: usize = 8;

const MINUTE_MS: u64 = 60_000;

/// What attempts are counted by.
#[derive(Clone, Copy, Debug, Hash)]
pub enum Key<'a> {
    /// A normalised e-mail, whether somebody has it or not.
    Account(&'a str),
    /// The same, tried from where it was logged in to before: strangers cannot use this up.
    Familiar(&'a str, IpAddr),
    /// Nothing is known of a client behind a Unix socket that says nothing; all those share one.
    Address(Option<IpAddr>),
    /// The number of an account whose token was shown.
    User(i64),
}

/// Too many attempts; the next may be made after this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    pub retry_after_ms: u64,
}

/// The buckets.
pub struct Throttle {
    clock: Clock,
    /// Attempts a minute; 0 where the limit is off.
    per_minute: AtomicU32,
    hasher: RandomState,
    keys_max: usize,
    /// When each bucket will be full again. Keyed by a hash with a secret of this process, so that
    /// nobody can aim at another's bucket.
    full_at_ms: Mutex<HashMap<u64, u64>>,
    refused: Counter,
}

impl Throttle {
    /// `per_minute` attempts for each key; 0 is no limit.
    pub fn new(per_minute: u32, clock: Clock) -> Self {
        Self::with_room(per_minute, clock, KEYS_MAX)
    }

    fn with_room(per_minute: u32, clock: Clock, keys_max: usize) -> Self {
        Self {
            clock,
            per_minute: AtomicU32::new(per_minute),
            hasher: RandomState::new(),
            keys_max,
            full_at_ms: Mutex::default(),
            refused: Counter::new(),
        }
    }

    /// Changes the rate. A bucket that is part empty stays as far from full as it was.
    pub fn set_rate(&self, per_minute: u32) {
        self.per_minute.store(per_minute, Ordering::Relaxed);
    }

    /// Between two attempts in the long run, and how far from full a bucket may be for one more;
    /// none where the limit is off.
    fn rate(&self) -> Option<(u64, u64)> {
        let per_minute = u64::from(self.per_minute.load(Ordering::Relaxed));
        if per_minute == 0 {
            return None;
        }
        let interval_ms = MINUTE_MS.div_ceil(per_minute).max(1);
        Some((interval_ms, interval_ms * (per_minute - 1)))
    }

    /// Takes one attempt from each key's bucket, or from none.
    ///
    /// # Errors
    /// [`Throttled`] where one of them is empty.
    pub fn admit(&self, keys: &[Key<'_>]) -> Result<(), Throttled> {
        let Some((interval_ms, burst_ms)) = self.rate() else { return Ok(()) };
        let now_ms = self.clock.monotonic_ms();
        let hashes = || keys.iter().map(|key| self.hash(key));
        let mut full_at_ms = self.full_at_ms.lock();
        let full_at =
            |map: &HashMap<u64, u64>, hash| map.get(&hash).copied().unwrap_or(0).max(now_ms);
        let wait_ms = hashes()
            .map(|hash| (full_at(&full_at_ms, hash) - now_ms).saturating_sub(burst_ms))
            .max();
        if let Some(retry_after_ms) = wait_ms.filter(|wait_ms| *wait_ms > 0) {
            self.refused.increment();
            return Err(Throttled { retry_after_ms });
        }
        for hash in hashes() {
            let filled = full_at(&full_at_ms, hash) + interval_ms;
            if full_at_ms.len() >= self.keys_max && !full_at_ms.contains_key(&hash) {
                make_room(&mut full_at_ms, now_ms, self.keys_max);
            }
            full_at_ms.insert(hash, filled);
        }
        Ok(())
    }

    /// Attempts refused so far.
    pub fn refused(&self) -> u64 {
        self.refused.value()
    }

    /// Fills the bucket: who knows the password was no guesser.
    pub fn forgive(&self, key: Key<'_>) {
        if self.rate().is_some() {
            let hash = self.hash(&key);
            self.full_at_ms.lock().remove(&hash);
        }
    }

    fn hash(&self, key: &Key<'_>) -> u64 {
        self.hasher.hash_one(match key {
            Key::Address(Some(address)) => Key::Address(Some(network(*address))),
            Key::Familiar(account, address) => Key::Familiar(account, network(*address)),
            other => *other,
        })
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.full_at_ms.lock().len()
    }
}

/// Drops full buckets, which are as good as none; if that is too little, the fullest.
fn make_room(full_at_ms: &mut HashMap<u64, u64>, now_ms: u64, keys_max: usize) {
    full_at_ms.retain(|_, full| *full > now_ms);
    let drop = (keys_max / DROPPED_SHARE).max(1);
    if full_at_ms.len() + drop <= keys_max {
        return;
    }
    let mut times: Vec<u64> = full_at_ms.values().copied().collect();
    let (_, bound, _) = times.select_nth_unstable(drop.min(full_at_ms.len()) - 1);
    let bound = *bound;
    // Many may be equal, so a count says how many of those go.
    let mut equal_left = drop.saturating_sub(times.iter().filter(|time| **time < bound).count());
    full_at_ms.retain(|_, full| {
        if *full == bound && equal_left > 0 {
            equal_left -= 1;
            return false;
        }
        *full >= bound
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        Clock::manual("2026-11-20T05:30:00Z".parse().unwrap())
    }

    fn address(text: &str) -> Key<'static> {
        Key::Address(Some(text.parse().unwrap()))
    }

    #[test]
    fn as_many_as_allowed_then_one_each_interval() {
        let clock = clock();
        let throttle = Throttle::new(10, clock.clone());
        let key = [Key::Account("a@b")];
        for _ in 0..10 {
            assert_eq!(throttle.admit(&key), Ok(()));
        }
        assert_eq!(throttle.admit(&key), Err(Throttled { retry_after_ms: 6_000 }));
        clock.advance_ms(5_999);
        assert_eq!(throttle.admit(&key), Err(Throttled { retry_after_ms: 1 }));
        clock.advance_ms(1);
        assert_eq!(throttle.admit(&key), Ok(()));
        assert!(throttle.admit(&key).is_err());
        assert_eq!(throttle.admit(&[Key::Account("other")]), Ok(()));
        clock.advance_ms(60_000);
        for _ in 0..10 {
            assert_eq!(throttle.admit(&key), Ok(()));
        }
        assert!(throttle.admit(&key).is_err(), "a rest gives one full bucket, not more");
    }

    #[test]
    fn an_empty_bucket_takes_nothing_from_the_other() {
        let throttle = Throttle::new(2, clock());
        let (account, client) = (Key::Account("a@b"), address("192.0.2.1"));
        for _ in 0..2 {
            assert!(throttle.admit(&[account]).is_ok());
        }
        for _ in 0..5 {
            assert!(throttle.admit(&[account, client]).is_err());
        }
        assert!(throttle.admit(&[client]).is_ok() && throttle.admit(&[client]).is_ok());
        throttle.forgive(account);
        assert!(throttle.admit(&[account]).is_ok());
        assert!(throttle.admit(&[client]).is_err(), "the address keeps its count");
    }

    #[test]
    fn an_ipv6_network_is_one_client_and_mapped_ipv4_is_ipv4() {
        let throttle = Throttle::new(1, clock());
        assert!(throttle.admit(&[address("2001:db8:1:2::1")]).is_ok());
        assert!(throttle.admit(&[address("2001:db8:1:2:ffff::9")]).is_err());
        assert!(throttle.admit(&[address("2001:db8:1:3::1")]).is_ok());
        assert!(throttle.admit(&[address("192.0.2.1")]).is_ok());
        assert!(throttle.admit(&[address("::ffff:192.0.2.1")]).is_err());
        assert!(throttle.admit(&[Key::Address(None)]).is_ok());
        assert!(throttle.admit(&[Key::Address(None)]).is_err());
    }

    #[test]
    fn zero_is_no_limit() {
        let throttle = Throttle::new(0, clock());
        assert!((0..1_000).all(|_| throttle.admit(&[Key::Account("a")]).is_ok()));
        assert_eq!(throttle.len(), 0);
    }

    #[test]
    fn memory_is_bounded_and_the_busiest_stay() {
        let clock = clock();
        let throttle = Throttle::new(10, clock.clone());
        let guessed = [Key::Account("guessed")];
        while throttle.admit(&guessed).is_ok() {}
        for number in 0..KEYS_MAX * 2 {
            let text = number.to_string();
            assert!(throttle.admit(&[Key::Account(&text)]).is_ok());
            assert!(throttle.len() <= KEYS_MAX);
        }
        assert!(throttle.len() >= KEYS_MAX / 2);
        assert!(throttle.admit(&guessed).is_err(), "the one that was guessed at is not forgotten");
        clock.advance_ms(60_000);
        let small = Throttle::with_room(10, clock.clone(), 4);
        for number in 0..4 {
            assert!(small.admit(&[Key::Account(&number.to_string())]).is_ok());
        }
        clock.advance_ms(6_000);
        assert!(small.admit(&[Key::Account("new")]).is_ok());
        assert_eq!(small.len(), 1, "full buckets are as good as none");
    }
}
