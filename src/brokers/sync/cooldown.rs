//! How long users' syncs leave a broker alone that said "too many requests": the API key whose call
//! it was, whoever uses it, and longer the user, who waits twice as long after each refusal in a
//! row. Everybody only once several keys were refused within a minute: the broker then means this
//! server's address.
//!
//! Asked on upstream lanes; the lock is held for a look-up and never over I/O.

use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;

use super::key_limiter::Fingerprint;
use crate::base::{BoundedMap, Clock};

/// Longest rest of a key for others than the user whose call was refused, and of everybody. Longer
/// ones are somebody's spent key more likely than a block of the address, and a block shows again
/// at the next call.
pub(crate) const SHARED_MAX: Duration = Duration::from_secs(60);

/// Longest rest of the user whose call was refused; it doubles with each refusal in a row.
const USER_MAX: Duration = Duration::from_secs(3_600);

/// A user who caused no refusal for this long after his rest starts from the first step again.
const FORGIVEN_MS: u64 = 3_600_000;

/// Keys refused within [`TOGETHER_MS`] of each other that make everybody rest. One person may well
/// have a second app; three have something in common, which is this server.
const KEYS_TOGETHER: usize = 3;
const TOGETHER_MS: u64 = 60_000;

/// Users and keys remembered, some 100 bytes each. Past it the one whose rest ends first is
/// forgotten.
const REMEMBERED_MAX: usize = 4_096;

/// One broker's rest.
pub(crate) struct Cooldown {
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    everybody_until_ms: u64,
    users: BoundedMap<i64, Strikes>,
    keys: BoundedMap<Fingerprint, Strikes>,
}

#[derive(Clone, Copy, Default)]
struct Strikes {
    until_ms: u64,
    /// Of a user.
    in_row: u32,
    /// The last one, by a broker that did not blame the key.
    struck_ms: Option<u64>,
}

impl Cooldown {
    pub(crate) fn new(clock: Clock) -> Self {
        Self::remembering(clock, REMEMBERED_MAX)
    }

    fn remembering(clock: Clock, remembered_max: usize) -> Self {
        let (users, keys) = (BoundedMap::new(remembered_max), BoundedMap::new(remembered_max));
        Self { clock, state: Mutex::new(State { everybody_until_ms: 0, users, keys }) }
    }

    /// How long `user`, or the server itself, has to wait with `key`; `None` for not at all.
    pub(crate) fn wait(&self, user: Option<i64>, key: Fingerprint) -> Option<Duration> {
        let now_ms = self.clock.monotonic_ms();
        let state = self.state.lock();
        let own = user.and_then(|user| state.users.get(&user)).map_or(0, |own| own.until_ms);
        let of_key = state.keys.get(&key).map_or(0, |key| key.until_ms);
        let until_ms = state.everybody_until_ms.max(own).max(of_key);
        let wait_ms = until_ms.saturating_sub(now_ms);
        (wait_ms > 0).then(|| Duration::from_millis(wait_ms))
    }

    /// The broker refused a call of `user`, or of the server itself, with `key`, and wants to be
    /// left alone for `length`.
    pub(crate) fn refused(&self, user: Option<i64>, key: Fingerprint, length: Duration) {
        let now_ms = self.clock.monotonic_ms();
        let mut state = self.state.lock();
        let shared_until_ms = after(now_ms, length.min(SHARED_MAX));
        let of_key = strikes(&mut state.keys, key);
        of_key.until_ms = of_key.until_ms.max(shared_until_ms);
        of_key.struck_ms = Some(now_ms);
        let lately = |struck_ms| now_ms.saturating_sub(struck_ms) < TOGETHER_MS;
        let struck = state.keys.values().filter(|key| key.struck_ms.is_some_and(lately)).count();
        if struck >= KEYS_TOGETHER {
            if state.everybody_until_ms <= now_ms {
                tracing::warn!(keys = struck, "the broker refuses several keys; all syncs rest");
            }
            state.everybody_until_ms = state.everybody_until_ms.max(shared_until_ms);
        }
        let Some(user) = user else { return };
        let own = strikes(&mut state.users, user);
        if now_ms.saturating_sub(own.until_ms) > FORGIVEN_MS {
            own.in_row = 0;
        }
        let longer = length.saturating_mul(1 << own.in_row.min(16)).min(USER_MAX);
        own.in_row = own.in_row.saturating_add(1);
        own.until_ms = own.until_ms.max(after(now_ms, longer));
    }

    /// The broker says that `key` itself has no calls left for `length`.
    pub(crate) fn spent(&self, key: Fingerprint, length: Duration) {
        let now_ms = self.clock.monotonic_ms();
        let mut state = self.state.lock();
        let of_key = strikes(&mut state.keys, key);
        of_key.until_ms = of_key.until_ms.max(after(now_ms, length.min(SHARED_MAX)));
    }

    /// The broker served `user` with `key`: the next refusal is the first again.
    pub(crate) fn served(&self, user: i64, key: Fingerprint) {
        let mut state = self.state.lock();
        state.users.remove(&user);
        state.keys.remove(&key);
    }
}

fn after(now_ms: u64, length: Duration) -> u64 {
    now_ms.saturating_add(length.as_millis() as u64)
}

/// The strikes of `whose`; of too many, the ones whose rest ends first are forgotten.
fn strikes<K: Eq + Hash>(of: &mut BoundedMap<K, Strikes>, whose: K) -> &mut Strikes {
    of.or_insert_with(whose, |strikes| Some(strikes.until_ms), Strikes::default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;
    use crate::brokers::sync::key_limiter::{KeyedLimiter, Rates};

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    fn rest(remembered_max: usize) -> (ManualClock, Cooldown, impl Fn(u32) -> Fingerprint) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let rates = Rates { calls_max: 1, window_ms: 1, day_calls_max: 1 };
        let keys = KeyedLimiter::new(clock.clone(), rates, 1);
        let rest = Cooldown::remembering(clock.clone(), remembered_max);
        (clock, rest, move |number| keys.fingerprint(number))
    }

    #[test]
    fn a_key_rests_for_a_minute_at_most_and_its_user_longer_each_time() {
        let (clock, rest, key) = rest(REMEMBERED_MAX);
        rest.refused(Some(1), key(1), Duration::from_secs(600));
        assert_eq!(
            (rest.wait(Some(2), key(1)), rest.wait(None, key(1))),
            (seconds(60), seconds(60))
        );
        assert_eq!(rest.wait(Some(1), key(1)), seconds(600));
        assert_eq!(rest.wait(Some(1), key(2)), seconds(600), "with whatever key");
        assert_eq!((rest.wait(Some(2), key(2)), rest.wait(None, key(2))), (None, None));
        clock.advance_ms(600_000);
        assert_eq!((rest.wait(Some(1), key(1)), rest.wait(Some(2), key(1))), (None, None));
        for own_s in [60, 120, 240, 480] {
            assert_eq!(rest.wait(Some(3), key(3)), None);
            rest.refused(Some(3), key(3), Duration::from_secs(60));
            let waits = (rest.wait(Some(3), key(3)), rest.wait(Some(2), key(3)));
            assert_eq!(waits, (seconds(own_s), seconds(60)));
            clock.advance_ms(own_s as i64 * 1_000);
        }
        for _ in 0..40 {
            rest.refused(Some(3), key(3), Duration::from_secs(60));
        }
        assert_eq!(rest.wait(Some(3), key(3)), Some(USER_MAX));
        clock.advance_ms(2 * 3_600_000 + 1);
        rest.refused(Some(3), key(3), Duration::from_secs(60));
        assert_eq!(rest.wait(Some(3), key(3)), seconds(60), "forgiven");
    }

    #[test]
    fn a_success_makes_the_next_refusal_the_first_again() {
        let (clock, rest, key) = rest(REMEMBERED_MAX);
        for own_s in [1, 2, 4] {
            rest.refused(Some(1), key(1), Duration::from_secs(1));
            assert_eq!(rest.wait(Some(1), key(1)), seconds(own_s));
            clock.advance_ms(own_s as i64 * 1_000);
        }
        rest.served(1, key(1));
        rest.refused(Some(1), key(1), Duration::from_secs(1));
        assert_eq!(rest.wait(Some(1), key(1)), seconds(1));
    }

    #[test]
    fn everybody_rests_once_several_keys_were_refused_within_a_minute() {
        let (clock, rest, key) = rest(REMEMBERED_MAX);
        let (length, other) = (Duration::from_secs(30), key(99));
        for _ in 0..10 {
            rest.refused(Some(1), key(1), length);
            rest.refused(Some(1), key(2), length);
        }
        assert_eq!(rest.wait(Some(9), other), None, "two keys, however often");
        clock.advance_ms(TOGETHER_MS as i64);
        rest.refused(Some(3), key(3), length);
        rest.spent(key(4), length);
        assert_eq!(rest.wait(Some(9), key(4)), seconds(30));
        assert_eq!(rest.wait(Some(9), other), None, "the first two were long ago; one is spent");
        rest.refused(Some(5), key(5), length);
        assert_eq!(rest.wait(Some(9), other), None);
        rest.refused(Some(6), key(6), Duration::from_secs(600));
        assert_eq!((rest.wait(Some(9), other), rest.wait(None, other)), (seconds(60), seconds(60)));
    }

    #[test]
    fn memory_is_bounded_and_the_longest_rests_stay() {
        let (_, rest, key) = rest(2);
        for number in 1..=3 {
            let length = Duration::from_secs(10 * u64::from(number));
            rest.refused(Some(number.into()), key(number), length);
        }
        let sizes = || {
            let state = rest.state.lock();
            (state.users.len(), state.keys.len())
        };
        assert_eq!(sizes(), (2, 2));
        assert_eq!((rest.wait(Some(1), key(9)), rest.wait(Some(9), key(1))), (None, None));
        assert_eq!(
            (rest.wait(Some(3), key(9)), rest.wait(Some(9), key(3))),
            (seconds(30), seconds(30))
        );
    }
}
