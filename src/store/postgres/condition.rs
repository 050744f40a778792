//! The state of the server as the last operations showed it, and when it is tried again. Used from
//! any thread.

use std::sync::atomic::{AtomicU64, Ordering};

use super::errors::{Meaning, in_words, meaning};
use crate::base::Clock;
use crate::ops::{Counter, Durations};
use crate::store::StoreError;
use crate::store::condition::{LastSeen, State};
use crate::store::tx::Failure;

/// Pause after the first connection that was refused; doubles with each further one.
const PAUSE_MIN_MS: u64 = 100;
const PAUSE_MAX_MS: u64 = 5_000;

/// The state of the server.
pub(crate) struct Condition {
    pub(crate) seen: LastSeen,
    clock: Clock,
    /// Connections refused since one was last accepted.
    attempts: AtomicU64,
    /// Monotonic time before which nobody connects.
    next_mono_ms: AtomicU64,
    pub(crate) refused: Counter,
    pub(crate) committed: Counter,
    pub(crate) failed: Counter,
    /// From a request to the server's answer, of what succeeded.
    pub(crate) roundtrips: Durations,
}

impl Condition {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self {
            seen: LastSeen::unavailable("not connected yet"),
            clock: clock.clone(),
            attempts: AtomicU64::new(0),
            next_mono_ms: AtomicU64::new(0),
            refused: Counter::new(),
            committed: Counter::new(),
            failed: Counter::new(),
            roundtrips: Durations::new(1),
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Fails during the pause after connections were refused, so that a server that comes back is
    /// not met by everybody at once.
    pub(crate) fn expect_attempt(&self) -> Result<(), StoreError> {
        match self.clock.monotonic_ms() < self.next_mono_ms.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(StoreError::Unavailable(self.seen.cause())),
        }
    }

    pub(crate) fn connected(&self) {
        self.attempts.store(0, Ordering::Relaxed);
        self.next_mono_ms.store(0, Ordering::Relaxed);
    }

    pub(crate) fn not_connected(&self) {
        let before = self.attempts.fetch_add(1, Ordering::Relaxed);
        let pause_ms = (PAUSE_MIN_MS << before.min(16)).min(PAUSE_MAX_MS);
        let jittered_ms = pause_ms / 2 + fastrand::u64(..=pause_ms / 2);
        self.next_mono_ms.store(self.clock.monotonic_ms() + jittered_ms, Ordering::Relaxed);
    }

    /// Notes a transaction that was committed. One that only read shows nothing about writing.
    pub(crate) fn worked(&self, wrote: bool) {
        match self.seen.state() {
            State::Stuck => {}
            State::Unavailable => self.seen.set(State::Ok, ""),
            _ if wrote => self.seen.set(State::Ok, ""),
            _ => {}
        }
    }

    /// Converts a failure into the caller's error, and notes the state that it shows.
    pub(crate) fn judge(&self, failure: Failure) -> StoreError {
        let error = match failure {
            Failure::Refused(error) => return error,
            Failure::Sqlite(error) => return StoreError::Unavailable(error.to_string()),
            Failure::Postgres(error) => error,
        };
        let cause = in_words(&error);
        let shows = |state| {
            self.seen.set(state, &cause);
            StoreError::Unavailable(cause.clone())
        };
        match meaning(&error) {
            Meaning::Told(told) => told,
            Meaning::Shows(state) => shows(state),
            Meaning::Lost => shows(State::Unavailable),
            Meaning::Busy | Meaning::Again => StoreError::Busy,
            Meaning::Late => StoreError::Late,
            Meaning::Statement => StoreError::Unavailable(cause),
        }
    }

    /// Same as [`judge`](Self::judge), for a connection that was not made.
    pub(crate) fn judge_connecting(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Refused(StoreError::Unavailable(cause)) => {
                self.seen.set(State::Unavailable, &cause);
                StoreError::Unavailable(cause)
            }
            failure => self.judge(failure),
        }
    }

    /// Notes that nobody answered.
    pub(crate) fn silent(&self) {
        self.seen.set(State::Unavailable, "the server did not answer in time");
    }
}
