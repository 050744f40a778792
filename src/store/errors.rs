//! Errors: of an operation of the store, of opening a database, and of a command that uses one.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::views::states::StoreState as State;

/// Result of an operation of the store.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why an operation of the store failed. The text is for the log. Clients get an error code, which
/// `api/errors` chooses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the e-mail is registered already")]
    EmailTaken,
    /// An account exists or existed already, and only the first was to be added.
    #[error("this is not the first account of the database")]
    NotFirst,
    /// The user was erased meanwhile.
    #[error("no such user")]
    NoSuchUser,
    /// A user has reached a bound on what is stored.
    #[error("at most {limit} {what} per user")]
    TooMany { what: &'static str, limit: usize },
    /// The record is not in the state that the change expects. Nothing was written.
    #[error("the record is not in the state that the change expects")]
    NotAsExpected,
    /// Another node has led since. Nothing was written.
    #[error("another node leads")]
    Deposed,
    /// The user's turn ran out and another change took it. Nothing was written.
    #[error("another change of the user's portfolio has taken the turn")]
    TurnLost,
    /// The portfolio belongs to another person at the broker. Nothing was written. The id must not
    /// be logged.
    #[error("the portfolio is of another person at the broker")]
    OtherBrokerUser { kept: String },
    /// A sync that names no holdings, while this many of the broker are stored.
    #[error("the broker names no holdings, and {holdings} are stored")]
    NoHoldings { holdings: usize },
    #[error("too much is waiting for the store")]
    Busy,
    /// The deadline passed. A write may still happen.
    #[error("the store did not answer in time")]
    Late,
    /// The disk is full, or the file is read-only, corrupt or not open.
    #[error("the store cannot be used: {0}")]
    Unavailable(String),
    /// A row in a form that only a newer program knows. Nothing was written.
    #[error(
        "the user's {what} are stored in version {found} and this program knows {known}: run the \
         newer program"
    )]
    NewerRow {
        what: &'static str,
        found: i64,
        known: i64,
    },
    /// A row that this program could not have written.
    #[error("a stored row is damaged: {0}")]
    Damaged(&'static str),
}

/// Why work on a transaction failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Refused(#[from] StoreError),
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[cfg(feature = "engines")]
    #[error("{0}")]
    Postgres(#[from] tokio_postgres::Error),
}

/// Why a text is no URL of a database server, and what to give instead. Never repeats the text,
/// which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: {cure}")]
pub struct BadStoreUrl {
    pub problem: String,
    pub cure: &'static str,
}

impl BadStoreUrl {
    pub(crate) fn new(problem: impl Into<String>, cure: &'static str) -> Self {
        Self {
            problem: problem.into(),
            cure,
        }
    }
}

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A newer version of the program wrote the file.
    #[error(
        "{path} has schema version {found} and this program knows {known}; nothing was changed: \
         run the newer program again, or {way_back}"
    )]
    Newer {
        path: String,
        found: i64,
        known: i64,
        way_back: String,
    },
    #[error(
        "{path} is not a database of this program: move it away or choose another BHAV_STATE_DIR"
    )]
    Foreign { path: String },
    #[error("SQLite {0} is older than 3.51.3")]
    OldSqlite(&'static str),
    /// The file is empty, but a database was here before.
    #[error("{path} holds nothing, where a database stood: put a good copy in its place")]
    Emptied { path: String },
    /// There is no file, but a database was here before.
    #[error(
        "{path} is missing, where a database stood: put it back, or a backup of it by bhav \
         restore; to begin with a new, empty database remove {path}.mark"
    )]
    Missing { path: String },
    /// A newer program changed the schema so that an older one cannot work with it.
    #[error(
        "{url} has schema version {found}, which needs a program that knows {needs}; this one \
         knows {known}: run the newer program"
    )]
    NewerSchema {
        url: String,
        found: i64,
        needs: i64,
        known: i64,
    },
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
    /// Whether only an operator can resolve it. Then the service must not start.
    pub(crate) fn ends_the_start(&self) -> bool {
        matches!(
            self,
            Self::Newer { .. } | Self::Foreign { .. } | Self::Missing { .. } | Self::OldSqlite(_)
        )
    }

    /// The state of the store that the error means.
    pub(crate) fn state(&self) -> State {
        match self {
            Self::Sqlite(error) => state_of(error).unwrap_or(State::Unavailable),
            Self::Emptied { .. } | Self::Missing { .. } => State::Corrupt,
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

/// Whether the error concerns only writing. On a read-only medium SQLite cannot make its files next
/// to the database.
pub(crate) fn is_of_writing(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}

/// Why a file cannot be used, copied or restored. Each text names the file. The command adds what
/// to do.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    #[error("{0} is not a database of this program")]
    Foreign(PathBuf),
    #[error("{path} has schema version {found} and this program knows {known}")]
    Newer {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error("{path} is damaged: {found}")]
    Damaged { path: PathBuf, found: String },
    #[error("there is no space left for {0}")]
    NoSpace(PathBuf),
    #[error("{from} cannot be copied to {to}: {source}")]
    Copy {
        from: PathBuf,
        to: PathBuf,
        source: rusqlite::Error,
    },
    #[error("{path} has schema version {found}: start the service once, which migrates it")]
    Older { path: PathBuf, found: i64 },
    #[error("{0} exists already; it is not overwritten")]
    Exists(PathBuf),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Database {
        path: PathBuf,
        source: rusqlite::Error,
    },
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
        match OpenError::from(failure) {
            OpenError::Sqlite(error) => error.into(),
            error => error.into(),
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
                Some(ErrorCode::DatabaseCorrupt) => Self::Damaged {
                    path,
                    found: source.to_string(),
                },
                Some(ErrorCode::DiskFull) => Self::NoSpace(path),
                _ => Self::Database { path, source },
            }
        }
    }

    /// Names `path` in an error about its unpublished `copy`.
    pub(crate) fn naming(self, copy: &Path, path: &Path) -> Self {
        let own = |named: PathBuf| {
            if named == copy {
                path.to_owned()
            } else {
                named
            }
        };
        match self {
            Self::Foreign(named) => Self::Foreign(own(named)),
            Self::Newer {
                path: named,
                found,
                known,
            } => Self::Newer {
                path: own(named),
                found,
                known,
            },
            Self::Damaged { path: named, found } => Self::Damaged {
                path: own(named),
                found,
            },
            Self::NoSpace(named) => Self::NoSpace(own(named)),
            Self::Database {
                path: named,
                source,
            } => Self::Database {
                path: own(named),
                source,
            },
            Self::File {
                path: named,
                source,
            } => Self::File {
                path: own(named),
                source,
            },
            other => other,
        }
    }
}

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
