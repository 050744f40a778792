//! The networks from which each account was logged in to lately. Logins from these have attempts of
//! their own, so that attackers elsewhere cannot lock the owner out.
//!
//! Used on the edge before each login and after a successful one; one lock, held for a look-up.
//! Kept in memory only, as hashes seeded with a secret of this process: a restart forgets them, and
//! they do not reveal who was where.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use parking_lot::Mutex;

use crate::base::network::network;
use crate::base::{BoundedMap, Clock};

/// Most networks remembered for an account (home, work, phone): the latest.
const NETWORKS_MAX: usize = 3;

/// Most accounts remembered, in about 8 MiB. Beyond it those with the oldest logins are forgotten.
const ACCOUNTS_MAX: usize = 100_000;

/// A network is forgotten this long after its last login. That is much longer than a token lives,
/// and later the address may belong to somebody else.
const FORGOTTEN_MS: u64 = 30 * 24 * 3_600_000;

/// The known networks of all accounts.
pub struct KnownNetworks {
    clock: Clock,
    hasher: RandomState,
    accounts: Mutex<BoundedMap<u64, Places>>,
}

/// Hash and last login of each network, the latest at the end. A time of 0 is a free place.
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

    /// Whether `account`, a normalised e-mail address, was lately logged in to from the network of
    /// `client`.
    pub fn knows(&self, account: &str, client: IpAddr) -> bool {
        let now_ms = self.clock.monotonic_ms();
        let place = self.hasher.hash_one(network(client));
        let accounts = self.accounts.lock();
        let Some(places) = accounts.get(&self.hasher.hash_one(account)) else { return false };
        let fresh = |at_ms: u64| at_ms != 0 && now_ms.saturating_sub(at_ms) < FORGOTTEN_MS;
        places.places.iter().any(|(known, at_ms)| *known == place && fresh(*at_ms))
    }

    /// Remembers a successful login to `account` from the network of `client`.
    pub fn remember(&self, account: &str, client: IpAddr) {
        // 0 is a free place.
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

    /// Forgets the networks of an erased account, because its address may be registered again by
    /// somebody else.
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
        let networks = KnownNetworks::new(clock.clone());
        let at = |number: u8| IpAddr::from([192, 0, 2, number]);
        assert!(!networks.knows("a@b", at(1)));
        for number in [1, 2, 3, 1, 4] {
            networks.remember("a@b", at(number));
            clock.advance_ms(1_000);
        }
        let known: Vec<u8> = (1..5).filter(|n| networks.knows("a@b", at(*n))).collect();
        assert_eq!(known, [1, 3, 4]);
        assert!(!networks.knows("c@d", at(1)));
        networks.remember("a@b", address("2001:db8:1:2::1"));
        assert!(networks.knows("a@b", address("2001:db8:1:2:ffff::9")));
        assert!(!networks.knows("a@b", address("2001:db8:1:3::1")));
        clock.advance_ms(FORGOTTEN_MS as i64 - 1);
        assert!(networks.knows("a@b", address("2001:db8:1:2::1")));
        clock.advance_ms(1);
        assert!(!networks.knows("a@b", address("2001:db8:1:2::1")));
        networks.remember("a@b", at(1));
        networks.forget("a@b");
        assert!(!networks.knows("a@b", at(1)));
    }

    #[test]
    fn accounts_are_bounded_and_those_with_the_latest_logins_stay() {
        let clock = clock();
        let networks = KnownNetworks::with_room(clock.clone(), 16);
        for number in 0..100 {
            networks.remember(&number.to_string(), address("192.0.2.1"));
            clock.advance_ms(1);
            assert!(networks.accounts.lock().len() <= 16);
        }
        assert!(networks.knows("99", address("192.0.2.1")));
        assert!(networks.knows("86", address("192.0.2.1")));
        assert!(!networks.knows("80", address("192.0.2.1")));
        assert!(networks.accounts.lock().len() > 12);
    }
}
