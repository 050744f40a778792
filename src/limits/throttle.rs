//! Limits attempts per minute. Passwords are limited by account (whether it exists or not) and by
//! client network, other actions by user.
//!
//! Checked on the edge, before a password is hashed. All attempts of a minute may be made at once;
//! after that, attempts are admitted at even intervals.

use std::net::IpAddr;

use crate::base::Clock;
use crate::base::limiter::{KeyedLimiter, Rate};
use crate::base::network::network;
use crate::ops::Counter;

/// Most keys remembered, in about 3 MiB.
pub const KEYS_MAX: usize = 100_000;

const MINUTE_MS: u64 = 60_000;

/// What attempts are counted by.
#[derive(Clone, Copy, Debug, Hash)]
pub enum Key<'a> {
    /// A normalised e-mail address, whether or not an account has it.
    Account(&'a str),
    /// An account, tried from a network where it logged in before. Clients of other networks cannot
    /// use up these attempts.
    Familiar(&'a str, IpAddr),
    /// A client's network. `None` if the address is unknown (a Unix socket without a forwarded
    /// address): all such clients share one limit.
    Address(Option<IpAddr>),
    /// The user id of an authenticated request.
    User(i64),
}

/// A refused attempt, and the time after which the next one is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    pub retry_after_ms: u64,
}

/// Limits the attempts of each key.
pub struct Throttle {
    clock: Clock,
    keys: KeyedLimiter,
    refused: Counter,
}

impl Throttle {
    /// Allows `per_minute` attempts for each key; 0 means no limit.
    pub fn new(per_minute: u32, clock: Clock) -> Self {
        let keys = KeyedLimiter::new(rate(per_minute), KEYS_MAX);
        Self { clock, keys, refused: Counter::new() }
    }

    /// Changes the rate for all keys, including those that have made attempts.
    pub fn set_rate(&self, per_minute: u32) {
        self.keys.set_rate(rate(per_minute));
    }

    /// Counts one attempt for every key, or for none if any of them is refused.
    ///
    /// # Errors
    /// [`Throttled`] if a key has no attempt left.
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

    /// Forgets the attempts of a key, after a correct password.
    pub fn forgive(&self, key: Key<'_>) {
        self.keys.forgive(&by_network(key));
    }
}

fn rate(per_minute: u32) -> Option<Rate> {
    let attempts = u64::from(per_minute);
    (attempts > 0).then(|| Rate::new(MINUTE_MS.div_ceil(attempts), attempts))
}

/// Replaces addresses by their networks, see [`network`].
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
    fn a_minute_of_attempts_is_admitted_at_once_then_one_each_interval() {
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
        assert!(throttle.admit(&key).is_err(), "a pause refills the bucket once, not more");
    }

    #[test]
    fn an_attempt_refused_by_one_key_is_not_counted_for_the_other() {
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
    fn addresses_of_one_ipv6_network_and_unknown_addresses_share_a_limit() {
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
    fn a_rate_of_zero_means_no_limit() {
        let throttle = Throttle::new(0, clock().clone());
        assert!((0..1_000).all(|_| throttle.admit(&[Key::Account("a")]).is_ok()));
        assert_eq!(throttle.keys.len(), 0);
    }
}
