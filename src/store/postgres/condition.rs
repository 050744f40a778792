//! The state of the server as the last operations showed it, and when it is tried again. Used from
//! any thread.

use parking_lot::Mutex;

use crate::base::Clock;
use crate::ops::{Counter, Durations};
use crate::rt::outbound::BackOff;
use crate::store::StoreError;
use crate::store::condition::{LastSeen, State};
use crate::store::errors::Failure;
use crate::store::postgres::connection::{Meaning, in_words, meaning};

/// The state of the server.
pub(crate) struct Condition {
    pub(crate) seen: LastSeen,
    pub(crate) clock: Clock,
    /// Nobody connects for a while after a connection that was refused.
    back_off: Mutex<BackOff>,
    pub(crate) committed: Counter,
    pub(crate) failed: Counter,
    /// Time from a request to the server's answer, for requests that succeeded.
    pub(crate) roundtrips: Durations,
}

impl Condition {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self {
            seen: LastSeen::unavailable("not connected yet"),
            clock: clock.clone(),
            back_off: Mutex::new(BackOff::new()),
            committed: Counter::new(),
            failed: Counter::new(),
            roundtrips: Durations::new(1),
        }
    }

    /// Fails during the pause after a refused connection, so that a server that comes back is not
    /// flooded.
    pub(crate) fn expect_attempt(&self) -> Result<(), StoreError> {
        match self.back_off.lock().wait_ms(self.clock.monotonic_ms()) {
            0 => Ok(()),
            _ => Err(StoreError::Unavailable(self.seen.cause())),
        }
    }

    pub(crate) fn connected(&self) {
        self.back_off.lock().succeeded();
    }

    pub(crate) fn not_connected(&self) {
        self.back_off.lock().failed(self.clock.monotonic_ms(), 0);
    }

    /// Records a committed transaction. One that only read shows nothing about writing.
    pub(crate) fn worked(&self, wrote: bool) {
        match self.seen.state() {
            State::Stuck => {}
            State::Unavailable => self.seen.set(State::Ok, ""),
            _ if wrote => self.seen.set(State::Ok, ""),
            _ => {}
        }
    }

    /// Converts a failure into the caller's error, and records the state that it shows.
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
            Meaning::Refused(error) => error,
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

    /// Records that no answer came.
    pub(crate) fn silent(&self) {
        self.seen
            .set(State::Unavailable, "the server did not answer in time");
    }
}
