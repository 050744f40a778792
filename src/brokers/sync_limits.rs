//! Counts syncs and limits them. One table ([`SyncLimits::new`]) has the limits of calls and of
//! refused syncs for each part of a caller: the API key, the user, and the network.
//!
//! An API key is not secret: the address of the login page contains it. The broker refuses a
//! stranger who has the key without its secret, and the limit of refused syncs is so low that the
//! key's owner waits for at most a second.
//!
//! The lock is held for some look-ups and never over I/O. Parts are remembered by fingerprints that
//! are made with a key of this process, so that neither an API key nor a hash that could be looked
//! up stays in memory.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use jiff::civil::Date;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};

use crate::base::limiter::network;
use crate::base::{BoundedMap, CallWindow, Clock, clock};

/// Maximum number of remembered parts, each at most about a KiB. Beyond it those unused for longest
/// are forgotten, so that nobody can lock others out with invented keys.
pub(super) const PARTS_MAX: usize = 16_384;

/// Window in which refused syncs are counted.
const REFUSED_WINDOW_MS: u64 = 60_000;

/// Longest cooldown of a key after a call that was refused for too many requests. A broker that
/// asks for more more likely means a spent key.
pub(super) const COOLDOWN_MAX: Duration = Duration::from_secs(60);

/// The parts of a caller, as places in [`Caller::parts`].
pub(super) const KEY: usize = 0;
const USER: usize = 1;
const NETWORK: usize = 2;
const PARTS: usize = 3;

/// The user and key of some calls.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    /// False for the server itself, for which only the key's limit and cooldown count.
    is_user: bool,
    /// The fingerprint of each part.
    pub(super) parts: [u64; PARTS],
}

impl Caller {
    /// The parts by which it is counted, each with its place.
    fn parts(self) -> impl Iterator<Item = (usize, u64)> {
        let counted = if self.is_user { PARTS } else { KEY + 1 };
        self.parts.into_iter().enumerate().take(counted)
    }
}

/// Limits of one part of a caller.
#[derive(Clone, Copy)]
struct Limit {
    calls_max: usize,
    window_ms: u64,
    day_calls_max: usize,
    /// Limit of syncs that the broker refuses within a minute.
    refused_max: usize,
}

/// Usage of one part of a caller.
pub(super) struct Usage {
    calls: CallWindow,
    day: Date,
    day_calls: usize,
    refused: CallWindow,
    /// End of the cooldown. Only used for keys.
    held_until_ms: u64,
    used_ms: u64,
}

/// Calls taken from the limits, which are given back if they are not made.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    pub(super) at_ms: u64,
    pub(super) calls: usize,
}

pub(super) struct SyncLimits {
    clock: Clock,
    hasher: RandomState,
    limits: [Limit; PARTS],
    together_max: usize,
    pub(super) state: Mutex<State>,
}

pub(super) struct State {
    together: CallWindow,
    pub(super) parts: BoundedMap<u64, Usage>,
}

impl SyncLimits {
    pub(super) fn new(clock: &Clock, rates: SyncRates) -> Self {
        let key = Limit {
            calls_max: rates.key_calls_max,
            window_ms: rates.key_window_ms,
            day_calls_max: rates.key_day_calls_max,
            refused_max: usize::MAX,
        };
        let share = |refused_max| Limit {
            calls_max: rates.calls_max / 2,
            window_ms: rates.window_ms,
            day_calls_max: usize::MAX,
            refused_max,
        };
        let state = State {
            together: CallWindow::new(rates.calls_max, rates.window_ms),
            parts: BoundedMap::evicting_in_batches(PARTS_MAX),
        };
        Self {
            clock: clock.clone(),
            hasher: RandomState::new(),
            // Key, user, network. A user who mistypes a code tries again two or three times. A
            // network may be an office, or many customers of one provider.
            limits: [key, share(10), share(20)],
            together_max: rates.calls_max,
            state: Mutex::new(state),
        }
    }

    /// The caller of a user, or of the server itself. `client` is the address of the request, if it
    /// is known.
    pub(super) fn caller(
        &self,
        user: Option<i64>,
        client: Option<IpAddr>,
        api_key: &SecretString,
    ) -> Caller {
        let hasher = &self.hasher;
        let key = api_key.expose_secret();
        let mut parts = [0; PARTS];
        parts[KEY] = hasher.hash_one((KEY, key));
        parts[USER] = hasher.hash_one((USER, user));
        parts[NETWORK] = hasher.hash_one((NETWORK, client.map(network)));
        Caller {
            is_user: user.is_some(),
            parts,
        }
    }

    /// Takes `calls` calls from the limits of every part and from the common limit, or none.
    ///
    /// # Errors
    /// Time until they are available.
    pub(super) fn take(&self, caller: Caller, calls: usize) -> Result<Taken, Duration> {
        let at_ms = self.clock.monotonic_ms();
        let mut state = self.state.lock();
        let wait = self
            .held(&state, caller)
            .max(self.calls_wait(&mut state, caller, calls));
        if let Some(wait) = wait {
            return Err(wait);
        }
        if caller.is_user {
            state.together.count(calls, at_ms);
        }
        for (at, part) in caller.parts() {
            let usage = self.usage(&mut state, at, part);
            usage.calls.count(calls, at_ms);
            usage.day_calls += calls;
        }
        Ok(Taken { at_ms, calls })
    }

    /// Gives back calls that were not made.
    pub(super) fn give_back(&self, caller: Caller, taken: Taken) {
        let mut state = self.state.lock();
        if caller.is_user {
            state.together.give_back(taken.calls, taken.at_ms);
        }
        for (_, part) in caller.parts() {
            let Some(usage) = state.parts.value_mut(&part) else {
                continue;
            };
            usage.calls.give_back(taken.calls, taken.at_ms);
            usage.day_calls = usage.day_calls.saturating_sub(taken.calls);
        }
    }

    /// Time until `caller` may begin a sync of `calls` calls; `None` if it may now.
    pub(super) fn wait(&self, caller: Caller, calls: usize) -> Option<Duration> {
        let now_ms = self.clock.monotonic_ms();
        let mut state = self.state.lock();
        let refused = caller.parts().filter_map(|(at, part)| {
            let usage = state.parts.value_mut(&part)?;
            duration(
                usage
                    .refused
                    .wait_ms(1, self.limits[at].refused_max, now_ms),
            )
        });
        let refused = refused.max();
        let held = self.held(&state, caller);
        refused
            .max(held)
            .max(self.calls_wait(&mut state, caller, calls))
    }

    /// Rest of the cooldown of the caller's key.
    pub(super) fn cooldown(&self, caller: Caller) -> Option<Duration> {
        self.held(&self.state.lock(), caller)
    }

    fn held(&self, state: &State, caller: Caller) -> Option<Duration> {
        let until_ms = state.parts.get(&caller.parts[KEY])?.held_until_ms;
        duration(until_ms.saturating_sub(self.clock.monotonic_ms()))
    }

    fn calls_wait(&self, state: &mut State, caller: Caller, calls: usize) -> Option<Duration> {
        let now_ms = self.clock.monotonic_ms();
        let together_ms = match caller.is_user {
            true => state.together.wait_ms(calls, self.together_max, now_ms),
            false => 0,
        };
        let waits = caller.parts().filter_map(|(at, part)| {
            let usage = state.parts.value_mut(&part)?;
            self.begin_day(usage);
            let limit = self.limits[at];
            if usage.day_calls + calls > limit.day_calls_max {
                return Some(clock::until_midnight(self.clock.now()));
            }
            duration(usage.calls.wait_ms(calls, limit.calls_max, now_ms))
        });
        waits.max().max(duration(together_ms))
    }

    /// Counts a sync whose credentials the broker refused.
    pub(super) fn refused(&self, caller: Caller) {
        let now_ms = self.clock.monotonic_ms();
        let mut state = self.state.lock();
        for (at, part) in caller.parts().skip(USER) {
            self.usage(&mut state, at, part).refused.count(1, now_ms);
        }
    }

    /// Holds back the caller's key for `length` for all its users.
    pub(super) fn hold(&self, caller: Caller, length: Duration) {
        let until_ms = self
            .clock
            .monotonic_ms()
            .saturating_add(length.as_millis() as u64);
        let mut state = self.state.lock();
        let key = self.usage(&mut state, KEY, caller.parts[KEY]);
        key.held_until_ms = key.held_until_ms.max(until_ms);
    }

    /// The current usage of a part.
    fn usage<'a>(&self, state: &'a mut State, at: usize, part: u64) -> &'a mut Usage {
        let now_ms = self.clock.monotonic_ms();
        let limit = self.limits[at];
        let worth = |usage: &Usage| Some(usage.used_ms.max(usage.held_until_ms));
        let usage = state.parts.or_insert_with(part, worth, || Usage {
            calls: CallWindow::new(limit.calls_max, limit.window_ms),
            day: Date::ZERO,
            day_calls: 0,
            refused: CallWindow::new(limit.refused_max, REFUSED_WINDOW_MS),
            held_until_ms: 0,
            used_ms: now_ms,
        });
        self.begin_day(usage);
        usage.used_ms = now_ms;
        usage
    }

    /// Resets the count of the day's calls at the first use of a day.
    fn begin_day(&self, usage: &mut Usage) {
        let today = clock::zoned(self.clock.now()).date();
        if usage.day != today {
            (usage.day, usage.day_calls) = (today, 0);
        }
    }
}

fn duration(wait_ms: u64) -> Option<Duration> {
    (wait_ms > 0).then(|| Duration::from_millis(wait_ms))
}

/// Limits of the calls to one broker for users' syncs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncRates {
    /// The broker's own limit for one API key: calls within any `key_window_ms`, and within one day
    /// of IST.
    pub(crate) key_calls_max: usize,
    pub(crate) key_window_ms: u64,
    pub(crate) key_day_calls_max: usize,
    /// All syncs of this server together: calls within any `window_ms`.
    pub(crate) calls_max: usize,
    pub(crate) window_ms: u64,
}
