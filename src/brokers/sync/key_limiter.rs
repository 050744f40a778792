//! How often each API key may call its broker: the brokers count by key, whoever uses it.
//!
//! The same counts by user, by network, or everything together: whatever has a fingerprint.
//!
//! One per broker and budget, asked on upstream lanes; its lock is held for a few instructions and
//! never over I/O. Fingerprints are made with a key of this process, so that neither an API key nor
//! a hash that could be looked up stays in memory.
//!
//! An API key is no secret: it stands in the address of the login page. So once somebody has synced
//! with it, all others together may use half of its calls at most.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use jiff::civil::Date;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};

use crate::base::limiter::network;
use crate::base::{BoundedMap, CallWindow, Clock, clock};

/// Keys remembered at once, about a KiB each at most; beyond it the one unused for longest is
/// forgotten, those without an owner first, so that nobody can lock others out by inventing keys.
pub(crate) const KEYS_MAX: usize = 4_096;

/// Users remembered as a key's own: those of a family's app. Of more, the latest.
const OWNERS_MAX: usize = 4;

/// A broker's limits for one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// Calls within any `window_ms`.
    pub(crate) calls_max: usize,
    pub(crate) window_ms: u64,
    /// Calls within one day of IST.
    pub(crate) day_calls_max: usize,
}

/// What stands for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u64);

/// Calls that were taken, to be given back if they are not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permits {
    key: Fingerprint,
    at_ms: u64,
    calls: usize,
}

impl Permits {
    /// One of them has been used.
    pub(crate) fn use_one(&mut self) {
        self.calls = self.calls.saturating_sub(1);
    }

    pub(crate) fn left(self) -> usize {
        self.calls
    }
}

/// The usage of all keys of one broker.
pub(crate) struct CallBudgets {
    clock: Clock,
    rates: Rates,
    seed: RandomState,
    keys: Mutex<BoundedMap<Fingerprint, Usage>>,
}

struct Usage {
    window: CallWindow,
    day: Date,
    day_calls: usize,
    /// Users who synced with it, latest last.
    owners: Vec<i64>,
    /// The broker asked to be left alone until then.
    blocked_until_ms: u64,
    used_ms: u64,
}

impl CallBudgets {
    pub(crate) fn new(clock: Clock, rates: Rates, keys_max: usize) -> Self {
        Self { clock, rates, seed: RandomState::new(), keys: Mutex::new(BoundedMap::new(keys_max)) }
    }

    /// What stands for `key` in this process.
    pub(crate) fn fingerprint(&self, key: impl Hash) -> Fingerprint {
        Fingerprint(self.seed.hash_one(key))
    }

    /// Takes permits for `calls` calls of `user`, all or none.
    ///
    /// # Errors
    /// How long until they may be had.
    pub(crate) fn take(
        &self,
        key: Fingerprint,
        user: i64,
        calls: usize,
    ) -> Result<Permits, Duration> {
        let now_ms = self.clock.monotonic_ms();
        let mut keys = self.keys.lock();
        let usage = self.usage(&mut keys, key, now_ms);
        if let Some(wait) = self.wait_of(usage, user, calls, now_ms) {
            return Err(wait);
        }
        usage.day_calls += calls;
        usage.window.count(calls, now_ms);
        Ok(Permits { key, at_ms: now_ms, calls })
    }

    /// How long until [`take`](Self::take) would succeed, if it would not now. Takes nothing.
    pub(crate) fn wait(&self, key: Fingerprint, user: i64, calls: usize) -> Option<Duration> {
        let now_ms = self.clock.monotonic_ms();
        let mut keys = self.keys.lock();
        let usage = keys.value_mut(&key)?;
        self.begin_day(usage);
        self.wait_of(usage, user, calls, now_ms)
    }

    /// Counts one call that was made without being taken, whatever the limit says.
    pub(crate) fn count(&self, key: Fingerprint) {
        let now_ms = self.clock.monotonic_ms();
        let mut keys = self.keys.lock();
        let usage = self.usage(&mut keys, key, now_ms);
        usage.day_calls += 1;
        usage.window.count(1, now_ms);
    }

    fn wait_of(&self, usage: &mut Usage, user: i64, calls: usize, now_ms: u64) -> Option<Duration> {
        if usage.blocked_until_ms > now_ms {
            return Some(Duration::from_millis(usage.blocked_until_ms - now_ms));
        }
        let stranger = !usage.owners.is_empty() && !usage.owners.contains(&user);
        let share = |max: usize| if stranger { max / 2 } else { max };
        if usage.day_calls + calls > share(self.rates.day_calls_max) {
            return Some(clock::until_midnight(self.clock.now()));
        }
        let wait_ms = usage.window.wait_ms(calls, share(self.rates.calls_max), now_ms);
        (wait_ms > 0).then(|| Duration::from_millis(wait_ms))
    }

    /// What is left of `permits` was not used.
    pub(crate) fn give_back(&self, permits: Permits) {
        let mut keys = self.keys.lock();
        let Some(usage) = keys.value_mut(&permits.key) else { return };
        usage.window.give_back(permits.calls, permits.at_ms);
        usage.day_calls = usage.day_calls.saturating_sub(permits.calls);
    }

    /// `user` has synced with `key`, which only its owner can.
    pub(crate) fn owned_by(&self, key: Fingerprint, user: i64) {
        let mut keys = self.keys.lock();
        let Some(usage) = keys.value_mut(&key) else { return };
        if usage.owners.last() != Some(&user) {
            usage.owners.retain(|owner| *owner != user);
            usage.owners.push(user);
            let surplus = usage.owners.len().saturating_sub(OWNERS_MAX);
            usage.owners.drain(..surplus);
        }
    }

    /// Whether `key` has an owner.
    pub(crate) fn is_owned(&self, key: Fingerprint) -> bool {
        self.keys.lock().get(&key).is_some_and(|usage| !usage.owners.is_empty())
    }

    /// Whether `user` is among the owners of `key`.
    pub(crate) fn is_owned_by(&self, key: Fingerprint, user: i64) -> bool {
        self.keys.lock().get(&key).is_some_and(|usage| usage.owners.contains(&user))
    }

    /// Lets nothing out for `key` for `length`, as its broker asked.
    pub(crate) fn block(&self, key: Fingerprint, length: Duration) {
        let now_ms = self.clock.monotonic_ms();
        let mut keys = self.keys.lock();
        let usage = self.usage(&mut keys, key, now_ms);
        let until_ms = now_ms.saturating_add(length.as_millis() as u64);
        usage.blocked_until_ms = usage.blocked_until_ms.max(until_ms);
    }

    /// Keys forgotten for lack of room, since the start.
    pub(crate) fn forgotten(&self) -> u64 {
        self.keys.lock().evicted()
    }

    /// The usage of `key` as it is now, in a place that was freed for it if there was none.
    fn usage<'a>(
        &self,
        keys: &'a mut BoundedMap<Fingerprint, Usage>,
        key: Fingerprint,
        now_ms: u64,
    ) -> &'a mut Usage {
        let worth = |usage: &Usage| Some((!usage.owners.is_empty(), usage.used_ms));
        let usage = keys.or_insert_with(key, worth, || Usage {
            window: CallWindow::new(self.rates.calls_max, self.rates.window_ms),
            day: Date::ZERO,
            day_calls: 0,
            owners: Vec::new(),
            blocked_until_ms: 0,
            used_ms: now_ms,
        });
        self.begin_day(usage);
        usage.used_ms = now_ms;
        usage
    }

    /// Forgets what was called before today.
    fn begin_day(&self, usage: &mut Usage) {
        let today = clock::zoned(self.clock.now()).date();
        if usage.day != today {
            (usage.day, usage.day_calls) = (today, 0);
        }
    }
}

// ---- Shares
//
// What users' syncs may take of one broker: each API key its own limit, and all syncs together a
// common one, which is shared out so that nobody takes it alone.
//
// Of the common limit one user has a third at most, one network half, and all strangers together
// half: those who have not synced with this broker since the start. So whoever has, has the other
// half whatever accounts and keys somebody else invents. And syncs that the broker refuses for
// what was sent, such as an invented key, weigh on the user and the network first. Asked on
// upstream lanes; never blocks.

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

    const RATES: Rates = Rates { calls_max: 10, window_ms: 1_000, day_calls_max: 25 };

    const ANY: i64 = 7;

    fn limiter(keys_max: usize) -> (ManualClock, CallBudgets) {
        // 23:59:00 IST.
        let clock = Clock::manual("2026-11-20T18:29:00Z".parse().unwrap());
        let limiter = CallBudgets::new(clock.clone(), RATES, keys_max);
        (clock, limiter)
    }

    #[test]
    fn no_window_sees_more_than_the_limit_and_each_key_has_its_own() {
        let (clock, limiter) = limiter(KEYS_MAX);
        let (one, two) = (limiter.fingerprint("one"), limiter.fingerprint("two"));
        limiter.take(one, ANY, 4).unwrap();
        clock.advance_ms(400);
        limiter.take(one, ANY, 4).unwrap();
        assert_eq!(limiter.take(one, ANY, 3), Err(Duration::from_millis(600)));
        limiter.take(one, ANY, 2).unwrap();
        assert_eq!(limiter.take(one, ANY, 5), Err(Duration::from_millis(1_000)));
        limiter.take(two, ANY, 10).unwrap();
        clock.advance_ms(600);
        limiter.take(one, ANY, 4).unwrap();
        assert!(limiter.take(one, ANY, 1).is_err());
    }

    #[test]
    fn a_day_ends_at_midnight_in_india() {
        let (clock, limiter) = limiter(KEYS_MAX);
        let key = limiter.fingerprint("key");
        for _ in 0..5 {
            limiter.take(key, ANY, 5).unwrap();
            clock.advance_ms(1_000);
        }
        assert_eq!(limiter.take(key, ANY, 1), Err(Duration::from_secs(55)));
        clock.advance_ms(55_000);
        limiter.take(key, ANY, 1).unwrap();
    }

    #[test]
    fn a_broker_that_asks_for_rest_gets_it() {
        let (clock, limiter) = limiter(KEYS_MAX);
        let key = limiter.fingerprint("key");
        limiter.block(key, Duration::from_secs(60));
        limiter.block(key, Duration::from_secs(1));
        assert_eq!(limiter.take(key, ANY, 1), Err(Duration::from_secs(60)));
        clock.advance_ms(60_000);
        limiter.take(key, ANY, 1).unwrap();
    }

    #[test]
    fn the_key_unused_for_longest_is_forgotten_when_there_is_no_room() {
        let (clock, limiter) = limiter(3);
        let named = |n: usize| limiter.fingerprint(n);
        for n in 0..3 {
            limiter.take(named(n), ANY, 10).unwrap();
            clock.advance_ms(1);
        }
        assert!(limiter.take(named(0), ANY, 1).is_err(), "remembered, and used just now");
        clock.advance_ms(1);
        limiter.take(named(3), ANY, 10).unwrap();
        assert_eq!(limiter.forgotten(), 1);
        assert_eq!(limiter.keys.lock().len(), 3);
        assert!(limiter.take(named(0), ANY, 1).is_err(), "still remembered");
        limiter.take(named(1), ANY, 1).expect("forgotten, so it starts anew");
        // Whoever is known stays while others are invented.
        limiter.owned_by(named(1), ANY);
        for n in 10..20 {
            clock.advance_ms(1);
            limiter.take(named(n), ANY, 1).unwrap();
        }
        assert!(limiter.is_owned(named(1)) && !limiter.is_owned(named(19)));
    }

    #[test]
    fn what_was_not_taken_is_counted_all_the_same_and_waited_for() {
        let (clock, limiter) = limiter(KEYS_MAX);
        let key = limiter.fingerprint("key");
        assert_eq!(limiter.wait(key, ANY, 10), None);
        for _ in 0..12 {
            limiter.count(key);
        }
        assert_eq!(limiter.wait(key, ANY, 1), Some(Duration::from_secs(1)));
        clock.advance_ms(400);
        assert_eq!(limiter.wait(key, ANY, 1), limiter.take(key, ANY, 1).err());
        clock.advance_ms(600);
        assert_eq!(limiter.wait(key, ANY, 1), None);
        limiter.block(key, Duration::from_secs(9));
        assert_eq!(limiter.wait(key, ANY, 1), Some(Duration::from_secs(9)));
    }

    #[test]
    fn fingerprints_differ_between_processes_and_keys() {
        let (_, first) = limiter(1);
        let (_, second) = limiter(1);
        assert_eq!(first.fingerprint("key"), first.fingerprint("key"));
        assert_ne!(first.fingerprint("key"), first.fingerprint("other"));
        assert_ne!(first.fingerprint("key"), second.fingerprint("key"));
    }

    #[test]
    fn calls_that_were_not_made_are_given_back_in_their_place() {
        let (clock, limiter) = limiter(KEYS_MAX);
        let key = limiter.fingerprint("key");
        let mut early = limiter.take(key, ANY, 5).unwrap();
        clock.advance_ms(500);
        limiter.take(key, ANY, 5).unwrap();
        early.use_one();
        limiter.give_back(early);
        clock.advance_ms(500);
        assert_eq!(limiter.take(key, ANY, 6), Err(Duration::from_millis(500)));
        limiter.take(key, ANY, 5).unwrap();
        clock.advance_ms(1_000);
        limiter.take(key, ANY, 10).unwrap();
        assert!(limiter.take(key, ANY, 1).is_err(), "21 of the day's 25 are used, ten just now");
    }

    #[test]
    fn strangers_have_half_of_a_key_whose_owner_is_known() {
        let (clock, limiter) = limiter(KEYS_MAX);
        let key = limiter.fingerprint("key");
        let (owner, stranger) = (1, 2);
        limiter.take(key, stranger, 10).unwrap();
        limiter.owned_by(key, owner);
        clock.advance_ms(1_000);
        assert!(limiter.take(key, stranger, 5).is_err(), "half of the day is used");
        limiter.take(key, owner, 5).unwrap();
        limiter.take(key, owner, 5).unwrap();
        let (clock, limiter) = (clock, CallBudgets::new(limiter.clock.clone(), RATES, KEYS_MAX));
        limiter.take(key, owner, 1).unwrap();
        limiter.owned_by(key, owner);
        for _ in 0..4 {
            limiter.take(key, stranger, 1).unwrap();
        }
        assert_eq!(limiter.take(key, 3, 1), Err(Duration::from_secs(1)));
        limiter.take(key, owner, 5).unwrap();
        for other in 10..10 + OWNERS_MAX as i64 {
            limiter.owned_by(key, other);
        }
        clock.advance_ms(1_000);
        assert!(limiter.take(key, owner, 6).is_err(), "only the latest are remembered");
    }
}

#[cfg(test)]
mod shares_tests {
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
