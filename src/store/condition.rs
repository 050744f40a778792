//! What state the store is in, and the judgement of failures that changes it.
//!
//! Any thread may look and judge; the lock is held for a copy only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rusqlite::{ErrorCode, ffi};

use super::StoreError;

/// A state as health names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ok,
    /// The file, its directory or the medium takes no writes.
    ReadOnly,
    Full,
    /// Nothing is written any more until an operator has put a good file in place.
    Corrupt,
    /// Another process holds the lock.
    Busy,
    Unavailable,
}

impl State {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ReadOnly => "read_only",
            Self::Full => "full",
            Self::Corrupt => "corrupt",
            Self::Busy => "busy",
            Self::Unavailable => "unavailable",
        }
    }

    /// What an error says about the file.
    pub(super) fn of(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Unavailable,
        }
    }
}

/// Why a piece of work on a connection failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Refused(#[from] StoreError),
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

#[derive(Clone)]
struct Seen {
    state: State,
    cause: String,
}

/// Shared by the writer, the readers and whoever asks.
pub(super) struct Condition {
    seen: Mutex<Seen>,
    /// The file was opened and has the present schema: readers may open it too.
    readable: AtomicBool,
    refused: AtomicU64,
}

impl Condition {
    pub(super) fn new() -> Self {
        let seen = Seen { state: State::Unavailable, cause: "not opened yet".into() };
        Self {
            seen: Mutex::new(seen),
            readable: AtomicBool::new(false),
            refused: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> State {
        self.seen.lock().state
    }

    pub(super) fn cause(&self) -> String {
        self.seen.lock().cause.clone()
    }

    pub(super) fn is_readable(&self) -> bool {
        self.readable.load(Ordering::Acquire)
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The file was opened, with the present schema; this forgets an earlier file's damage.
    pub(super) fn opened(&self) {
        self.readable.store(true, Ordering::Release);
        self.set(State::Ok, String::new());
    }

    /// A write is on disk. A damaged file is not healed by that.
    pub(super) fn worked(&self) {
        if !matches!(self.state(), State::Ok | State::Corrupt) {
            self.set(State::Ok, String::new());
        }
    }

    /// Something failed in a way that says `state` of the file.
    pub(super) fn failed(&self, state: State, cause: String) {
        if self.state() != State::Corrupt {
            self.set(state, cause);
        }
    }

    fn set(&self, state: State, cause: String) {
        let before =
            std::mem::replace(&mut *self.seen.lock(), Seen { state, cause: cause.clone() });
        if before.state == state {
            return;
        }
        match state {
            State::Ok => tracing::info!(was = before.state.as_str(), "the store can be used"),
            _ => tracing::error!(state = state.as_str(), %cause, "the store cannot be used fully"),
        }
    }

    /// Turns a failure into what the caller is told, and notes what it says about the file.
    pub(super) fn judge(&self, failure: Failure) -> StoreError {
        let error = match failure {
            Failure::Refused(error) => return error,
            Failure::Sqlite(error) => error,
        };
        match error.sqlite_extended_error_code() {
            // Every foreign key names a user, and the e-mail is the only value that is unique
            // without being a key.
            Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => return StoreError::NoSuchUser,
            Some(ffi::SQLITE_CONSTRAINT_UNIQUE) => return StoreError::EmailTaken,
            Some(_) => {}
            // Not SQLite's: a column of another type than was asked for.
            None => return StoreError::Damaged("a column of another type"),
        }
        self.failed(State::of(&error), error.to_string());
        StoreError::Unavailable(error.to_string())
    }
}
