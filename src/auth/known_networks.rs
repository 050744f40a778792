//! The networks from which each account was used lately. Logins from these have attempts of their
//! own, so that attackers elsewhere cannot lock the owner out.
//!
//! A network becomes known by a login and by any request with a good token. The database keeps it
//! as a keyed hash, which does not reveal who was where. The edge looks networks up under a lock
//! that is held only for the look-up, and notes each at most once a day. A login's own is written
//! before the login is answered; a lane writes the others together.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use sha2::Sha256;

use crate::auth::keys::Key;
use crate::base::limiter::network;
use crate::base::{BoundedMap, Clock};
use crate::store::{AccountId, LOGIN_NETWORK_AGAIN_MS, LOGIN_NETWORKS_MAX, LoginNetwork};

/// Most accounts remembered, in about 16 MiB. Above it, the accounts with the oldest use are
/// forgotten until their next use.
const ACCOUNTS_MAX: usize = 100_000;

/// A network is forgotten this long after its last use. That is much longer than a token lives, and
/// later the address may belong to somebody else.
pub(crate) const FORGOTTEN_MS: i64 = 30 * 24 * 3_600_000;

/// Most networks that wait to be written. They are written every few seconds. When the list is
/// full, a network is noted again at its next request.
const WAITING_MAX: usize = 1_000;

/// Prefix of the data from which the key of the hashes is derived.
const KEY_LABEL: &[u8] = b"bhav key of the networks of accounts\0";

/// The known networks of all accounts.
pub(crate) struct KnownNetworks {
    clock: Clock,
    hasher: RandomState,
    /// One hash key for each signing key. New hashes are written with the first.
    keys: Mutex<Vec<Hmac<Sha256>>>,
    state: Mutex<State>,
}

struct State {
    /// Accounts by hash of the e-mail.
    accounts: BoundedMap<u64, Account>,
    /// Time at which a network of an account was noted, by hash of both.
    noted: BoundedMap<u64, i64>,
    waiting: Vec<LoginNetwork>,
}

/// An account with its networks: hash and last use of each, the latest use at the end. A time of 0
/// is a free place.
#[derive(Clone, Copy)]
struct Account {
    id: AccountId,
    places: [(u64, i64); LOGIN_NETWORKS_MAX],
}

impl Account {
    fn latest_ms(&self) -> i64 {
        self.places[LOGIN_NETWORKS_MAX - 1].1
    }

    fn add(&mut self, place: u64, seen_ms: i64) {
        let at = self.places.iter().position(|(known, _)| *known == place);
        let known_ms = at.map_or(0, |at| self.places[at].1);
        self.places[at.unwrap_or(0)] = (place, seen_ms.max(known_ms));
        self.places.sort_by_key(|(_, seen_ms)| *seen_ms);
    }
}

impl KnownNetworks {
    pub(crate) fn new(clock: Clock, keys: &[Key]) -> Self {
        Self::with_room(clock, keys, ACCOUNTS_MAX)
    }

    fn with_room(clock: Clock, keys: &[Key], accounts_max: usize) -> Self {
        let state = State {
            accounts: BoundedMap::evicting_in_batches(accounts_max),
            noted: BoundedMap::evicting_in_batches(accounts_max),
            waiting: Vec::new(),
        };
        let known = Self {
            clock,
            hasher: RandomState::new(),
            keys: Mutex::default(),
            state: state.into(),
        };
        known.set_keys(keys);
        known
    }

    /// Changes the signing keys. Networks hashed with a removed key are no longer known.
    pub(crate) fn set_keys(&self, keys: &[Key]) {
        let derived = |key: &Key| {
            let key = mac_of(key).chain_update(KEY_LABEL).finalize().into_bytes();
            mac_of(&key)
        };
        *self.keys.lock() = keys.iter().map(derived).collect();
    }

    /// Whether `account`, a normalised e-mail address, was lately used from the network of
    /// `client`.
    pub(crate) fn knows(&self, account: &str, client: IpAddr) -> bool {
        let found = self
            .state
            .lock()
            .accounts
            .get(&self.hasher.hash_one(account))
            .copied();
        let Some(account) = found else { return false };
        let keys = self.keys.lock();
        keys.iter()
            .map(|key| hash(key, account.id, network(client)))
            .any(|place| {
                let known =
                    |(known, seen_ms): &(u64, i64)| *known == place && self.is_fresh(*seen_ms);
                account.places.iter().any(known)
            })
    }

    fn is_fresh(&self, seen_ms: i64) -> bool {
        seen_ms > 0 && self.clock.now_ms().saturating_sub(seen_ms) < FORGOTTEN_MS
    }

    /// Remembers a successful login to an account from the network of `client`.
    pub(crate) fn remember(&self, email: &str, id: AccountId, client: IpAddr) {
        self.note(id, client);
        let place = self.current_hash(id, client);
        self.state
            .lock()
            .add(self.hasher.hash_one(email), id, place, self.clock.now_ms());
    }

    /// Notes that an account was used from the network of `client`, to be written, at most once a
    /// day for each network. Otherwise this is only a look-up.
    pub(crate) fn note(&self, id: AccountId, client: IpAddr) {
        let noted = self.hasher.hash_one((id, network(client)));
        let seen_ms = self.clock.now_ms();
        {
            let state = self.state.lock();
            let is_noted = |at_ms: &i64| seen_ms - *at_ms < LOGIN_NETWORK_AGAIN_MS;
            if state.noted.get(&noted).is_some_and(is_noted) || state.waiting.len() >= WAITING_MAX {
                return;
            }
        }
        let place = self.current_hash(id, client);
        let mut state = self.state.lock();
        state.noted.insert(noted, seen_ms, |at_ms| Some(*at_ms));
        state.waiting.push(LoginNetwork {
            id,
            network: spelled(place),
            seen_ms,
        });
    }

    /// Takes the networks of one account that wait to be written.
    pub(crate) fn take_waiting_of(&self, id: AccountId) -> Vec<LoginNetwork> {
        self.state
            .lock()
            .waiting
            .extract_if(.., |waits| waits.id == id)
            .collect()
    }

    /// Takes the networks that wait to be written.
    pub(crate) fn take_waiting(&self) -> Vec<LoginNetwork> {
        std::mem::take(&mut self.state.lock().waiting)
    }

    /// Puts back networks that could not be written, as far as there is room.
    pub(crate) fn give_back(&self, rows: Vec<LoginNetwork>) {
        let mut state = self.state.lock();
        let room = WAITING_MAX.saturating_sub(state.waiting.len());
        state.waiting.extend(rows.into_iter().take(room));
    }

    /// Loads a stored network of the account with this e-mail.
    pub(crate) fn load(&self, email: &str, stored: &LoginNetwork) {
        let LoginNetwork {
            id,
            network,
            seen_ms,
        } = stored;
        if let Ok(place) = u64::from_str_radix(network, 16) {
            self.state
                .lock()
                .add(self.hasher.hash_one(email), *id, place, *seen_ms);
        }
    }

    /// Forgets the networks of an erased account, because its address may be registered again by
    /// somebody else.
    pub(crate) fn forget(&self, account: &str) {
        self.state
            .lock()
            .accounts
            .remove(&self.hasher.hash_one(account));
    }

    fn current_hash(&self, id: AccountId, client: IpAddr) -> u64 {
        self.keys
            .lock()
            .first()
            .map_or(0, |key| hash(key, id, network(client)))
    }
}

impl State {
    fn add(&mut self, email: u64, id: AccountId, place: u64, seen_ms: i64) {
        let new = || Account {
            id,
            places: Default::default(),
        };
        let worth = |account: &Account| Some(account.latest_ms());
        let account = self.accounts.or_insert_with(email, worth, new);
        // An address that was registered again has a higher id.
        match account.id.cmp(&id) {
            std::cmp::Ordering::Less => *account = new(),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => return,
        }
        account.add(place, seen_ms);
    }
}

fn mac_of(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a hash takes keys of any length")
}

fn hash(key: &Hmac<Sha256>, id: AccountId, network: IpAddr) -> u64 {
    let mut hash = key.clone();
    hash.update(&id.0.to_be_bytes());
    match network {
        IpAddr::V4(address) => hash.update(&address.octets()),
        IpAddr::V6(address) => hash.update(&address.octets()),
    }
    let hash = hash.finalize().into_bytes();
    u64::from_be_bytes(std::array::from_fn(|at| hash[at]))
}

fn spelled(place: u64) -> String {
    format!("{place:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;

    const A: (&str, AccountId) = ("a@b", AccountId(1));

    fn clock() -> ManualClock {
        Clock::manual("2026-11-20T05:30:00Z".parse().unwrap())
    }

    fn key(text: &str) -> Key {
        Key::new(text.as_bytes().to_vec())
    }

    fn known(clock: &ManualClock) -> KnownNetworks {
        KnownNetworks::new(Clock::clone(clock), &[key("one")])
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn at(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    #[test]
    fn the_last_eight_networks_of_an_account_are_known_for_a_month() {
        let clock = clock();
        let networks = known(&clock);
        assert!(!networks.knows(A.0, at(1)));
        for number in [1, 2, 3, 4, 5, 6, 7, 8, 1, 9] {
            networks.remember(A.0, A.1, at(number));
            clock.advance_ms(1_000);
        }
        let known: Vec<u8> = (1..11).filter(|n| networks.knows(A.0, at(*n))).collect();
        assert_eq!(known, [1, 3, 4, 5, 6, 7, 8, 9]);
        assert!(!networks.knows("c@d", at(1)));
        networks.remember(A.0, A.1, address("2001:db8:1:2::1"));
        assert!(networks.knows(A.0, address("2001:db8:1:2:ffff::9")));
        assert!(!networks.knows(A.0, address("2001:db8:1:3::1")));
        clock.advance_ms(FORGOTTEN_MS - 1);
        assert!(networks.knows(A.0, address("2001:db8:1:2::1")));
        clock.advance_ms(1);
        assert!(!networks.knows(A.0, address("2001:db8:1:2::1")));
        networks.remember(A.0, A.1, at(1));
        networks.forget(A.0);
        assert!(!networks.knows(A.0, at(1)));
        // The address belongs to another account now.
        networks.remember(A.0, A.1, at(1));
        networks.remember(A.0, AccountId(2), at(2));
        networks.remember(A.0, A.1, at(3));
        assert_eq!([1, 2, 3].map(|n| networks.knows(A.0, at(n))), [false, true, false]);
    }

    #[test]
    fn accounts_are_bounded_and_those_with_the_latest_use_stay() {
        let clock = clock();
        let networks = KnownNetworks::with_room(clock.clone(), &[key("one")], 16);
        for number in 0..100 {
            networks.remember(&number.to_string(), AccountId(number), at(1));
            clock.advance_ms(1);
            assert!(networks.state.lock().accounts.len() <= 16);
        }
        assert!(networks.knows("99", at(1)) && networks.knows("86", at(1)));
        assert!(!networks.knows("80", at(1)));
        assert!(networks.state.lock().accounts.len() > 12);
    }

    #[test]
    fn a_network_is_written_once_a_day_and_read_by_another_process() {
        let clock = clock();
        let networks = known(&clock);
        for _ in 0..100 {
            networks.remember(A.0, A.1, at(1));
            networks.note(A.1, at(2));
        }
        let written = networks.take_waiting();
        assert_eq!(written.len(), 2);
        assert!(
            written
                .iter()
                .all(|row| row.network.len() == 16 && row.id == A.1)
        );
        clock.advance_ms(LOGIN_NETWORK_AGAIN_MS);
        networks.note(A.1, at(1));
        assert_eq!(networks.take_waiting().len(), 1);

        let other = KnownNetworks::new(clock.clone(), &[key("two"), key("one")]);
        written.iter().for_each(|row| other.load(A.0, row));
        assert!(other.knows(A.0, at(1)) && other.knows(A.0, at(2)) && !other.knows(A.0, at(3)));
        // The networks cannot be derived from the database alone.
        other.set_keys(&[key("two")]);
        assert!(!other.knows(A.0, at(1)));
    }

    #[test]
    fn what_waits_to_be_written_is_bounded_and_comes_again() {
        let networks = known(&clock());
        let id = |number: usize| AccountId(1 + number as i64);
        (0..WAITING_MAX + 5).for_each(|number| networks.note(id(number), at(1)));
        let waiting = networks.take_waiting();
        assert_eq!(waiting.len(), WAITING_MAX);
        networks.note(id(WAITING_MAX), at(1));
        networks.give_back(waiting);
        assert_eq!(networks.take_waiting().len(), WAITING_MAX);
        networks.note(id(WAITING_MAX), at(1));
        assert!(networks.take_waiting().is_empty(), "noted before");
        networks.note(id(WAITING_MAX + 1), at(1));
        assert_eq!(networks.take_waiting().len(), 1);
    }
}
