//! The state of the file, and how failures change it. Used from any thread.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use rusqlite::ffi;

use crate::ops::state_lock::{InstanceLock, NotHeld};
use crate::store::condition::{LastSeen, State};
use crate::store::errors::{Result, StoreError, state_of};
use crate::store::sqlite::log::{Inode, LogWatch};
use crate::store::tx::Failure;

/// The state of the store, shared by the writer, the readers and health.
pub(crate) struct Condition {
    pub(crate) path: PathBuf,
    pub(crate) seen: LastSeen,
    /// Identity of the file that was opened first and has the current schema. This process opens no
    /// other file and makes none.
    opened: OnceLock<Inode>,
    /// Watches the write-ahead log of the file.
    pub(crate) log: LogWatch,
    /// The lock that writing needs; `None` if no other instance is possible.
    lock: Option<Arc<InstanceLock>>,
}

impl Condition {
    pub(crate) fn new(path: &Path, lock: Option<Arc<InstanceLock>>) -> Self {
        Self {
            path: path.to_owned(),
            seen: LastSeen::unavailable("not opened yet"),
            opened: OnceLock::new(),
            log: LogWatch::new(path),
            lock,
        }
    }

    /// Whether the file was opened at least once.
    pub(crate) fn was_opened(&self) -> bool {
        self.opened.get().is_some()
    }

    /// Fails if the instance lock is not held, since another instance might write.
    pub(crate) fn expect_lock(&self) -> Result<()> {
        let Some(Err(why)) = self.lock.as_ref().map(|lock| lock.hold()) else {
            return Ok(());
        };
        let state = match &why {
            NotHeld::InUse => State::Busy,
            NotHeld::Refused(_) | NotHeld::Released => State::ReadOnly,
        };
        self.failed(state, &why.to_string());
        Err(StoreError::Unavailable(why.to_string()))
    }

    /// Fails if the path no longer names the file that was opened first: writes to a removed file
    /// would be lost. Fails also if the file was truncated to nothing.
    pub(crate) fn expect_in_place(&self) -> Result<()> {
        let Some(opened) = self.opened.get() else {
            return Ok(());
        };
        if Inode::of(&self.path).is_ok_and(|found| found == *opened) {
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

    /// Whether the names still refer to the database and the log that are in use.
    pub(crate) fn is_in_place(&self) -> bool {
        self.expect_in_place().is_ok() && self.log.in_place()
    }

    /// Records that the file was opened with the current schema. The first time, this makes the
    /// state good. Afterwards only a successful write does.
    pub(crate) fn opened(&self, takes_writes: bool) -> io::Result<()> {
        if self.was_opened() {
            return Ok(());
        }
        let identity = Inode::of(&self.path)?;
        if self.opened.set(identity).is_ok() {
            match takes_writes {
                true => self.seen.set(State::Ok, ""),
                false => self.seen.set(State::ReadOnly, "the file takes no writes"),
            }
        }
        Ok(())
    }

    /// Records that the file can be read but not written. From now on this process opens no other
    /// file.
    pub(crate) fn readable(&self) -> io::Result<()> {
        if !self.was_opened() {
            // Only the writer's thread opens the first file, so no other identity can be set
            // already.
            let _ = self.opened.set(Inode::of(&self.path)?);
        }
        Ok(())
    }

    /// Records a successful write. It does not end the state of a damaged file.
    pub(crate) fn worked(&self) {
        if !matches!(self.seen.state(), State::Ok | State::Corrupt | State::Stuck) {
            self.seen.set(State::Ok, "");
        }
    }

    /// Records a failure that shows the file to be in `state`.
    pub(crate) fn failed(&self, state: State, cause: &str) {
        if self.seen.state() != State::Corrupt {
            self.seen.set(state, cause);
        }
    }

    /// Converts a failure into the caller's error, and records the state that it shows.
    pub(crate) fn judge(&self, failure: Failure) -> StoreError {
        let error = match failure {
            Failure::Refused(error) => return error,
            Failure::Sqlite(error) => error,
            #[cfg(feature = "engines")]
            Failure::Postgres(error) => return StoreError::Unavailable(error.to_string()),
        };
        match error.sqlite_extended_error_code() {
            // Every foreign key refers to a user, and the e-mail is the only unique column that is
            // not a key.
            Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => return StoreError::NoSuchUser,
            Some(ffi::SQLITE_CONSTRAINT_UNIQUE) => return StoreError::EmailTaken,
            Some(_) => {}
            // Not an SQLite error: a column has another type than expected.
            None => return StoreError::Damaged("a column of another type"),
        }
        let cause = error.to_string();
        if let Some(state) = state_of(&error) {
            self.failed(state, &cause);
        }
        StoreError::Unavailable(cause)
    }
}
