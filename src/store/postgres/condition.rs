//! The state of the server as the last operations showed it, and when it is tried again. Used from
//! any thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::errors::{Meaning, in_words, meaning};
use crate::base::Clock;
use crate::ops::Counter;
use crate::store::StoreError;
use crate::store::condition::State;
use crate::store::tx::Failure;

/// Pause after the first connection that was refused; doubles with each further one.
const PAUSE_MIN_MS: u64 = 100;
const PAUSE_MAX_MS: u64 = 5_000;

struct Seen {
    state: State,
    cause: String,
}

/// The state of the server.
pub(crate) struct Condition {
    seen: Mutex<Seen>,
    clock: Clock,
    /// Connections refused since one was last accepted.
    attempts: AtomicU64,
    /// Monotonic time before which nobody connects.
    next_mono_ms: AtomicU64,
    /// Set when the service stops.
    closed: AtomicBool,
    pub(crate) refused: Counter,
    pub(crate) committed: Counter,
    pub(crate) failed: Counter,
}

impl Condition {
    pub(crate) fn new(clock: &Clock) -> Self {
        let seen = Seen { state: State::Unavailable, cause: "not connected yet".into() };
        Self {
            seen: Mutex::new(seen),
            clock: clock.clone(),
            attempts: AtomicU64::new(0),
            next_mono_ms: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            refused: Counter::new(),
            committed: Counter::new(),
            failed: Counter::new(),
        }
    }

    pub(crate) fn state(&self) -> State {
        self.seen.lock().state
    }

    pub(crate) fn cause(&self) -> String {
        self.seen.lock().cause.clone()
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn expect_not_closed(&self) -> Result<(), StoreError> {
        match self.closed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(StoreError::Unavailable("the service is stopping".to_owned())),
        }
    }

    /// Fails during the pause after connections were refused, so that a server that comes back is
    /// not met by everybody at once.
    pub(crate) fn expect_attempt(&self) -> Result<(), StoreError> {
        match self.clock.monotonic_ms() < self.next_mono_ms.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(StoreError::Unavailable(self.cause())),
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
        if wrote || self.state() == State::Unavailable {
            self.set(State::Ok, "");
        }
    }

    fn set(&self, state: State, cause: &str) {
        let mut seen = self.seen.lock();
        let before = std::mem::replace(&mut *seen, Seen { state, cause: cause.to_owned() });
        drop(seen);
        if before.state == state {
            return;
        }
        match state {
            State::Ok => tracing::info!(was = before.state.as_str(), "the store can be used"),
            _ => tracing::error!(state = state.as_str(), cause, "the store cannot be used fully"),
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
            self.set(state, &cause);
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
                self.set(State::Unavailable, &cause);
                StoreError::Unavailable(cause)
            }
            failure => self.judge(failure),
        }
    }

    /// Notes that nobody answered.
    pub(crate) fn silent(&self) {
        self.set(State::Unavailable, "the server did not answer in time");
    }
}
