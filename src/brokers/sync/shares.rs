//! What users' syncs may take of one broker: each API key its own limit, and all syncs together a
//! common one, which is shared out so that nobody takes it alone.
//!
//! Of the common limit one user has a third at most, one network half, and all strangers together
//! half: those who have not synced with this broker since the start. So whoever has, has the other
//! half whatever accounts and keys somebody else invents. And syncs that the broker refuses for
//! what was sent, such as an invented key, weigh on the user and the network first. Asked on
//! upstream lanes; never blocks.

use std::net::IpAddr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::key_limiter::{CallBudgets, Fingerprint, KEYS_MAX, Permits, Rates};
use crate::base::Clock;
use crate::base::network::network;

/// Syncs that the broker may refuse within a minute. Somebody who copies a code wrongly tries again
/// two or three times; of one user with one key, these few calls are all that can be taken from a
/// key's owner.
const REFUSALS_OF_PAIR: usize = 5;
/// With whatever keys.
const REFUSALS_OF_USER: usize = 10;
/// Of all users behind one address, which may be an office.
const REFUSALS_OF_NETWORK: usize = 20;

/// The common limit divided by these is the share of one user, of one network, and of all strangers
/// together.
const USER_DIVISOR: usize = 3;
const NETWORK_DIVISOR: usize = 2;
const STRANGERS_DIVISOR: usize = 2;

/// Owner of the server's own calls; accounts count from 1.
const SERVER: i64 = 0;

/// Whose calls, and with which key.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    /// `None` for the server itself, which only the key's limit holds back.
    pub(crate) user: Option<i64>,
    network: Fingerprint,
    pub(crate) key: Fingerprint,
    pair: Fingerprint,
}

impl Caller {
    fn number(self) -> i64 {
        self.user.unwrap_or(SERVER)
    }
}

/// Calls that were taken, of each limit that counts them.
#[derive(Clone, Copy)]
pub(crate) struct Taken([Option<Permits>; LIMITS]);

/// Key, together, user, network, strangers.
const LIMITS: usize = 5;

impl Taken {
    pub(crate) fn left(&self) -> usize {
        self.0[0].map_or(0, Permits::left)
    }

    pub(crate) fn use_one(&mut self) {
        self.0.iter_mut().flatten().for_each(Permits::use_one);
    }
}

/// One broker's limits.
pub(crate) struct Shares {
    /// In the order of [`Taken`].
    limits: [CallBudgets; LIMITS],
    /// Of a user with a key, of a user, of a network.
    refusals: [CallBudgets; 3],
}

impl Shares {
    /// `key` is one key's rate, `together` that of all syncs.
    pub(crate) fn new(clock: &Clock, key: Rates, together: Rates) -> Self {
        let limiter = |rates, keys_max| CallBudgets::new(clock.clone(), rates, keys_max);
        let share = |divisor| Rates { calls_max: together.calls_max / divisor, ..together };
        let refusals = |calls_max| {
            let rates = Rates { calls_max, window_ms: 60_000, day_calls_max: usize::MAX };
            limiter(rates, KEYS_MAX)
        };
        Self {
            limits: [
                limiter(key, KEYS_MAX),
                limiter(together, 1),
                limiter(share(USER_DIVISOR), KEYS_MAX),
                limiter(share(NETWORK_DIVISOR), KEYS_MAX),
                limiter(share(STRANGERS_DIVISOR), 1),
            ],
            refusals: [REFUSALS_OF_PAIR, REFUSALS_OF_USER, REFUSALS_OF_NETWORK].map(refusals),
        }
    }

    /// `client` is where the request comes from, as far as that is known.
    pub(crate) fn caller(
        &self,
        user: Option<i64>,
        client: Option<IpAddr>,
        api_key: &SecretString,
    ) -> Caller {
        let (keys, key) = (&self.limits[0], api_key.expose_secret());
        Caller {
            user,
            network: keys.fingerprint(client.map(network)),
            key: keys.fingerprint(key),
            pair: keys.fingerprint((key, user)),
        }
    }

    /// What counts the calls of `caller`, in the order of [`Taken`].
    fn counted_by(&self, caller: Caller) -> [Option<Fingerprint>; LIMITS] {
        let [keys, _, users, ..] = &self.limits;
        let Some(user) = caller.user else { return [Some(caller.key), None, None, None, None] };
        let (user, all) = (users.fingerprint(user), keys.fingerprint(()));
        let stranger = !users.is_owned(user);
        [Some(caller.key), Some(all), Some(user), Some(caller.network), stranger.then_some(all)]
    }

    /// Takes `calls` calls from every limit that counts them, or from none.
    ///
    /// # Errors
    /// How long until they may be had.
    pub(crate) fn take(&self, caller: Caller, calls: usize) -> Result<Taken, Duration> {
        let mut taken = Taken([None; LIMITS]);
        for (at, counted) in self.counted_by(caller).into_iter().enumerate() {
            let Some(counted) = counted else { continue };
            match self.limits[at].take(counted, caller.number(), calls) {
                Ok(permits) => taken.0[at] = Some(permits),
                Err(wait) => {
                    self.give_back(taken);
                    return Err(self.wait(caller, calls).unwrap_or(wait));
                }
            }
        }
        Ok(taken)
    }

    /// What is left of `taken` was not used.
    pub(crate) fn give_back(&self, taken: Taken) {
        for (limit, permits) in self.limits.iter().zip(taken.0) {
            permits.into_iter().for_each(|permits| limit.give_back(permits));
        }
    }

    /// How long until `calls` calls may be had, if they may not now; and how long for what the
    /// broker refused.
    pub(crate) fn wait(&self, caller: Caller, calls: usize) -> Option<Duration> {
        let counted = self.limits.iter().zip(self.counted_by(caller));
        let waits =
            counted.filter_map(|(limit, counted)| limit.wait(counted?, caller.number(), calls));
        let refusals = self.refusals.iter().zip(self.refused_by(caller));
        let refused =
            refusals.filter_map(|(limit, counted)| limit.wait(counted, caller.number(), 1));
        waits.chain(refused.filter(|_| caller.user.is_some())).max()
    }

    fn refused_by(&self, caller: Caller) -> [Fingerprint; 3] {
        [caller.pair, self.limits[0].fingerprint(caller.user), caller.network]
    }

    /// The broker refused a sync for what was sent with it.
    pub(crate) fn refused(&self, caller: Caller) {
        for (limit, counted) in self.refusals.iter().zip(self.refused_by(caller)) {
            limit.count(counted);
        }
    }

    /// The broker says that the key has no calls left for `length`: this user has none with it.
    pub(crate) fn block(&self, caller: Caller, length: Duration) {
        self.refusals[0].block(caller.pair, length);
    }

    /// `user` has synced with the key, which only its owner can.
    pub(crate) fn synced(&self, caller: Caller) {
        let Some(user) = caller.user else { return };
        let [keys, _, users, ..] = &self.limits;
        keys.owned_by(caller.key, user);
        users.owned_by(users.fingerprint(user), user);
    }

    /// Whether the caller has synced with the key before. The server has its own.
    pub(crate) fn is_owner(&self, caller: Caller) -> bool {
        caller.user.is_none_or(|user| self.limits[0].is_owned_by(caller.key, user))
    }

    /// Keys forgotten for lack of room, since the start.
    pub(crate) fn keys_forgotten(&self) -> u64 {
        self.limits[0].forgotten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;

    const KEY: Rates = Rates { calls_max: 10, window_ms: 1_000, day_calls_max: usize::MAX };
    const TOGETHER: Rates = Rates { calls_max: 60, window_ms: 60_000, day_calls_max: usize::MAX };

    fn shares() -> (ManualClock, Shares) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let shares = Shares::new(&clock, KEY, TOGETHER);
        (clock, shares)
    }

    fn address(number: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, number]))
    }

    fn key(number: i64) -> SecretString {
        format!("key {number}").into()
    }

    /// Takes four calls, as a sync does, with a key of the number, and says whether it could.
    fn sync(shares: &Shares, user: i64, client: Option<IpAddr>, number: i64) -> bool {
        shares.take(shares.caller(Some(user), client, &key(number)), 4).is_ok()
    }

    #[test]
    fn one_user_has_a_third_and_one_network_half() {
        let (clock, shares) = shares();
        let of_user = (0..100).filter(|n| sync(&shares, 1, address(*n), (*n).into())).count();
        assert_eq!(of_user, 5, "20 of 60 calls, from wherever and with whatever key");
        let of_network = (2..100).filter(|n| sync(&shares, *n, address(200), *n)).count();
        assert_eq!(of_network, 2, "strangers have half, of which the first user has a share");
        clock.advance_ms(60_000);
        let of_network = (2..100).filter(|n| sync(&shares, *n, address(200), *n)).count();
        assert_eq!(of_network, 7);
    }

    #[test]
    fn whoever_has_synced_has_half_for_himself_and_his_like() {
        let (_, shares) = shares();
        for user in [1, 2, 3] {
            let caller = shares.caller(Some(user), address(1), &key(user));
            let mut taken = shares.take(caller, 1).unwrap();
            taken.use_one();
            shares.synced(caller);
        }
        let strangers = (10..100).filter(|n| sync(&shares, *n, address(*n as u8), *n)).count();
        assert_eq!(strangers, 6, "from everywhere; three calls are the first syncs' own");
        assert!(sync(&shares, 1, address(1), 1) && sync(&shares, 2, address(1), 2));
        assert!(!sync(&shares, 200, address(200), 200));
    }

    #[test]
    fn refusals_weigh_on_key_user_and_network() {
        let (clock, shares) = shares();
        let caller =
            |user, client, number| shares.caller(Some(user), address(client), &key(number));
        for _ in 0..REFUSALS_OF_PAIR {
            assert_eq!(shares.wait(caller(1, 1, 1), 4), None);
            shares.refused(caller(1, 1, 1));
        }
        let minute = Some(Duration::from_secs(60));
        assert_eq!(shares.wait(caller(1, 2, 1), 4), minute, "from elsewhere too");
        assert_eq!(shares.wait(caller(1, 1, 2), 4), None, "another key");
        assert_eq!(shares.wait(caller(2, 1, 1), 4), None, "another user");
        for number in 2..7 {
            shares.refused(caller(1, 1, number));
        }
        assert_eq!(shares.wait(caller(1, 2, 99), 4), minute, "one user, whatever key");
        assert_eq!(shares.wait(caller(2, 1, 99), 4), None);
        for user in 2..12 {
            shares.refused(caller(user, 1, user));
        }
        assert_eq!(shares.wait(caller(99, 1, 99), 4), minute, "one network, whatever user");
        assert_eq!(shares.wait(caller(99, 2, 99), 4), None);
        clock.advance_ms(60_000);
        assert_eq!(shares.wait(caller(1, 1, 1), 4), None);
        // Nothing of it holds the server itself back, nor weighs on it.
        let own = shares.caller(None, None, &key(1));
        assert!(shares.take(own, 10).is_ok() && shares.take(own, 1).is_err());
    }

    #[test]
    fn all_or_none_is_taken_and_what_is_not_used_goes_back() {
        let (_, shares) = shares();
        let caller = shares.caller(Some(1), address(1), &key(1));
        let mut taken = shares.take(caller, 8).unwrap();
        assert!(shares.take(caller, 4).is_err(), "the key has two left");
        taken.use_one();
        assert_eq!(taken.left(), 7);
        shares.give_back(taken);
        assert!(shares.take(caller, 9).is_ok());
        let other = shares.caller(Some(1), address(1), &key(2));
        assert!(shares.take(other, 10).is_ok(), "19 of the user's 20, since none was lost");
        assert!(shares.take(shares.caller(Some(1), address(1), &key(3)), 1).is_err());
    }
}
