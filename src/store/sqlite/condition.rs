//! What state the store is in, and the judgement of failures that changes it.
//!
//! Any thread may look and judge; the lock is held for a copy only.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use parking_lot::Mutex;
use rusqlite::{ErrorCode, ffi};

use super::log::LogWatch;
use crate::ops::state_lock::{InstanceLock, NotHeld};
use crate::store::StoreError;

/// A state as health names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ok,
    /// The file, its directory or the medium takes no writes.
    ReadOnly,
    Full,
    /// Nothing is written any more until an operator has put a good file in place.
    Corrupt,
    /// Another process holds a lock.
    Busy,
    Unavailable,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ReadOnly => "read_only",
            Self::Full => "full",
            Self::Corrupt => "corrupt",
            Self::Busy => "busy",
            Self::Unavailable => "unavailable",
        }
    }

    /// What an error says about the file; `None` for errors that are about the work alone.
    pub(crate) fn of(error: &rusqlite::Error) -> Option<Self> {
        match error.sqlite_error_code()? {
            ErrorCode::ReadOnly => Some(Self::ReadOnly),
            ErrorCode::DiskFull => Some(Self::Full),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Some(Self::Corrupt),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(Self::Busy),
            ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::TooBig
            | ErrorCode::ApiMisuse
            | ErrorCode::ParameterOutOfRange
            | ErrorCode::Unknown => None,
            _ => Some(Self::Unavailable),
        }
    }
}

/// Why a piece of work on a connection failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
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

/// The file behind a path: a name may come to stand for another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }
}

/// Shared by the writer, the readers and whoever asks.
pub(crate) struct Condition {
    path: PathBuf,
    seen: Mutex<Seen>,
    /// Of the file that was opened first and had or got the present schema; no other is opened by
    /// this process, and none is made any more.
    opened: OnceLock<Identity>,
    /// The log that belongs to the file.
    pub(crate) log: LogWatch,
    /// Without it nothing is written; `None` where nobody else could be at work.
    lock: Option<Arc<InstanceLock>>,
    /// The service ends: nothing is opened any more.
    closed: AtomicBool,
    refused: AtomicU64,
}

impl Condition {
    pub(crate) fn new(path: &Path, lock: Option<Arc<InstanceLock>>) -> Self {
        let seen = Seen { state: State::Unavailable, cause: "not opened yet".into() };
        Self {
            path: path.to_owned(),
            seen: Mutex::new(seen),
            opened: OnceLock::new(),
            log: LogWatch::new(path),
            lock,
            closed: AtomicBool::new(false),
            refused: AtomicU64::new(0),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn state(&self) -> State {
        self.seen.lock().state
    }

    pub(crate) fn cause(&self) -> String {
        self.seen.lock().cause.clone()
    }

    /// Whether the file was opened once.
    pub(crate) fn was_opened(&self) -> bool {
        self.opened.get().is_some()
    }

    /// Nothing is opened or written any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn expect_not_closed(&self) -> Result<(), StoreError> {
        match self.closed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(StoreError::Unavailable("the service is stopping".to_owned())),
        }
    }

    /// Refuses to write beside another instance, or where none can be kept away.
    pub(crate) fn expect_lock(&self) -> Result<(), StoreError> {
        let Some(Err(why)) = self.lock.as_ref().map(|lock| lock.hold()) else { return Ok(()) };
        let state = match &why {
            NotHeld::InUse => State::Busy,
            NotHeld::Refused(_) | NotHeld::Released => State::ReadOnly,
        };
        self.failed(state, &why.to_string());
        Err(StoreError::Unavailable(why.to_string()))
    }

    /// Refuses to go on where the path stands for another file than the one opened first, or for
    /// none: what is written to a removed file is lost. Nor is a file that was cut to nothing any
    /// good.
    pub(crate) fn expect_in_place(&self) -> Result<(), StoreError> {
        let Some(opened) = self.opened.get() else { return Ok(()) };
        if Identity::of(&self.path).is_ok_and(|found| found == *opened) {
            if fs::metadata(&self.path).is_ok_and(|about| about.len() > 0) {
                return Ok(());
            }
            let cause = "the file was cut to nothing while in use";
            self.failed(State::Corrupt, cause);
            return Err(StoreError::Unavailable(cause.to_owned()));
        }
        let cause = "the file was moved, removed or replaced while in use: put it back, or stop \
                     the service, put a good copy in place and start it";
        self.failed(State::Unavailable, cause);
        Err(StoreError::Unavailable(cause.to_owned()))
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The file was opened, with the present schema. Only the first time is that good news: after
    /// that, a write has to show it.
    pub(crate) fn opened(&self, takes_writes: bool) -> io::Result<()> {
        if self.was_opened() {
            return Ok(());
        }
        let identity = Identity::of(&self.path)?;
        if self.opened.set(identity).is_ok() {
            match takes_writes {
                true => self.set(State::Ok, ""),
                false => self.set(State::ReadOnly, "the file takes no writes"),
            }
        }
        Ok(())
    }

    /// The file that is there can be read and not written: that is all this process opens.
    pub(crate) fn readable(&self) -> io::Result<()> {
        if !self.was_opened() {
            // Another thread's cannot be another file's: only the writer's thread opens first.
            let _ = self.opened.set(Identity::of(&self.path)?);
        }
        Ok(())
    }

    /// A write is on disk. A damaged file is not healed by that.
    pub(crate) fn worked(&self) {
        if !matches!(self.state(), State::Ok | State::Corrupt) {
            self.set(State::Ok, "");
        }
    }

    /// Something failed in a way that says `state` of the file.
    pub(crate) fn failed(&self, state: State, cause: &str) {
        if self.state() != State::Corrupt {
            self.set(state, cause);
        }
    }

    fn set(&self, state: State, cause: &str) {
        let before =
            std::mem::replace(&mut *self.seen.lock(), Seen { state, cause: cause.to_owned() });
        if before.state == state {
            return;
        }
        match state {
            State::Corrupt => tracing::error!(
                cause,
                "the store is damaged and takes no writes: stop the service, put a good copy in \
                 place and start it"
            ),
            State::Ok => tracing::info!(was = before.state.as_str(), "the store can be used"),
            _ => tracing::error!(state = state.as_str(), cause, "the store cannot be used fully"),
        }
    }

    /// Turns a failure into what the caller is told, and notes what it says about the file.
    pub(crate) fn judge(&self, failure: Failure) -> StoreError {
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
        let cause = error.to_string();
        if let Some(state) = State::of(&error) {
            self.failed(state, &cause);
        }
        StoreError::Unavailable(cause)
    }
}
