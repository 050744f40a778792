//! Cooldown after a broker's "too many requests": how long no sync calls it.
//!
//! The API key whose call was refused cools down for everybody who uses it, the user longer, twice
//! as long after each refusal in a row. All syncs cool down for some seconds once several keys were
//! refused within a minute whose owners had synced with them before: the broker then limits this
//! server's address. Whoever never synced has no say in that, since keys can be spent on purpose.
//!
//! Asked on upstream lanes; the lock is held for a look-up and never over I/O.

use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;

use super::key_limiter::Fingerprint;
use crate::base::{BoundedMap, Clock};

/// Longest cooldown of a key for others than the user whose call was refused. A broker that asks
/// for more has more likely a spent key in mind.
pub(crate) const SHARED_MAX: Duration = Duration::from_secs(60);

/// Longest cooldown of all syncs. A broker that limits the address says so again at the next call.
const EVERYBODY_MAX: Duration = Duration::from_secs(5);

/// Longest cooldown of the user whose call was refused; it doubles with each refusal in a row.
const USER_MAX: Duration = Duration::from_secs(3_600);

/// A user without a refusal for this long after a cooldown starts from the first step again.
const FORGIVEN_MS: u64 = 3_600_000;

/// Keys of known owners that are refused within [`TOGETHER_MS`] of each other after which all syncs
/// cool down. One person may well have a second app. What three keys have in common is this server.
const KEYS_TOGETHER: usize = 3;
const TOGETHER_MS: u64 = 60_000;

/// Users and keys remembered, some 100 bytes each. Of more, the one whose cooldown ends first is
/// forgotten.
const REMEMBERED_MAX: usize = 4_096;

/// The cooldowns of one broker's syncs.
pub(crate) struct Cooldown {
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    everybody_until_ms: u64,
    users: BoundedMap<i64, Refusals>,
    keys: BoundedMap<Fingerprint, Refusals>,
}

#[derive(Clone, Copy, Default)]
struct Refusals {
    until_ms: u64,
    /// How many in a row; of a user only.
    in_row: u32,
    /// When the last one of its owner was; of a key only, and not where the broker named the key's
    /// own limit.
    refused_ms: Option<u64>,
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

    /// The broker refused a call of `user`, or of the server itself, with `key`, for too many
    /// requests, and wants no call for `length`. `is_owner` says whether that user has synced with
    /// the key before.
    pub(crate) fn refused(
        &self,
        user: Option<i64>,
        key: Fingerprint,
        length: Duration,
        is_owner: bool,
    ) {
        let now_ms = self.clock.monotonic_ms();
        let mut state = self.state.lock();
        let of_key = refusals(&mut state.keys, key);
        of_key.until_ms = of_key.until_ms.max(after(now_ms, length.min(SHARED_MAX)));
        if is_owner {
            of_key.refused_ms = Some(now_ms);
        }
        let lately = |refused_ms| now_ms.saturating_sub(refused_ms) < TOGETHER_MS;
        let refused = state.keys.values().filter(|key| key.refused_ms.is_some_and(lately)).count();
        if is_owner && refused >= KEYS_TOGETHER {
            if state.everybody_until_ms <= now_ms {
                tracing::warn!(
                    keys = refused,
                    "the broker refuses several API keys; no sync calls it for a while"
                );
            }
            let until_ms = after(now_ms, length.min(EVERYBODY_MAX));
            state.everybody_until_ms = state.everybody_until_ms.max(until_ms);
        }
        let Some(user) = user else { return };
        let own = refusals(&mut state.users, user);
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
        let of_key = refusals(&mut state.keys, key);
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

/// The refusals of `whose`. Of too many, those whose cooldown ends first are forgotten.
fn refusals<K: Eq + Hash>(of: &mut BoundedMap<K, Refusals>, whose: K) -> &mut Refusals {
    of.or_insert_with(whose, |refusals| Some(refusals.until_ms), Refusals::default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;
    use crate::brokers::sync::key_limiter::{CallBudgets, Rates};

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    fn cooldown(remembered_max: usize) -> (ManualClock, Cooldown, impl Fn(u32) -> Fingerprint) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let rates = Rates { calls_max: 1, window_ms: 1, day_calls_max: 1 };
        let keys = CallBudgets::new(clock.clone(), rates, 1);
        let cooldown = Cooldown::remembering(clock.clone(), remembered_max);
        (clock, cooldown, move |number| keys.fingerprint(number))
    }

    #[test]
    fn a_key_rests_for_a_minute_at_most_and_its_user_longer_each_time() {
        let (clock, cooldown, key) = cooldown(REMEMBERED_MAX);
        cooldown.refused(Some(1), key(1), Duration::from_secs(600), true);
        assert_eq!(
            (cooldown.wait(Some(2), key(1)), cooldown.wait(None, key(1))),
            (seconds(60), seconds(60))
        );
        assert_eq!(cooldown.wait(Some(1), key(1)), seconds(600));
        assert_eq!(cooldown.wait(Some(1), key(2)), seconds(600), "with whatever key");
        assert_eq!((cooldown.wait(Some(2), key(2)), cooldown.wait(None, key(2))), (None, None));
        clock.advance_ms(600_000);
        assert_eq!((cooldown.wait(Some(1), key(1)), cooldown.wait(Some(2), key(1))), (None, None));
        for own_s in [60, 120, 240, 480] {
            assert_eq!(cooldown.wait(Some(3), key(3)), None);
            cooldown.refused(Some(3), key(3), Duration::from_secs(60), true);
            let waits = (cooldown.wait(Some(3), key(3)), cooldown.wait(Some(2), key(3)));
            assert_eq!(waits, (seconds(own_s), seconds(60)));
            clock.advance_ms(own_s as i64 * 1_000);
        }
        for _ in 0..40 {
            cooldown.refused(Some(3), key(3), Duration::from_secs(60), true);
        }
        assert_eq!(cooldown.wait(Some(3), key(3)), Some(USER_MAX));
        clock.advance_ms(2 * 3_600_000 + 1);
        cooldown.refused(Some(3), key(3), Duration::from_secs(60), true);
        assert_eq!(cooldown.wait(Some(3), key(3)), seconds(60), "forgiven");
    }

    #[test]
    fn a_success_makes_the_next_refusal_the_first_again() {
        let (clock, cooldown, key) = cooldown(REMEMBERED_MAX);
        for own_s in [1, 2, 4] {
            cooldown.refused(Some(1), key(1), Duration::from_secs(1), true);
            assert_eq!(cooldown.wait(Some(1), key(1)), seconds(own_s));
            clock.advance_ms(own_s as i64 * 1_000);
        }
        cooldown.served(1, key(1));
        cooldown.refused(Some(1), key(1), Duration::from_secs(1), true);
        assert_eq!(cooldown.wait(Some(1), key(1)), seconds(1));
    }

    #[test]
    fn everybody_rests_for_seconds_once_several_owners_were_refused_within_a_minute() {
        let (clock, cooldown, key) = cooldown(REMEMBERED_MAX);
        let (length, other) = (Duration::from_secs(30), key(99));
        for _ in 0..10 {
            cooldown.refused(Some(1), key(1), length, true);
            cooldown.refused(Some(1), key(2), length, true);
        }
        assert_eq!(cooldown.wait(Some(9), other), None, "two keys, however often");
        clock.advance_ms(TOGETHER_MS as i64);
        cooldown.refused(Some(3), key(3), length, true);
        cooldown.spent(key(4), length);
        assert_eq!(cooldown.wait(Some(9), key(4)), seconds(30));
        assert_eq!(
            cooldown.wait(Some(9), other),
            None,
            "the first two were long ago; one is spent"
        );
        cooldown.refused(Some(5), key(5), length, true);
        assert_eq!(cooldown.wait(Some(9), other), None);
        for number in 10..20 {
            cooldown.refused(Some(number.into()), key(number), length, false);
        }
        assert_eq!(cooldown.wait(Some(9), other), None, "strangers, however many");
        cooldown.refused(Some(6), key(6), Duration::from_secs(600), true);
        assert_eq!(
            (cooldown.wait(Some(9), other), cooldown.wait(None, other)),
            (Some(EVERYBODY_MAX), Some(EVERYBODY_MAX))
        );
        assert_eq!(cooldown.wait(Some(9), key(6)), seconds(60));
    }

    #[test]
    fn memory_is_bounded_and_the_longest_rests_stay() {
        let (_, cooldown, key) = cooldown(2);
        for number in 1..=3 {
            let length = Duration::from_secs(10 * u64::from(number));
            cooldown.refused(Some(number.into()), key(number), length, true);
        }
        let sizes = || {
            let state = cooldown.state.lock();
            (state.users.len(), state.keys.len())
        };
        assert_eq!(sizes(), (2, 2));
        assert_eq!((cooldown.wait(Some(1), key(9)), cooldown.wait(Some(9), key(1))), (None, None));
        assert_eq!(
            (cooldown.wait(Some(3), key(9)), cooldown.wait(Some(9), key(3))),
            (seconds(30), seconds(30))
        );
    }
}
