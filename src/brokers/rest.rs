//! How long a broker that said "too many requests" is left alone by users' syncs: all of them,
//! because the broker may mean this server's address, and longer by the user whose call it was, so
//! that one user with an exhausted key cannot hold everybody back again and again.
//!
//! Asked on upstream lanes; the lock is held for a look-up and never over I/O.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::base::Clock;

/// Longest rest for everybody after one refusal. Longer ones are somebody's spent key more likely
/// than a block of the address, and a block shows again at the next call.
pub(super) const EVERYBODY_MAX: Duration = Duration::from_secs(60);

/// Longest rest of the user whose call was refused; it doubles with each refusal in a row.
const USER_MAX: Duration = Duration::from_secs(3_600);

/// A user who caused no refusal for this long after his rest starts from the first step again.
const FORGIVEN_MS: u64 = 3_600_000;

/// Users remembered, some 100 bytes each. Past it the one whose rest ends first is forgotten.
const USERS_MAX: usize = 4_096;

/// One broker's rest.
pub(super) struct Rest {
    clock: Clock,
    users_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    everybody_until_ms: u64,
    users: HashMap<i64, Strikes>,
}

#[derive(Clone, Copy, Default)]
struct Strikes {
    until_ms: u64,
    in_row: u32,
}

impl Rest {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, users_max: USERS_MAX, state: Mutex::default() }
    }

    /// How long `user`, or the server itself, has to wait; `None` for not at all.
    pub(super) fn wait(&self, user: Option<i64>) -> Option<Duration> {
        let now_ms = self.clock.monotonic_ms();
        let state = self.state.lock();
        let own = user.and_then(|user| state.users.get(&user)).map_or(0, |own| own.until_ms);
        let wait_ms = state.everybody_until_ms.max(own).saturating_sub(now_ms);
        (wait_ms > 0).then(|| Duration::from_millis(wait_ms))
    }

    /// The broker refused a call of `user`, or of the server itself, for `length`.
    pub(super) fn refused(&self, user: Option<i64>, length: Duration) {
        let now_ms = self.clock.monotonic_ms();
        let until = |length: Duration| now_ms.saturating_add(length.as_millis() as u64);
        let mut state = self.state.lock();
        let everybody_until_ms = until(length.min(EVERYBODY_MAX));
        state.everybody_until_ms = state.everybody_until_ms.max(everybody_until_ms);
        let Some(user) = user else { return };
        if state.users.len() >= self.users_max && !state.users.contains_key(&user) {
            let first = state.users.iter().min_by_key(|(_, own)| own.until_ms).map(|(id, _)| *id);
            first.and_then(|id| state.users.remove(&id));
        }
        let own = state.users.entry(user).or_default();
        if now_ms.saturating_sub(own.until_ms) > FORGIVEN_MS {
            own.in_row = 0;
        }
        let longer = length.saturating_mul(1 << own.in_row.min(16)).min(USER_MAX);
        own.in_row = own.in_row.saturating_add(1);
        own.until_ms = own.until_ms.max(until(longer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    fn rest(users_max: usize) -> (Clock, Rest) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        (clock.clone(), Rest { users_max, ..Rest::new(clock) })
    }

    #[test]
    fn everybody_waits_no_longer_than_a_minute_and_who_caused_it_longer_each_time() {
        let (clock, rest) = rest(USERS_MAX);
        rest.refused(Some(1), Duration::from_secs(600));
        assert_eq!((rest.wait(Some(2)), rest.wait(None)), (seconds(60), seconds(60)));
        assert_eq!(rest.wait(Some(1)), seconds(600));
        clock.advance_ms(600_000);
        assert_eq!((rest.wait(Some(1)), rest.wait(Some(2))), (None, None));
        for own_s in [60, 120, 240, 480] {
            let (clock, before) = (clock.clone(), rest.wait(Some(3)));
            assert_eq!(before, None);
            rest.refused(Some(3), Duration::from_secs(60));
            assert_eq!((rest.wait(Some(3)), rest.wait(Some(2))), (seconds(own_s), seconds(60)));
            clock.advance_ms(own_s as i64 * 1_000);
        }
        for _ in 0..40 {
            rest.refused(Some(3), Duration::from_secs(60));
        }
        assert_eq!(rest.wait(Some(3)), Some(USER_MAX));
        clock.advance_ms(2 * 3_600_000 + 1);
        rest.refused(Some(3), Duration::from_secs(60));
        assert_eq!(rest.wait(Some(3)), seconds(60), "forgiven");
    }

    #[test]
    fn memory_is_bounded_and_the_longest_rests_stay() {
        let (_, rest) = rest(2);
        for user in 1..=3 {
            rest.refused(Some(user), Duration::from_secs(600 * user as u64));
        }
        assert_eq!(rest.state.lock().users.len(), 2);
        assert_eq!(rest.wait(Some(1)), seconds(60), "only everybody's");
        assert_eq!(rest.wait(Some(3)), seconds(1_800));
    }
}
