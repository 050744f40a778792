//! How often passwords may be tried: per account, known or not, and per client address; and what
//! else users may try so many times a minute.
//!
//! Runs on the edge, before anything is hashed. As many attempts at once as are allowed a minute,
//! then one each time its share of the minute has passed.

use std::net::IpAddr;

use crate::base::Clock;
use crate::base::limiter::{KeyedLimiter, Rate};
use crate::base::network::network;
use crate::ops::Counter;

/// Keys remembered, about 3 MiB.
pub const KEYS_MAX: usize = 100_000;

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

/// The attempts.
pub struct Throttle {
    clock: Clock,
    keys: KeyedLimiter,
    refused: Counter,
}

impl Throttle {
    /// `per_minute` attempts for each key; 0 is no limit.
    pub fn new(per_minute: u32, clock: Clock) -> Self {
        let keys = KeyedLimiter::new(rate(per_minute), KEYS_MAX);
        Self { clock, keys, refused: Counter::new() }
    }

    /// Changes the rate, also of keys that have made attempts.
    pub fn set_rate(&self, per_minute: u32) {
        self.keys.set_rate(rate(per_minute));
    }

    /// Takes one attempt of each key, or of none.
    ///
    /// # Errors
    /// [`Throttled`] where one of them has none left.
    pub fn admit<const N: usize>(&self, keys: &[Key<'_>; N]) -> Result<(), Throttled> {
        let admitted = self.keys.admit(&keys.map(by_network), self.clock.monotonic_ms());
        admitted.map_err(|early| {
            self.refused.increment();
            Throttled { retry_after_ms: early.retry_after_ms }
        })
    }

    /// Attempts refused so far.
    pub fn refused(&self) -> u64 {
        self.refused.value()
    }

    /// Gives all attempts back: who knows the password was no guesser.
    pub fn forgive(&self, key: Key<'_>) {
        self.keys.forgive(&by_network(key));
    }
}

fn rate(per_minute: u32) -> Option<Rate> {
    let attempts = u64::from(per_minute);
    (attempts > 0).then(|| Rate::new(MINUTE_MS.div_ceil(attempts), attempts))
}

/// A client is its network.
fn by_network(key: Key<'_>) -> Key<'_> {
    match key {
        Key::Address(address) => Key::Address(address.map(network)),
        Key::Familiar(account, address) => Key::Familiar(account, network(address)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;

    fn clock() -> ManualClock {
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
        let throttle = Throttle::new(2, clock().clone());
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
        let throttle = Throttle::new(1, clock().clone());
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
        let throttle = Throttle::new(0, clock().clone());
        assert!((0..1_000).all(|_| throttle.admit(&[Key::Account("a")]).is_ok()));
        assert_eq!(throttle.keys.len(), 0);
    }
}
