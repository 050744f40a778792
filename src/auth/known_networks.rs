//! From where each account was logged in to lately, so that its owner keeps attempts of his own
//! while strangers use up the account's.
//!
//! Runs on the edge after a success and before each login; one lock, held for a look-up. In memory
//! alone, and as hashes with a secret of this process: a restart forgets it, and nothing here says
//! who was where.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use parking_lot::Mutex;

use crate::base::network::network;
use crate::base::{BoundedMap, Clock};

/// Networks remembered for an account: home, work, the phone. Of more, the latest.
const NETWORKS_MAX: usize = 3;

/// Accounts remembered, about 8 MiB. Past it those that were not logged in to for longest go.
const ACCOUNTS_MAX: usize = 100_000;

/// A network is forgotten this long after its last success: longer than a token lives by far, and
/// somebody else may have the address by then.
const FORGOTTEN_MS: u64 = 30 * 24 * 3_600_000;

/// Which networks have logged in to which accounts.
pub struct KnownNetworks {
    clock: Clock,
    hasher: RandomState,
    accounts: Mutex<BoundedMap<u64, Places>>,
}

/// Hash and last success of each network, latest last.
#[derive(Clone, Copy, Default)]
struct Places {
    places: [(u64, u64); NETWORKS_MAX],
}

impl Places {
    fn latest_ms(&self) -> u64 {
        self.places[NETWORKS_MAX - 1].1
    }
}

impl KnownNetworks {
    pub fn new(clock: Clock) -> Self {
        Self::with_room(clock, ACCOUNTS_MAX)
    }

    fn with_room(clock: Clock, accounts_max: usize) -> Self {
        let accounts = Mutex::new(BoundedMap::evicting_in_batches(accounts_max));
        Self { clock, hasher: RandomState::new(), accounts }
    }

    /// Whether somebody at `client` has logged in to `account`, a normalised e-mail, lately.
    pub fn knows(&self, account: &str, client: IpAddr) -> bool {
        let now_ms = self.clock.monotonic_ms();
        let place = self.hasher.hash_one(network(client));
        let accounts = self.accounts.lock();
        let Some(places) = accounts.get(&self.hasher.hash_one(account)) else { return false };
        let fresh = |at_ms: u64| at_ms != 0 && now_ms.saturating_sub(at_ms) < FORGOTTEN_MS;
        places.places.iter().any(|(known, at_ms)| *known == place && fresh(*at_ms))
    }

    /// Somebody at `client` knew the password of `account`.
    pub fn remember(&self, account: &str, client: IpAddr) {
        // Zero stands for a free place.
        let now_ms = self.clock.monotonic_ms().max(1);
        let place = self.hasher.hash_one(network(client));
        let account = self.hasher.hash_one(account);
        let mut accounts = self.accounts.lock();
        let worth = |places: &Places| Some(places.latest_ms());
        let places = &mut accounts.or_insert_with(account, worth, Places::default).places;
        let at = places.iter().position(|(known, _)| *known == place).unwrap_or(0);
        places[at..].rotate_left(1);
        places[NETWORKS_MAX - 1] = (place, now_ms);
    }

    /// The account is gone; who takes its name next is somebody else.
    pub fn forget(&self, account: &str) {
        self.accounts.lock().remove(&self.hasher.hash_one(account));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;

    fn clock() -> ManualClock {
        Clock::manual("2026-11-20T05:30:00Z".parse().unwrap())
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_last_three_networks_of_an_account_are_known_for_a_month() {
        let clock = clock();
        let familiar = KnownNetworks::new(clock.clone());
        let at = |number: u8| IpAddr::from([192, 0, 2, number]);
        assert!(!familiar.knows("a@b", at(1)));
        for number in [1, 2, 3, 1, 4] {
            familiar.remember("a@b", at(number));
            clock.advance_ms(1_000);
        }
        let known: Vec<u8> = (1..5).filter(|n| familiar.knows("a@b", at(*n))).collect();
        assert_eq!(known, [1, 3, 4]);
        assert!(!familiar.knows("c@d", at(1)));
        familiar.remember("a@b", address("2001:db8:1:2::1"));
        assert!(familiar.knows("a@b", address("2001:db8:1:2:ffff::9")));
        assert!(!familiar.knows("a@b", address("2001:db8:1:3::1")));
        clock.advance_ms(FORGOTTEN_MS as i64 - 1);
        assert!(familiar.knows("a@b", address("2001:db8:1:2::1")));
        clock.advance_ms(1);
        assert!(!familiar.knows("a@b", address("2001:db8:1:2::1")));
        familiar.remember("a@b", at(1));
        familiar.forget("a@b");
        assert!(!familiar.knows("a@b", at(1)));
    }

    #[test]
    fn memory_is_bounded_and_the_latest_stay() {
        let clock = clock();
        let familiar = KnownNetworks::with_room(clock.clone(), 16);
        for number in 0..100 {
            familiar.remember(&number.to_string(), address("192.0.2.1"));
            clock.advance_ms(1);
            assert!(familiar.accounts.lock().len() <= 16);
        }
        assert!(familiar.knows("99", address("192.0.2.1")));
        assert!(familiar.knows("86", address("192.0.2.1")));
        assert!(!familiar.knows("80", address("192.0.2.1")));
        assert!(familiar.accounts.lock().len() > 12);
    }
}
