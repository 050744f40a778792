//! L2 in one SQLite file of its own, which is safe to delete.
//!
//! Lane threads and start-up code share one connection. Every call blocks as long as the disk does.
//! Nothing is synced to disk: a power cut may lose this file but nothing else. A file that cannot
//! be read, or that another version wrote, is set aside and a new one made.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior, params};

use super::{Kind, L2Error, L2Stats, Record, SecondLevel, check_sizes};
use crate::base::paths::beside;
use crate::ops::owner;
use crate::views::states::CacheBackend;

/// Version of [`SCHEMA`], stored in the file's `user_version`. A file of another version is set
/// aside and made anew.
const SCHEMA_VERSION: i64 = 1;
/// Longest wait for another process that uses the file, such as a backup.
const BUSY_TIMEOUT: Duration = Duration::from_millis(1_000);
/// Size to which a checkpoint cuts the write-ahead log. Storing an instruments file makes the log
/// large for a moment.
const LOG_BYTES_KEPT: i64 = 4 * 1024 * 1024;

const SCHEMA: &str = "\
CREATE TABLE record (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    bytes BLOB NOT NULL,
    stored_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT;
-- For the bound and for the removal of what is old.
CREATE INDEX record_by_age ON record (kind, stored_ms);";
const LOAD: &str = "SELECT bytes, stored_ms FROM record WHERE kind = ?1 AND key = ?2";
const LOAD_ALL: &str = "SELECT key, bytes, stored_ms FROM record WHERE kind = ?1";
const STORE: &str = "\
INSERT INTO record (kind, key, bytes, stored_ms) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (kind, key) DO UPDATE SET bytes = excluded.bytes, stored_ms = excluded.stored_ms";
const TRIM: &str = "\
-- Keeps the ?2 records of a kind that were stored last.
DELETE FROM record WHERE rowid IN (
    SELECT rowid FROM record WHERE kind = ?1 ORDER BY stored_ms DESC LIMIT -1 OFFSET ?2
)";
const COUNT: &str = "SELECT count(*) FROM record";

/// The embedded second level.
pub struct SqliteL2 {
    path: PathBuf,
    records_max: usize,
    /// `None` if a broken file could not be replaced. The next call tries again.
    connection: Mutex<Option<Connection>>,
    /// Locked only to count, never while the disk is waited for.
    stats: Mutex<L2Stats>,
}

impl SqliteL2 {
    /// Opens the file at `path`, or makes it with mode 0600. It holds at most `records_max` records
    /// of each kind.
    ///
    /// # Errors
    /// [`L2Error::Unavailable`] if the file can be neither opened nor replaced.
    pub fn open(path: &Path, records_max: usize) -> Result<Self, L2Error> {
        let l2 = Self {
            path: path.to_owned(),
            records_max,
            connection: Mutex::new(None),
            stats: Mutex::new(L2Stats {
                backend: CacheBackend::Sqlite,
                ..L2Stats::default()
            }),
        };
        let connection = l2.connect().map_err(|broken| unavailable(&broken))?;
        l2.measure(&connection);
        *l2.connection.lock() = Some(connection);
        Ok(l2)
    }

    /// Runs `work` on the connection. If the file proves to be broken, this call fails and the file
    /// is replaced, so that the next call finds an empty one.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, L2Error> {
        let mut slot = self.connection.lock();
        let attempt = match slot.take() {
            Some(connection) => Ok(connection),
            None => self.connect(),
        };
        let failure = match attempt {
            Ok(mut connection) => match work(&mut connection) {
                Ok(done) => {
                    *slot = Some(connection);
                    return Ok(done);
                }
                Err(error) if is_broken(&error) => {
                    drop(connection);
                    *slot = self
                        .replace(&error)
                        .inspect(|empty| self.measure(empty))
                        .ok();
                    unavailable(&Broken::Sqlite(error))
                }
                Err(error) => {
                    *slot = Some(connection);
                    unavailable(&Broken::Sqlite(error))
                }
            },
            Err(broken) => unavailable(&broken),
        };
        self.stats.lock().errors += 1;
        Err(failure)
    }

    fn connect(&self) -> Result<Connection, Broken> {
        match open_file(&self.path) {
            Err(Broken::Sqlite(error)) if is_broken(&error) => self.replace(&error),
            Err(Broken::Version(found)) => self.replace(&Broken::Version(found)),
            other => other,
        }
    }

    /// Renames the broken file, over one that was set aside before, and makes an empty one.
    fn replace(&self, reason: &dyn std::fmt::Display) -> Result<Connection, Broken> {
        let kept = beside(&self.path, ".set-aside");
        fs::rename(&self.path, &kept)?;
        for suffix in ["-wal", "-shm"] {
            match fs::remove_file(beside(&self.path, suffix)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        self.stats.lock().set_aside += 1;
        let kept = kept.display();
        tracing::warn!(
            %reason,
            %kept,
            "the file of the last prices cannot be used: it was renamed, and a new one begun"
        );
        open_file(&self.path)
    }

    /// Counts the file's records for [`stats`](SecondLevel::stats). Called after each change. It
    /// counts some ten thousand records a millisecond, and warmers store every few seconds.
    fn measure(&self, connection: &Connection) {
        let counted = connection
            .prepare_cached(COUNT)
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)));
        let files = [self.path.clone(), beside(&self.path, "-wal")];
        let lengths = files.iter().filter_map(|file| fs::metadata(file).ok());
        let bytes = lengths.map(|file| file.len()).sum();
        let mut stats = self.stats.lock();
        stats.bytes = bytes;
        // An error here also fails the store or the next load, which report it.
        if let Ok(records) = counted {
            stats.entries = records.unsigned_abs();
        }
    }
}

impl SecondLevel for SqliteL2 {
    fn load(&self, kind: Kind, key: &str) -> Result<Option<Record>, L2Error> {
        let found = self.with(|connection| {
            let mut statement = connection.prepare_cached(LOAD)?;
            statement
                .query_row(params![kind.as_str(), key], |row| {
                    Ok(Record {
                        bytes: row.get(0)?,
                        stored_ms: row.get(1)?,
                    })
                })
                .optional()
        })?;
        self.stats.lock().count_found(usize::from(found.is_some()));
        Ok(found)
    }

    fn load_all(&self, kind: Kind) -> Result<Vec<(String, Record)>, L2Error> {
        let found: Vec<_> = self.with(|connection| {
            let mut statement = connection.prepare_cached(LOAD_ALL)?;
            let rows = statement.query_map([kind.as_str()], |row| {
                Ok((
                    row.get(0)?,
                    Record {
                        bytes: row.get(1)?,
                        stored_ms: row.get(2)?,
                    },
                ))
            })?;
            rows.collect()
        })?;
        self.stats.lock().count_found(found.len());
        Ok(found)
    }

    fn store(&self, kind: Kind, items: &[(String, Vec<u8>)], now_ms: i64) -> Result<(), L2Error> {
        check_sizes(items)?;
        let evicted = self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut statement = transaction.prepare_cached(STORE)?;
            for (key, bytes) in items {
                statement.execute(params![kind.as_str(), key, bytes, now_ms])?;
            }
            drop(statement);
            let kept = i64::try_from(self.records_max).unwrap_or(i64::MAX);
            let evicted = transaction
                .prepare_cached(TRIM)?
                .execute(params![kind.as_str(), kept])?;
            transaction.commit()?;
            self.measure(connection);
            Ok(evicted)
        })?;
        self.stats.lock().evictions += evicted as u64;
        Ok(())
    }

    fn stats(&self) -> L2Stats {
        *self.stats.lock()
    }
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("schema version {0}, not {SCHEMA_VERSION}")]
    Version(i64),
}

fn unavailable(broken: &Broken) -> L2Error {
    L2Error::Unavailable {
        detail: broken.to_string(),
    }
}

/// Whether the file itself is broken, rather than the disk, the permissions or another process.
fn is_broken(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

fn open_file(path: &Path) -> Result<Connection, Broken> {
    // SQLite creates the log and the shared-memory file with the mode of this file.
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    // SQLite gives the log and the shared-memory file the same owner.
    owner::give(&file, path)?;
    drop(file);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "off")?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    match version {
        SCHEMA_VERSION => {}
        0 => {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            transaction.commit()?;
        }
        other => return Err(Broken::Version(other)),
    }
    for statement in [LOAD, LOAD_ALL, STORE, TRIM, COUNT] {
        connection.prepare_cached(statement)?;
    }
    Ok(connection)
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
