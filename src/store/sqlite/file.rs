//! The database file: how it is opened, distinguished from foreign files, and migrated to the
//! current schema.
//!
//! Runs at start, and on the writer's thread when the file is opened again. Never deletes, replaces
//! or sets aside a database that exists: it holds users' data.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::base::Clock;
use crate::base::paths::beside;
use crate::ops::notify;
use crate::ops::owner::{self, folder_of};
use crate::store::arg::args;
use crate::store::errors::{OpenError, StoreError, is_of_writing};
use crate::store::schema::{FILE_MIGRATIONS, Migration, known_file_version};
use crate::store::sqlite::identity::{begin_identity, forget_in, stood};
use crate::store::sqlite::log::{self, BUSY_TIMEOUT};
use crate::store::tx::{Failure, Tx, statements};

/// `bhav` in ASCII. Distinguishes our file from any other SQLite file.
const APPLICATION_ID: i32 = 0x6268_6176;
/// The first SQLite version in which the reset defect of the write-ahead log is fixed.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// Size to which a checkpoint cuts the write-ahead log.
const LOG_BYTES_KEPT: i64 = 16 * 1024 * 1024;
/// More than there are statements, so that each is prepared only once per connection.
const STATEMENTS_KEPT: usize = 128;

/// Names of the migrations that a file of this version lacks.
pub(crate) fn pending(version: i64) -> Vec<&'static str> {
    let lacking = FILE_MIGRATIONS
        .iter()
        .skip(usize::try_from(version).unwrap_or(0));
    lacking.map(Migration::name).collect()
}

/// Opens the file for writing and migrates it. If there is no file and `make` is set, makes one
/// with mode 0600.
pub(crate) fn open_for_writing(path: &Path, make: bool) -> Result<Connection, OpenError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(OpenError::OldSqlite(rusqlite::version()));
    }
    refuse_untouched(path)?;
    make_private(path, make)?;
    refuse_emptied(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    let version = version(&connection, path)?;
    if version == 0 && stood(path) {
        return Err(OpenError::Emptied {
            path: path.display().to_string(),
        });
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
    if version < known_file_version() {
        if version > 0 {
            with_reports(&mut connection, |connection| keep_copy(connection, path, version))?;
        }
        with_reports(&mut connection, |connection| migrate(connection, FILE_MIGRATIONS))?;
    }
    Ok(connection)
}

/// Refuses a file that is newer or not ours before anything is written. A connection that may write
/// would move the log into the file when it is closed. Other faults are found when it is opened.
fn refuse_untouched(path: &Path) -> Result<(), OpenError> {
    // Even a connection that only reads would delete the log beside an empty file.
    if length(path) == 0 {
        return Ok(());
    }
    // With no log, `immutable` keeps SQLite from making one.
    let query = if length(&beside(path, "-wal")) == 0 {
        "?immutable=1"
    } else {
        ""
    };
    let Ok(connection) = opened_for_reading(path, query) else {
        return Ok(());
    };
    match version(&connection, path) {
        Err(error) if error.ends_the_start() => Err(error),
        _ => Ok(()),
    }
}

/// Called once in a process: counts the start, completes the upkeep that an earlier process left,
/// and moves the log's content into the database file.
/// Returns the number of the last change of accounts, which the mark beside the file names.
pub(crate) fn begin_start(connection: &mut Connection, path: &Path) -> Result<i64, OpenError> {
    // A log remains of a migration just now, or of a process that was killed.
    let has_log = length(&beside(path, "-wal")) > 0;
    let last_change = begin_identity(connection, path)?;
    let finished = finish(connection, has_log);
    log::keep_filled(connection, path)?;
    if let Err(error) = finished {
        // The service can run without this and tries again later.
        tracing::warn!(%error, "an earlier process's log could not be moved into the database yet");
    }
    Ok(last_change)
}

fn finish(connection: &mut Connection, has_log: bool) -> Result<(), OpenError> {
    const BYTES_MAX: i64 = START_BYTES_MAX;
    let clean = is_due(connection, BYTES_MAX)?;
    if clean {
        with_reports(connection, |connection| Ok(clean_file(connection, BYTES_MAX)?))?;
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
        found if found == known_file_version() => Ok(connection),
        found => {
            let why = format!("schema version {found} cannot be migrated without writing");
            Err(StoreError::Unavailable(why).into())
        }
    }
}

/// Opens a file for reading that the writer has opened before.
pub(crate) fn open_for_reading(path: &Path) -> rusqlite::Result<Connection> {
    let connection = match opened_for_reading(path, "") {
        // On a read-only medium SQLite needs `immutable`, which promises that no process writes.
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

/// Whether the file is empty although a database was here. SQLite would take it for a new database
/// and delete its log.
pub(crate) fn is_emptied(path: &Path) -> bool {
    length(path) == 0 && (stood(path) || length(&beside(path, "-wal")) > 0)
}

fn refuse_emptied(path: &Path) -> Result<(), OpenError> {
    match is_emptied(path) {
        true => Err(OpenError::Emptied {
            path: path.display().to_string(),
        }),
        false => Ok(()),
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // If a memory-mapped file is truncated, the process is killed by a signal. So nothing is
    // mapped.
    connection
        .pragma_update_and_check(None, "mmap_size", 0, |_| Ok(()))
        .or_else(no_row)
}

/// An SQLite built without memory mapping returns no row.
fn no_row(error: rusqlite::Error) -> rusqlite::Result<()> {
    match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        other => Err(other),
    }
}

/// Sets the file's mode to 0600. SQLite creates the log and the shared-memory file with the same
/// mode and owner.
fn make_private(path: &Path, make: bool) -> Result<(), OpenError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a file").into()),
        Ok(found) if found.permissions().mode() & 0o077 == 0 => Ok(owner::give_name(path)?),
        Ok(_) => Ok(fs::set_permissions(path, Permissions::from_mode(0o600))?),
        Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
            if stood(path) {
                return Err(OpenError::Missing {
                    path: path.display().to_string(),
                });
            }
            // SQLite would take a log left behind for the new database's.
            log::set_aside(&beside(path, "-wal"))?;
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)?;
            owner::give(&file, path)?;
            file.sync_all()?;
            Ok(File::open(folder_of(path))?.sync_all()?)
        }
        Err(error) => Err(error.into()),
    }
}

/// The schema version; 0 for a file without tables, such as an interrupted first start leaves.
pub(crate) fn version(connection: &Connection, database: &Path) -> Result<i64, OpenError> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let (application, found): (i64, i64) = (number("application_id")?, number("user_version")?);
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(tables, [], |row| row.get(0))?;
    let path = || database.display().to_string();
    if (application, found, tables) == (0, 0, 0) {
        return Ok(0);
    }
    if application != i64::from(APPLICATION_ID) || found < 1 {
        return Err(OpenError::Foreign { path: path() });
    }
    let known = known_file_version();
    if found > known {
        let path = path();
        let way_back = way_back(database, known);
        return Err(OpenError::Newer {
            path,
            found,
            known,
            way_back,
        });
    }
    Ok(found)
}

/// The copy of a database of this version, which is kept before an upgrade. It is named by its own
/// version, since that is what an older program knows.
pub(crate) fn copy_before_upgrade(path: &Path, version: i64) -> PathBuf {
    beside(path, &format!(".before-upgrade-v{version}"))
}

/// How an operator gets back to a program that knows `known`, as the end of a sentence.
pub(crate) fn way_back(path: &Path, known: i64) -> String {
    let copies = (1..=known)
        .rev()
        .map(|version| copy_before_upgrade(path, version));
    match copies.into_iter().find(|copy| copy.exists()) {
        Some(copy) => {
            let command = restore_command(path, &copy);
            format!("stop it and go back by: {command} (which lacks what was written since)")
        }
        None => format!("stop it and restore a backup of schema {known} or older: bhav restore"),
    }
}

/// The command that puts a copy in the place of the database.
fn restore_command(path: &Path, copy: &Path) -> String {
    format!("bhav restore --state-dir {} {}", folder_of(path).display(), copy.display())
}

/// Copies the file before a migration, for going back. The operator has to delete the copy: data
/// that is erased later is still in it. A copy of an earlier upgrade from this version is replaced.
fn keep_copy(connection: &Connection, path: &Path, version: i64) -> Result<(), OpenError> {
    let kept = copy_before_upgrade(path, version);
    let unfinished = beside(&kept, ".unfinished");
    // Created empty first, so that it is private from the beginning. SQLite accepts an empty file.
    let made = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    owner::give(&made, &unfinished)?;
    let copied = connection.execute("VACUUM INTO ?1", [unfinished.to_string_lossy()]);
    // On a full disk the beginning of a copy would only take room.
    copied.inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
    step();
    forget_in(&unfinished)?;
    File::open(&unfinished)?.sync_all()?;
    fs::rename(&unfinished, &kept)?;
    File::open(folder_of(path))?.sync_all()?;
    let copy = kept.display();
    let go_back = restore_command(path, &kept);
    tracing::info!(
        %copy,
        go_back,
        "kept a copy before migrating; to go back, stop the service, run the command of go_back, \
         and start the earlier program; delete the copy when it is no longer needed"
    );
    Ok(())
}

fn migrate(connection: &mut Connection, migrations: &[Migration]) -> Result<(), OpenError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated it meanwhile.
    let from: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for migration in migrations.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(&migration.for_file())?;
    }
    // SQLite reports progress during the migrations. The commit that follows waits for the disk
    // alone.
    step();
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", migrations.len() as i64)?;
    transaction.commit()?;
    tracing::info!(from, to = migrations.len(), "the store was migrated to the current schema");
    Ok(())
}

statements! { of the file:
    const COUNT_ERASURE = "UPDATE identity SET erasures = erasures + 1 WHERE id = 1";
    const ERASURES = "SELECT erasures, erasures_cleaned FROM identity WHERE id = 1";
    const NOTE_CLEANED = "UPDATE identity SET erasures_cleaned = ?1 WHERE id = 1";
}

// ---- Cleaning
//
// Rewrites the database file, so that no trace of erased rows is left in it.
//
// `secure_delete` overwrites deleted rows in place. But if SQLite had moved a row between pages
// before, an old copy may be left in a page's free space, which nothing overwrites. This was seen
// in one of a thousand erasures. Only rewriting the whole file removes such copies. Erasures are
// counted in the transaction that makes them, so that a crash forgets none. Runs on the writer's
// thread, outside a transaction.

/// Largest file that is rewritten while the service runs. A rewrite takes 10 to 25 ms a MiB on a
/// busy machine and stops all writes. Up to this size it is shorter than a write's deadline.
pub(crate) const RUNNING_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// Largest file that is rewritten at start, when only the supervisor waits.
pub(crate) const START_BYTES_MAX: i64 = 1024 * 1024 * 1024;

/// Counts an erasure. Called in the transaction that erases.
pub(crate) fn count(connection: &Connection) -> Result<(), Failure> {
    connection.run(COUNT_ERASURE, &[]).map(drop)
}

/// Whether something was erased since the last rewrite, and the file is at most `bytes_max`.
pub(crate) fn is_due(connection: &Connection, bytes_max: i64) -> Result<bool, Failure> {
    let (erasures, cleaned) = counts(connection)?;
    Ok(erasures > cleaned && bytes(connection)? <= bytes_max)
}

fn counts(connection: &Connection) -> Result<(i64, i64), Failure> {
    let tx: &dyn Tx = connection;
    tx.only(ERASURES, &[], "the count of erasures", |row| Ok((row.get(0)?, row.get(1)?)))
}

fn bytes(connection: &Connection) -> rusqlite::Result<i64> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let (pages, page_bytes): (i64, i64) = (number("page_count")?, number("page_size")?);
    Ok(pages * page_bytes)
}

/// Rewrites the file if that is due. Its log has to be emptied afterwards. An erasure during the
/// rewrite makes the next one due.
pub(crate) fn clean_file(connection: &Connection, bytes_max: i64) -> Result<(), Failure> {
    if !is_due(connection, bytes_max)? {
        return Ok(());
    }
    let (erasures, _) = counts(connection)?;
    connection.execute_batch("VACUUM")?;
    connection.run(NOTE_CLEANED, &args![erasures]).map(drop)
}

// ---- Progress
//
// Reports progress to the supervisor (systemd) while the database is copied or migrated at start.
//
// Progress is reported only for work that was done: SQLite calls back between its own
// instructions. If a disk hangs there are no reports, and the supervisor's time-out ends the
// start. Runs on the thread that opens the file.

/// Time that the supervisor waits after each report. Longer than a commit or a sync of some hundred
/// megabytes takes, during which SQLite cannot call back.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two reports, so that a quick copy does not fill the supervisor's socket.
const PAUSE_MS: u64 = 5_000;
/// SQLite instructions between two checks of the clock: some thousand rows, which even a slow disk
/// reads well within the supervisor's time-out.
const INSTRUCTIONS: i32 = 10_000;

/// Reports the start of another step.
pub(crate) fn step() {
    notify::extend_timeout(SUPERVISOR_TIMEOUT);
}

/// Runs one step and reports progress while it advances.
pub(crate) fn with_reports<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    step();
    watched(connection, paced(Clock::system(), step), work)
}

/// Runs `work` and calls `report` while SQLite advances.
fn watched<T>(
    connection: &mut Connection,
    mut report: impl FnMut() + Send + 'static,
    work: impl FnOnce(&mut Connection) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let go_on = move || {
        report();
        false
    };
    connection.progress_handler(INSTRUCTIONS, Some(go_on))?;
    let done = work(connection);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    done
}

/// Calls `report` if [`PAUSE_MS`] have passed since the beginning or since the last report.
fn paced(clock: Clock, mut report: impl FnMut()) -> impl FnMut() {
    let mut reported_mono_ms = clock.monotonic_ms();
    move || {
        let now_mono_ms = clock.monotonic_ms();
        if now_mono_ms.saturating_sub(reported_mono_ms) >= PAUSE_MS {
            reported_mono_ms = now_mono_ms;
            report();
        }
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;

#[cfg(test)]
mod cleaning_tests {
    use super::*;
    use crate::store::sqlite::file::open_for_writing;
    use crate::store::sqlite::log;

    #[test]
    fn a_rewritten_file_has_no_trace_of_a_deleted_row() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bhav.sqlite");
        let connection = open_for_writing(&path, true).unwrap();
        // Simulates a copy that SQLite left behind.
        connection
            .pragma_update_and_check(None, "secure_delete", false, |_| Ok(()))
            .unwrap();
        let add = "INSERT INTO users (email, password_hash, created_ms) VALUES (?1, 'h', 1)";
        for n in 0..200 {
            connection
                .execute(add, [format!("somebody-{n:04}@example.com")])
                .unwrap();
        }
        let held = || {
            log::empty(&connection, log::READERS_WAIT).unwrap();
            let bytes = fs::read(&path).unwrap();
            memchr::memmem::find_iter(&bytes, "somebody-01").count()
        };
        assert!(held() >= 200);
        let due = |bytes_max: i64| is_due(&connection, bytes_max).unwrap();
        assert!(!due(RUNNING_BYTES_MAX));
        clean_file(&connection, RUNNING_BYTES_MAX).unwrap();
        connection
            .execute("DELETE FROM users WHERE email LIKE 'somebody-01%'", [])
            .unwrap();
        count(&connection).unwrap();
        assert!(held() > 0, "the test needs a trace");
        assert!(due(RUNNING_BYTES_MAX) && !due(100_000), "it is larger");
        clean_file(&connection, 100_000).unwrap();
        assert!(held() > 0);
        clean_file(&connection, RUNNING_BYTES_MAX).unwrap();
        assert_eq!(held(), 0);
        assert!(!due(RUNNING_BYTES_MAX));
        let left = "SELECT count(*) FROM users";
        assert_eq!(
            connection
                .query_row(left, [], |row| row.get::<_, i64>(0))
                .unwrap(),
            100
        );
        let sequence = "SELECT seq FROM sqlite_sequence WHERE name = 'users'";
        let last: i64 = connection
            .query_row(sequence, [], |row| row.get(0))
            .unwrap();
        assert_eq!(last, 200, "no id is given again");
    }
}

#[cfg(test)]
mod progress_tests {
    use std::sync::Arc;

    use super::*;
    use crate::ops::Counter;

    fn counted() -> (Arc<Counter>, impl FnMut() + Send + 'static) {
        let counter = Arc::new(Counter::new());
        let said = Arc::clone(&counter);
        (said, move || counter.increment())
    }

    fn filled(path: &Path) -> Connection {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE filling (x TEXT);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000)
                 INSERT INTO filling SELECT 'row ' || i FROM n;",
            )
            .unwrap();
        connection
    }

    /// The long statements of a start: the copy, and changes of tables by migrations.
    #[test]
    fn progress_is_reported_during_a_copy_and_a_migration() {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = filled(&dir.path().join("a.sqlite"));
        let copy = format!("VACUUM INTO '{}'", dir.path().join("b.sqlite").display());
        for sql in [
            copy.as_str(),
            "ALTER TABLE filling ADD COLUMN y INTEGER NOT NULL DEFAULT 0; UPDATE filling SET y = 1",
            "CREATE INDEX by_x ON filling (x)",
            "CREATE TABLE other AS SELECT * FROM filling",
        ] {
            let (said, report) = counted();
            watched(&mut connection, report, |c| Ok(c.execute_batch(sql)?)).unwrap();
            assert!(said.value() >= 3, "{sql}: {}", said.value());
        }
    }

    #[test]
    fn nothing_is_reported_without_work_or_after_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        let (said, report) = counted();
        watched(&mut connection, report, |_| Ok(())).unwrap();
        let count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000)
                     SELECT count(*) FROM n";
        let rows: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!((rows, said.value()), (50_000, 0));
    }

    #[test]
    fn reports_are_at_least_a_pause_apart() {
        let clock = Clock::manual("2026-11-20T04:00:00Z".parse().unwrap());
        let (said, report) = counted();
        let mut report = paced(clock.clone(), report);
        for _ in 0..11 {
            report();
            clock.advance_ms(1_000);
        }
        assert_eq!(said.value(), 2, "after five seconds and after ten");
    }
}
