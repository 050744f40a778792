//! Limits attempts per minute. Passwords are limited by account (whether it exists or not) and by
//! client network, other actions by user.
//!
//! Checked on the edge, before a password is hashed. All attempts of a minute may be made at once;
//! after that, attempts are admitted at even intervals.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use zeroize::Zeroizing;

use crate::base::Clock;
use crate::base::limiter::{KeyedLimiter, Rate, SharedCounts, TooEarly, network};
use crate::ops::Counter;

/// Most keys remembered, in about 3 MiB.
pub(crate) const KEYS_MAX: usize = 100_000;

const MINUTE_MS: u64 = 60_000;

/// The key by which attempts are counted.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Key<'a> {
    /// A normalised e-mail address, whether or not an account has it.
    Account(&'a str),
    /// An account, tried from one network. Clients of other networks cannot use up these attempts.
    Pair(&'a str, IpAddr),
    /// A client with a token of an earlier login, by the token's id.
    Earlier(u128),
    /// A client's network. `None` if the address is unknown (a Unix socket without a forwarded
    /// address): all such clients share one limit.
    Address(Option<IpAddr>),
    /// The user id of an authenticated request.
    User(i64),
}

/// Limits the attempts of each key.
pub struct Throttle {
    clock: Clock,
    keys: KeyedLimiter,
    refused: Counter,
    /// Whether attempts at an account are counted over all networks too.
    counts_accounts: AtomicBool,
    /// The name of this limit among nodes, and the counts of all of them.
    shared: OnceLock<(&'static str, Arc<dyn SharedCounts>)>,
}

impl Throttle {
    /// Allows `per_minute` attempts for each key; 0 means no limit.
    pub(crate) fn new(per_minute: u32, clock: Clock) -> Self {
        let keys = KeyedLimiter::new(rate(per_minute), KEYS_MAX);
        let counts_accounts = AtomicBool::new(true);
        Self {
            clock,
            keys,
            refused: Counter::new(),
            counts_accounts,
            shared: OnceLock::new(),
        }
    }

    /// From now on counts attempts together with the other nodes, under this name.
    pub(crate) fn join(&self, kind: &'static str, counts: &Arc<dyn SharedCounts>) {
        // A node joins the others once, at its start.
        let _ = self.shared.set((kind, Arc::clone(counts)));
    }

    /// An attempt with these keys that this node has admitted, to be counted at all nodes. `None`
    /// if there are no other nodes, or no limit.
    pub(crate) fn shared_attempt(&self, keys: &[Key<'_>]) -> Option<SharedAttempt> {
        let (kind, counts) = self.shared.get()?;
        let rate = self.keys.rate()?;
        let mut values: Vec<(_, u64)> = Vec::with_capacity(keys.len());
        for value in keys.iter().map(|key| value_of(by_network(*key))) {
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, cost)) => *cost += 1,
                None => values.push((value, 1)),
            }
        }
        Some(SharedAttempt {
            counts: Arc::clone(counts),
            kind,
            rate,
            values,
        })
    }

    /// Keys of an attempt at an account from an unknown network: the account, and twice the account
    /// with the network, so that one network has half of the account's attempts. A single stranger
    /// leaves the other half to everybody else.
    pub(crate) fn of_stranger<'a>(&self, account: &'a str, client: Option<IpAddr>) -> Vec<Key<'a>> {
        let own = Key::Account(account);
        if !self.counts_accounts.load(Relaxed) {
            return client
                .map(|client| Key::Pair(account, client))
                .into_iter()
                .collect();
        }
        let is_divisible = self.keys.rate().is_some_and(|rate| rate.tolerance_ms() > 0);
        match client.map(|client| Key::Pair(account, client)) {
            Some(pair) if is_divisible => vec![pair, pair, own],
            _ => vec![own],
        }
    }

    /// From now on counts no account over all networks: its password is public, so guesses must use
    /// up no attempts that its visitors share.
    pub(crate) fn count_by_network_alone(&self) {
        self.counts_accounts.store(false, Relaxed);
    }

    /// Counts an attempt that all nodes together refused.
    pub(crate) fn count_refusal(&self) {
        self.refused.increment();
    }

    /// Changes the rate for all keys, including those that have made attempts.
    pub(crate) fn set_rate(&self, per_minute: u32) {
        self.keys.set_rate(rate(per_minute));
    }

    /// Counts one attempt for every key, or for none if any of them is refused. A key that occurs
    /// twice is counted twice.
    ///
    /// # Errors
    /// [`TooEarly`] if a key has no attempt left.
    pub(crate) fn admit(&self, keys: &[Key<'_>]) -> Result<(), TooEarly> {
        let keys: Vec<Key<'_>> = keys.iter().copied().map(by_network).collect();
        let admitted = self.keys.admit(&keys, self.clock.monotonic_ms());
        admitted.inspect_err(|_| self.refused.increment())
    }

    /// Attempts refused so far.
    pub fn refused(&self) -> u64 {
        self.refused.value()
    }

    /// Forgets the attempts of a key, after a correct password.
    pub(crate) fn forgive(&self, key: Key<'_>) {
        self.keys.forgive(&by_network(key));
    }
}

/// A minute's attempts at once, then one each interval; `None` for 0, no limit.
pub(super) fn rate(per_minute: u32) -> Option<Rate> {
    let attempts = u64::from(per_minute);
    (attempts > 0).then(|| Rate::new(MINUTE_MS.div_ceil(attempts), attempts))
}

/// Replaces addresses by their networks, see [`network`].
fn by_network(key: Key<'_>) -> Key<'_> {
    match key {
        Key::Address(address) => Key::Address(address.map(network)),
        Key::Pair(account, address) => Key::Pair(account, network(address)),
        other => other,
    }
}

/// A key as bytes: the same on all nodes, and different for each key.
fn value_of(key: Key<'_>) -> Zeroizing<Vec<u8>> {
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let (letter, email, rest): (u8, &str, Vec<u8>) = match key {
        Key::Account(email) => (b'a', email, Vec::new()),
        Key::Pair(email, client) => (b'f', email, address(client)),
        Key::Earlier(token_id) => (b'e', "", token_id.to_be_bytes().to_vec()),
        Key::Address(client) => (b'n', "", client.map(address).unwrap_or_default()),
        Key::User(id) => (b'u', "", id.to_be_bytes().to_vec()),
    };
    // An e-mail address has no zero byte, and the length of the bytes after it distinguishes the
    // kinds of keys.
    let mut value = Zeroizing::new(Vec::with_capacity(2 + email.len() + rest.len()));
    value.push(letter);
    value.extend_from_slice(email.as_bytes());
    value.push(0);
    value.extend_from_slice(&rest);
    value
}

// ---- Shared
//
// Limits over all nodes together. The node's own limiter is asked first, on the edge. An attempt
// that it admits is then counted together with the other nodes, on a lane that may block, before
// the work that the limit protects.

/// An attempt that this node's limiter has admitted.
pub(crate) struct SharedAttempt {
    pub(super) counts: Arc<dyn SharedCounts>,
    pub(super) kind: &'static str,
    pub(super) rate: Rate,
    /// E-mails and addresses, in memory that is wiped, each with its cost there.
    pub(super) values: Vec<(Zeroizing<Vec<u8>>, u64)>,
}

impl SharedAttempt {
    /// Counts the attempt together with the other nodes. Blocks for a bounded time.
    ///
    /// # Errors
    /// [`TooEarly`] if the limit of all nodes together is used up.
    pub(crate) fn count(&self) -> Result<(), TooEarly> {
        let of_cost = |is_one: bool| {
            self.values
                .iter()
                .filter(move |value| (value.1 == 1) == is_one)
        };
        // Values of a higher cost are counted first, each by itself: an attempt refused there uses
        // up nothing of the shared values.
        for (value, cost) in of_cost(false) {
            self.counts.admit(self.kind, &[value], self.rate, *cost)?;
        }
        let values: Vec<&[u8]> = of_cost(true).map(|(value, _)| value.as_slice()).collect();
        self.counts.admit(self.kind, &values, self.rate, 1)
    }

    /// Forgets the attempts of all keys but the first, which is the client's address, after a
    /// correct password. Blocks as [`count`](Self::count) does.
    pub(crate) fn forgive_own(&self) {
        for (value, _) in self.values.iter().skip(1) {
            self.counts.forgive(self.kind, value);
        }
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
        assert_eq!(
            throttle.admit(&key),
            Err(TooEarly {
                retry_after_ms: 6_000
            })
        );
        clock.advance_ms(5_999);
        assert_eq!(throttle.admit(&key), Err(TooEarly { retry_after_ms: 1 }));
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
        let account = Key::Account("a@b");
        let client = address("192.0.2.1");
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
    fn keys_have_values_of_their_own_and_networks_share_one() {
        let v4 = "192.0.2.1".parse().unwrap();
        let v6 = "2001:db8:1:2::1".parse().unwrap();
        let keys = [
            Key::Account("a@b"),
            Key::Account("a@c"),
            Key::Pair("a@b", v4),
            Key::Pair("a@b", v6),
            Key::Address(None),
            Key::Address(Some(v4)),
            Key::Address(Some(v6)),
            Key::User(1),
            Key::User(2),
            Key::Earlier(1),
            Key::Earlier(2),
        ];
        let values: std::collections::HashSet<Vec<u8>> = keys
            .iter()
            .map(|key| value_of(by_network(*key)).to_vec())
            .collect();
        assert_eq!(values.len(), keys.len());
        let [one, other] = [address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff::9")];
        assert_eq!(value_of(by_network(one)), value_of(by_network(other)));
        assert!(
            Throttle::new(1, clock().clone())
                .shared_attempt(&keys)
                .is_none()
        );
    }

    #[test]
    fn one_network_has_half_of_a_strange_account_s_attempts() {
        let clock = clock();
        let throttle = Throttle::new(10, clock.clone());
        let from = |number: u8| throttle.of_stranger("a@b", Some([192, 0, 2, number].into()));
        let admitted = |number| {
            (0..100)
                .filter(|_| throttle.admit(&from(number)).is_ok())
                .count()
        };
        assert_eq!((admitted(1), admitted(2), admitted(3)), (5, 5, 0), "two have it all");
        clock.advance_ms(60_000);
        assert_eq!((admitted(1), admitted(4)), (5, 5));
        // A single attempt is not halved.
        let throttle = Throttle::new(1, clock.clone());
        assert_eq!(throttle.of_stranger("a@b", None).len(), 1);
        assert_eq!(
            throttle
                .of_stranger("a@b", Some([192, 0, 2, 1].into()))
                .len(),
            1
        );
    }

    #[test]
    fn guesses_from_ever_new_networks_take_nothing_from_a_public_account() {
        let throttle = Throttle::new(10, clock().clone());
        throttle.count_by_network_alone();
        let attempt = |number: u32| {
            throttle.admit(&throttle.of_stranger("a@b", Some(IpAddr::from(number.to_be_bytes()))))
        };
        assert!((1..1_000).all(|number| attempt(number).is_ok()));
        assert_eq!((0..20).filter(|_| attempt(7).is_ok()).count(), 9, "each network has its own");
    }

    #[test]
    fn a_rate_of_zero_means_no_limit() {
        let throttle = Throttle::new(0, clock().clone());
        assert!((0..1_000).all(|_| throttle.admit(&[Key::Account("a")]).is_ok()));
        assert_eq!(throttle.keys.len(), 0);
    }
}
