//! The state of the server as the last operations showed it, and when it is tried again. Used from
//! any thread.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio_postgres::error::SqlState;

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

// ---- Errors
//
// What an error of the server means for the store.

/// What to do about an error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The caller is told. The server is well.
    Told(StoreError),
    /// The server is not well.
    Shows(State),
    /// The server takes no more at the moment.
    Busy,
    /// The statement was ended for lack of time.
    Late,
    /// The transaction was ended and may be tried again.
    Again,
    /// The connection is lost. What was not committed is not written.
    Lost,
    /// An error of this statement alone.
    Statement,
}

pub(crate) fn meaning(error: &tokio_postgres::Error) -> Meaning {
    let Some(found) = error.as_db_error() else {
        // Not said by the server: the connection, or what came through it.
        return Meaning::Lost;
    };
    let code = found.code();
    match code.code() {
        "40001" | "40P01" => Meaning::Again,
        // The e-mail is the only unique column of users that is not a key.
        "23505" if found.table() == Some("users") => Meaning::Told(StoreError::EmailTaken),
        "23503" => Meaning::Told(StoreError::NoSuchUser),
        "57014" => Meaning::Late,
        "53300" | "55P03" => Meaning::Busy,
        "53100" => Meaning::Shows(State::Full),
        "25006" => Meaning::Shows(State::ReadOnly),
        "57P01" | "57P02" | "57P03" => Meaning::Lost,
        other if other.starts_with("08") => Meaning::Lost,
        // Refused passwords, roles and databases, which only an operator can set right.
        other if other.starts_with("28") || other.starts_with("3D") => {
            Meaning::Shows(State::Unavailable)
        }
        other if other.starts_with("XX") && *code != SqlState::INTERNAL_ERROR => {
            Meaning::Shows(State::Corrupt)
        }
        // A pooler has closed the server's connection, or found none.
        _ if found.severity() == "FATAL" => Meaning::Lost,
        _ => Meaning::Statement,
    }
}

/// The error for a person. Without the server's details, which repeat values of rows.
pub(crate) fn in_words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(found) => format!("{} ({})", found.message(), found.code().code()),
        None => {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(inner) = cause {
                text.push_str(&format!(": {inner}"));
                cause = inner.source();
            }
            if text.contains("UnknownIssuer") {
                text.push_str("; BHAV_STORE_CA_FILE names the authorities that are trusted");
            }
            text
        }
    }
}
