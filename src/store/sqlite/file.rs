//! The database file: how it is opened, distinguished from foreign files, and migrated to the
//! current schema.
//!
//! Runs at start, and on the writer's thread when the file is opened again. Never deletes, replaces
//! or sets aside a database that exists: it holds users' data.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::errors::{OpenError, is_of_writing};
use super::lock_wait::BUSY_TIMEOUT;
use super::{cleaning, identity, log, progress};
use crate::base::paths::beside;
use crate::store::StoreError;

/// `bhav` in ASCII. Distinguishes our file from any other SQLite file.
const APPLICATION_ID: i32 = 0x6268_6176;
/// The first SQLite version in which the reset defect of the write-ahead log is fixed.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// Size to which a checkpoint cuts the write-ahead log.
const LOG_BYTES_KEPT: i64 = 16 * 1024 * 1024;
/// More than there are statements, so that each is prepared only once per connection.
const STATEMENTS_KEPT: usize = 128;

/// The migrations in order, append-only. The version of a file is the number of migrations it has.
const MIGRATIONS: &[&str] = &[
    include_str!("../../../sql/store/0001_accounts.sql"),
    include_str!("../../../sql/store/0002_portfolios.sql"),
    include_str!("../../../sql/store/0003_closes.sql"),
    include_str!("../../../sql/store/0004_journal.sql"),
    include_str!("../../../sql/store/0005_signals.sql"),
    include_str!("../../../sql/store/0006_disabled_users.sql"),
    include_str!("../../../sql/store/0007_provisional_signals.sql"),
    include_str!("../../../sql/store/0008_journal_bytes.sql"),
    include_str!("../../../sql/store/0009_identity.sql"),
    include_str!("../../../sql/store/0010_closing_prices.sql"),
    include_str!("../../../sql/store/0011_signal_books.sql"),
    include_str!("../../../sql/store/0012_changes.sql"),
    include_str!("../../../sql/store/0013_portfolio_versions.sql"),
    include_str!("../../../sql/store/0014_incarnation.sql"),
    include_str!("../../../sql/store/0015_login_networks.sql"),
    include_str!("../../../sql/store/0016_figures.sql"),
];

/// Names of the migrations, for commands that list them.
pub(crate) const MIGRATION_NAMES: [&str; MIGRATIONS.len()] = [
    "0001_accounts",
    "0002_portfolios",
    "0003_closes",
    "0004_journal",
    "0005_signals",
    "0006_disabled_users",
    "0007_provisional_signals",
    "0008_journal_bytes",
    "0009_identity",
    "0010_closing_prices",
    "0011_signal_books",
    "0012_changes",
    "0013_portfolio_versions",
    "0014_incarnation",
    "0015_login_networks",
    "0016_figures",
];

/// The schema version that this program writes.
pub(crate) fn known_version() -> i64 {
    MIGRATIONS.len() as i64
}

/// Opens the file for writing and migrates it. If there is no file and `make` is set, makes one
/// with mode 0600.
pub(crate) fn open_for_writing(path: &Path, make: bool) -> Result<Connection, OpenError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(OpenError::OldSqlite(rusqlite::version()));
    }
    make_private(path, make)?;
    refuse_emptied(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    let version = version(&connection, path)?;
    if version == 0 && identity::stood(path) {
        return Err(OpenError::Emptied { path: path.display().to_string() });
    }
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(io::Error::other(format!("no write-ahead log here, but {mode}")).into());
    }
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Overwrites deleted rows with zeros.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    if version < known_version() {
        if version > 0 {
            progress::with_reports(&mut connection, |connection| keep_copy(connection, path))?;
        }
        progress::with_reports(&mut connection, |connection| migrate(connection, MIGRATIONS))?;
    }
    Ok(connection)
}

/// Called once in a process: counts the start, completes what an earlier process left to be done,
/// and moves the log's content into the database file.
pub(crate) fn begin_start(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    // The log is of a migration just now, or of a process that was killed.
    let has_log = length(&beside(path, "-wal")) > 0;
    identity::begin_start(connection, path)?;
    let finished = finish(connection, has_log);
    log::keep_filled(connection, path)?;
    if let Err(error) = finished {
        // The service can run without this; it is tried again later.
        tracing::warn!(%error, "an earlier process's log could not be moved into the database yet");
    }
    Ok(())
}

fn finish(connection: &mut Connection, has_log: bool) -> Result<(), OpenError> {
    const BYTES_MAX: i64 = cleaning::START_BYTES_MAX;
    let clean = cleaning::is_due(connection, BYTES_MAX)?;
    if clean {
        progress::with_reports(connection, |connection| {
            Ok(cleaning::clean(connection, BYTES_MAX)?)
        })?;
    }
    if clean || has_log {
        log::empty(connection, BUSY_TIMEOUT)?;
    }
    Ok(())
}

/// Opens a file of the current schema that cannot or must not be written.
pub(crate) fn open_beside(path: &Path) -> Result<Connection, OpenError> {
    refuse_emptied(path)?;
    let connection = open_for_reading(path)?;
    match version(&connection, path)? {
        found if found == known_version() => Ok(connection),
        found => {
            let why = format!("schema version {found} cannot be migrated without writing");
            Err(StoreError::Unavailable(why).into())
        }
    }
}

/// Opens a file for reading that the writer has opened before.
pub(crate) fn open_for_reading(path: &Path) -> rusqlite::Result<Connection> {
    let connection = match opened_for_reading(path, "") {
        // On a read-only medium SQLite has to be told that no process writes.
        Err(error) if is_of_writing(&error) && length(&beside(path, "-wal")) == 0 => {
            opened_for_reading(path, "?immutable=1")?
        }
        opened => opened?,
    };
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens the file and reads once, since only a read shows whether it can be read.
fn opened_for_reading(path: &Path, query: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("{}{query}", uri(path)), flags)?;
    configure(&connection)?;
    connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
    Ok(connection)
}

/// A path as an SQLite URI filename, which begins with `file:`.
fn uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02x}")),
        }
    }
    uri
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |about| about.len())
}

/// Whether an empty file is where a database was. SQLite would take it for a new database and
/// delete its log.
pub(crate) fn is_emptied(path: &Path) -> bool {
    length(path) == 0 && (identity::stood(path) || length(&beside(path, "-wal")) > 0)
}

fn refuse_emptied(path: &Path) -> Result<(), OpenError> {
    match is_emptied(path) {
        true => Err(OpenError::Emptied { path: path.display().to_string() }),
        false => Ok(()),
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // If a memory-mapped file is truncated, the process is killed by a signal. So nothing is
    // mapped.
    connection.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(())).or_else(no_row)
}

/// An SQLite built without memory mapping returns no row.
fn no_row(error: rusqlite::Error) -> rusqlite::Result<()> {
    match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        other => Err(other),
    }
}

/// Sets the file's mode to 0600. SQLite creates the log and the shared-memory file with the same
/// mode.
fn make_private(path: &Path, make: bool) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a file")),
        Ok(found) if found.permissions().mode() & 0o077 == 0 => Ok(()),
        Ok(_) => fs::set_permissions(path, Permissions::from_mode(0o600)),
        Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
            // SQLite would take a log left behind for the new database's.
            log::set_aside(&beside(path, "-wal"))?;
            // Done first, so that a start that is interrupted here can be repeated.
            identity::forget_mark(path)?;
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.sync_all()?;
            match path.parent() {
                Some(parent) => File::open(parent)?.sync_all(),
                None => Ok(()),
            }
        }
        Err(error) => Err(error),
    }
}

/// The schema version; 0 for a file without tables, such as an interrupted first start leaves.
pub(crate) fn version(connection: &Connection, path: &Path) -> Result<i64, OpenError> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let (application, found): (i64, i64) = (number("application_id")?, number("user_version")?);
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(tables, [], |row| row.get(0))?;
    let path = || path.display().to_string();
    if (application, found, tables) == (0, 0, 0) {
        return Ok(0);
    }
    if application != i64::from(APPLICATION_ID) || found < 1 {
        return Err(OpenError::Foreign { path: path() });
    }
    let known = known_version();
    if found > known {
        return Err(OpenError::Newer { path: path(), found, known, next: known + 1 });
    }
    Ok(found)
}

/// Copies the file before a migration, for going back. The operator has to delete the copy: data
/// that is erased later is still in it.
fn keep_copy(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let kept = beside(path, &format!(".before-v{}", known_version()));
    let unfinished = beside(&kept, ".unfinished");
    // Created empty first, so that it is private from the beginning. SQLite accepts an empty file.
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    connection.execute("VACUUM INTO ?1", [unfinished.to_string_lossy()])?;
    progress::step();
    identity::forget_in(&unfinished)?;
    File::open(&unfinished)?.sync_all()?;
    fs::rename(&unfinished, &kept)?;
    let copy = kept.display();
    tracing::info!(%copy, "kept a copy before migrating; delete it when it is no longer needed");
    Ok(())
}

fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<(), OpenError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated it meanwhile.
    let from: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for migration in migrations.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    // SQLite reports progress during the migrations. The commit that follows waits for the disk
    // alone.
    progress::step();
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", migrations.len() as i64)?;
    transaction.commit()?;
    tracing::info!(from, to = migrations.len(), "the store was migrated to the current schema");
    Ok(())
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
