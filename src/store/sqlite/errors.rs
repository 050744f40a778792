//! Why a database file cannot be opened, or cannot be used by a command.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use rusqlite::{ErrorCode, ffi};

use crate::ops::state_lock::{InstanceLock, NotHeld};
use crate::store::StoreError;
use crate::store::condition::{LastSeen, State};
use crate::store::settings::BadStoreUrl;
use crate::store::sqlite::log::{Inode, LogWatch};
use crate::store::tx::Failure;

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A newer version of the program wrote the file.
    #[error(
        "{path} has schema version {found} and this program knows {known}: run the newer program \
         again, or stop it and put the copy {path}.before-v{next} in place (it lacks what was \
         written since)"
    )]
    Newer { path: String, found: i64, known: i64, next: i64 },
    #[error(
        "{path} is not a database of this program: move it away or choose another BHAV_STATE_DIR"
    )]
    Foreign { path: String },
    #[error("SQLite {0} is older than 3.51.3")]
    OldSqlite(&'static str),
    /// The file is empty, but a database was here before.
    #[error("{path} holds nothing, where a database stood: put a good copy in its place")]
    Emptied { path: String },
    /// A program that could work with the schema of the server has to know more of it.
    #[error(
        "{url} has schema version {found}, which needs a program that knows {needs}; this one \
         knows {known}: run the newer program"
    )]
    NewerSchema { url: String, found: i64, needs: i64, known: i64 },
    #[error("{url} holds tables of another program: give a database, or a schema, of its own")]
    ForeignSchema { url: String },
    #[error("BHAV_STORE_URL {0}")]
    Url(#[from] BadStoreUrl),
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => error.into(),
            Failure::Sqlite(error) => error.into(),
            #[cfg(feature = "engines")]
            Failure::Postgres(error) => StoreError::Unavailable(error.to_string()).into(),
        }
    }
}

impl OpenError {
    /// Whether only an operator can resolve it, so that the service must not start.
    pub(crate) fn ends_the_start(&self) -> bool {
        matches!(self, Self::Newer { .. } | Self::Foreign { .. } | Self::OldSqlite(_))
    }

    /// The state of the store that the error means.
    pub(crate) fn state(&self) -> State {
        match self {
            Self::Sqlite(error) => state_of(error).unwrap_or(State::Unavailable),
            Self::Emptied { .. } => State::Corrupt,
            _ => State::Unavailable,
        }
    }

    /// Whether only writing failed, so that the file may still be read.
    pub(crate) fn is_of_writing(&self) -> bool {
        match self {
            Self::Sqlite(error) => is_of_writing(error),
            Self::System(_) | Self::Store(_) => true,
            _ => false,
        }
    }
}

/// On a read-only medium SQLite cannot make its files beside the database.
pub(crate) fn is_of_writing(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}

/// Why a file cannot be used, copied or restored. Each text names the file. What to do depends on
/// the command, which adds it.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    #[error("{0} is not a database of this program")]
    Foreign(PathBuf),
    #[error("{path} has schema version {found} and this program knows {known}")]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{path} is damaged: {found}")]
    Damaged { path: PathBuf, found: String },
    #[error("there is no space left for {0}")]
    NoSpace(PathBuf),
    #[error("{from} cannot be copied to {to}: {source}")]
    Copy { from: PathBuf, to: PathBuf, source: rusqlite::Error },
    #[error("{path} has schema version {found}: start the service once, which migrates it")]
    Older { path: PathBuf, found: i64 },
    #[error("{0} exists already; it is not overwritten")]
    Exists(PathBuf),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Database { path: PathBuf, source: rusqlite::Error },
    /// An error of a database that is already open.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{url} is not empty: its table {table} has rows")]
    NotEmpty { url: String, table: &'static str },
    #[error("what the server has of the table {0} is not what the file has; nothing was kept")]
    Differs(&'static str),
    /// The database of a server was not opened.
    #[error("{0}")]
    Open(Box<OpenError>),
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl From<Failure> for MaintenanceError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => error.into(),
            Failure::Sqlite(error) => error.into(),
            #[cfg(feature = "engines")]
            Failure::Postgres(error) => StoreError::Unavailable(error.to_string()).into(),
        }
    }
}

impl From<OpenError> for MaintenanceError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => Self::Store(error),
            error => Self::Open(Box::new(error)),
        }
    }
}

impl MaintenanceError {
    /// A system error about the file at `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace(path),
            _ => Self::File { path, source },
        }
    }

    /// An SQLite error about the file at `path`.
    pub(crate) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            let path = path.clone();
            match source.sqlite_error_code() {
                Some(ErrorCode::NotADatabase) => Self::Foreign(path),
                Some(ErrorCode::DatabaseCorrupt) => {
                    Self::Damaged { path, found: source.to_string() }
                }
                Some(ErrorCode::DiskFull) => Self::NoSpace(path),
                _ => Self::Database { path, source },
            }
        }
    }

    /// Names `path` in an error about its unpublished `copy`.
    pub(crate) fn naming(self, copy: &Path, path: &Path) -> Self {
        let own = |named: PathBuf| if named == copy { path.to_owned() } else { named };
        match self {
            Self::Foreign(named) => Self::Foreign(own(named)),
            Self::Newer { path: named, found, known } => {
                Self::Newer { path: own(named), found, known }
            }
            Self::Damaged { path: named, found } => Self::Damaged { path: own(named), found },
            Self::NoSpace(named) => Self::NoSpace(own(named)),
            Self::Database { path: named, source } => Self::Database { path: own(named), source },
            Self::File { path: named, source } => Self::File { path: own(named), source },
            other => other,
        }
    }
}

// ---- Condition
//
// The state of the store, and how failures change it.
//
// Used from any thread.

/// The state that an SQLite error shows; `None` for errors that concern only the statement.
pub(crate) fn state_of(error: &rusqlite::Error) -> Option<State> {
    match error.sqlite_error_code()? {
        ErrorCode::ReadOnly => Some(State::ReadOnly),
        ErrorCode::DiskFull => Some(State::Full),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Some(State::Corrupt),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(State::Busy),
        ErrorCode::ConstraintViolation
        | ErrorCode::TypeMismatch
        | ErrorCode::TooBig
        | ErrorCode::ApiMisuse
        | ErrorCode::ParameterOutOfRange
        | ErrorCode::Unknown => None,
        _ => Some(State::Unavailable),
    }
}

/// The state of the store, shared by the writer, the readers and health.
pub(crate) struct Condition {
    path: PathBuf,
    pub(crate) seen: LastSeen,
    /// Identity of the file that was opened first and has the current schema. This process opens no
    /// other file and makes none.
    opened: OnceLock<Inode>,
    /// Watches the write-ahead log of the file.
    pub(crate) log: LogWatch,
    /// The lock that writing needs; `None` if no other instance is possible.
    lock: Option<Arc<InstanceLock>>,
    refused: AtomicU64,
}

impl Condition {
    pub(crate) fn new(path: &Path, lock: Option<Arc<InstanceLock>>) -> Self {
        Self {
            path: path.to_owned(),
            seen: LastSeen::unavailable("not opened yet"),
            opened: OnceLock::new(),
            log: LogWatch::new(path),
            lock,
            refused: AtomicU64::new(0),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file was opened at least once.
    pub(crate) fn was_opened(&self) -> bool {
        self.opened.get().is_some()
    }

    /// Fails if the instance lock is not held, since another instance might write.
    pub(crate) fn expect_lock(&self) -> Result<(), StoreError> {
        let Some(Err(why)) = self.lock.as_ref().map(|lock| lock.hold()) else { return Ok(()) };
        let state = match &why {
            NotHeld::InUse => State::Busy,
            NotHeld::Refused(_) | NotHeld::Released => State::ReadOnly,
        };
        self.failed(state, &why.to_string());
        Err(StoreError::Unavailable(why.to_string()))
    }

    /// Fails if the path no longer names the file that was opened first: writes to a removed file
    /// would be lost. Fails also if the file was truncated to nothing.
    pub(crate) fn expect_in_place(&self) -> Result<(), StoreError> {
        let Some(opened) = self.opened.get() else { return Ok(()) };
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

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that the file was opened with the current schema. The state becomes good by this only
    /// the first time; afterwards only a successful write shows that.
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

    /// Notes that the file can be read and not written. From now on this process opens no other
    /// file.
    pub(crate) fn readable(&self) -> io::Result<()> {
        if !self.was_opened() {
            // Only the writer's thread opens the first file, so no other identity can be set
            // already.
            let _ = self.opened.set(Inode::of(&self.path)?);
        }
        Ok(())
    }

    /// Notes a successful write. It does not end the state of a damaged file.
    pub(crate) fn worked(&self) {
        if !matches!(self.seen.state(), State::Ok | State::Corrupt | State::Stuck) {
            self.seen.set(State::Ok, "");
        }
    }

    /// Notes a failure that shows the file to be in `state`.
    pub(crate) fn failed(&self, state: State, cause: &str) {
        if self.seen.state() != State::Corrupt {
            self.seen.set(state, cause);
        }
    }

    /// Converts a failure into the caller's error, and notes the state that it shows.
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
