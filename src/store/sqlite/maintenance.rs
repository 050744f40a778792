//! Commands for the database file: copy it while in use, verify it, restore it.
//!
//! Called by commands on their main thread, with or without a running service; blocks. Never leaves
//! an incomplete copy under its final name, and never overwrites a file.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::base::paths::beside;
use crate::ops::owner::folder_of;
use crate::store::errors::{MaintenanceError, OpenError};
use crate::store::schema::known_file_version;
use crate::store::small_file::{make_private, owned_like_its_directory};
use crate::store::sqlite::log::BUSY_TIMEOUT;
use crate::store::sqlite::{file, identity, log};

pub(crate) use crate::store::sqlite::file::{copy_before_upgrade, way_back};

type Result<T, E = MaintenanceError> = std::result::Result<T, E>;

/// Result of inspecting a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Schema version of the file; 0 for an empty file.
    pub version: i64,
    /// Schema version that this program writes.
    pub known: i64,
    /// Names of the migrations that a start would apply, oldest first.
    pub pending: Vec<&'static str>,
}

/// A table that was copied to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedTable {
    pub name: &'static str,
    pub rows: u64,
}

/// Reports on a file without changing it.
///
/// # Errors
/// [`MaintenanceError`]: not there, not ours, or newer than this program.
pub fn inspect(path: &Path) -> Result<FileReport> {
    let is_empty = fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() == 0);
    if is_empty && !file::is_emptied(path) {
        return Ok(report_of(0));
    }
    let connection = open(path)?;
    report(&connection, path)
}

/// Same as [`inspect`], and checks every page and foreign key.
///
/// # Errors
/// [`MaintenanceError`].
pub(crate) fn verify(path: &Path) -> Result<FileReport> {
    let connection = open(path)?;
    let report = report(&connection, path)?;
    let damaged = |found: String| MaintenanceError::Damaged {
        path: path.to_owned(),
        found,
    };
    let whole: String = connection
        .pragma_query_value(None, "integrity_check", |row| row.get(0))
        .map_err(MaintenanceError::database(path))?;
    if whole != "ok" {
        return Err(damaged(one_line(&whole)));
    }
    match dangling(&connection).map_err(MaintenanceError::database(path))? {
        Some(table) => Err(damaged(format!("a row of {table} belongs to nobody"))),
        None => Ok(report),
    }
}

/// The table with a row whose foreign key refers to a missing row.
fn dangling(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut dangling = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = dangling.query([])?;
    rows.next()?.map(|row| row.get(0)).transpose()
}

/// The first line of an integrity check. The other lines repeat it for other pages.
fn one_line(found: &str) -> String {
    let mut lines = found.lines().map(str::trim).filter(|line| !line.is_empty());
    let worst = lines.clone().find(|line| !line.starts_with("***"));
    worst
        .or_else(|| lines.next())
        .unwrap_or("unknown")
        .to_owned()
}

/// Copies the database `from`, in use or not, to the new file `to`. The copy is verified, private
/// and synced to disk.
///
/// # Errors
/// [`MaintenanceError`]. Then there is no file `to`.
pub(crate) fn copy_to(from: &Path, to: &Path) -> Result<FileReport> {
    refuse_existing(to)?;
    let unfinished = beside(to, ".unfinished");
    let report = copy_unfinished(from, &unfinished, to)?;
    // Another user's folder gets no access to the database by its owner.
    let owner_of = |path: &Path| fs::metadata(path).map(|about| about.uid()).ok();
    if owner_of(folder_of(to)) == owner_of(from) {
        owned_like_its_directory(&unfinished).inspect_err(|_| remove_quietly(&unfinished))?;
    }
    publish(&unfinished, to).inspect_err(|_| remove_quietly(&unfinished))?;
    Ok(report)
}

/// Copies to the file `unfinished`. Errors name `from` or `to`, the files that the caller knows.
/// After an error there is no file `unfinished`, unless another command is writing it.
fn copy_unfinished(from: &Path, unfinished: &Path, to: &Path) -> Result<FileReport> {
    let connection = open(from)?;
    if report(&connection, from)?.version == 0 {
        return Err(MaintenanceError::Foreign(from.to_owned()));
    }
    let claim = claim(unfinished).map_err(|error| error.naming(unfinished, to))?;
    fill(connection, from, unfinished, to)
        .and_then(|report| {
            claim
                .sync_all()
                .map(|()| report)
                .map_err(MaintenanceError::file(to))
        })
        .inspect_err(|_| remove_quietly(unfinished))
}

fn fill(connection: Connection, from: &Path, unfinished: &Path, to: &Path) -> Result<FileReport> {
    connection
        .execute("VACUUM INTO ?1", [unfinished.to_string_lossy()])
        .map_err(|source| match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => MaintenanceError::NoSpace(to.to_owned()),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                MaintenanceError::database(from)(source)
            }
            _ => MaintenanceError::Copy {
                from: from.to_owned(),
                to: to.to_owned(),
                source,
            },
        })?;
    drop(connection);
    identity::forget_in(unfinished)?;
    // A fault in a complete copy is also in the original.
    verify(unfinished).map_err(|error| error.naming(unfinished, from))
}

/// Result of restoring a backup.
#[derive(Debug)]
pub(crate) struct Restored {
    pub report: FileReport,
    /// Path under which the replaced database is kept.
    pub kept: Option<PathBuf>,
}

/// Replaces the database at `path` by a verified copy of `backup`. The replaced database is kept
/// under its name with `.before-restore-` and `stamp`. The caller holds the lock of the state
/// directory.
///
/// # Errors
/// [`MaintenanceError`]. Then the old database is still at `path`, or under that name.
pub(crate) fn restore(backup: &Path, path: &Path, stamp: &str) -> Result<Restored> {
    let unfinished = beside(path, ".restoring");
    let report = copy_unfinished(backup, &unfinished, path)?;
    owned_like_its_directory(&unfinished).inspect_err(|_| remove_quietly(&unfinished))?;
    let kept = beside(path, &format!(".before-restore-{stamp}"));
    let kept = set_aside(path, &kept)?;
    fs::rename(&unfinished, path).map_err(MaintenanceError::file(path))?;
    sync_parent(path)?;
    Ok(Restored { report, kept })
}

/// Moves the database and its log together, so that it opens under its new name as before.
fn set_aside(path: &Path, kept: &Path) -> Result<Option<PathBuf>> {
    refuse_existing(kept)?;
    let there = path.exists();
    if there {
        // Moves the log into the file, so that the file is complete. A damaged database keeps its
        // log next to it.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if !file::is_emptied(path)
            && let Ok(database) = Connection::open_with_flags(path, flags)
        {
            let _ = log::empty(&database, BUSY_TIMEOUT);
        }
        fs::rename(path, kept).map_err(MaintenanceError::file(path))?;
    }
    for suffix in ["-wal", "-shm"] {
        let log = beside(path, suffix);
        let target = beside(kept, suffix);
        match fs::rename(&log, target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(MaintenanceError::file(&log)(error)),
        }
    }
    sync_parent(path)?;
    Ok(there.then(|| kept.to_owned()))
}

/// Opens the file for reading. If there is a log, SQLite makes its shared memory next to it.
fn open(path: &Path) -> Result<Connection> {
    // SQLite's own error would not name the cause.
    let about = File::open(path).and_then(|file| file.metadata());
    let about = about.map_err(MaintenanceError::file(path))?;
    if !about.is_file() {
        return Err(MaintenanceError::file(path)(io::Error::other("it is not a file")));
    }
    // SQLite would take an empty file for a new database and delete its log.
    if file::is_emptied(path) {
        return Err(emptied(path));
    }
    if about.len() == 0 {
        return Err(MaintenanceError::Foreign(path.to_owned()));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path, flags).map_err(MaintenanceError::database(path))?;
    connection
        .busy_timeout(BUSY_TIMEOUT)
        .map_err(MaintenanceError::database(path))?;
    Ok(connection)
}

fn report(connection: &Connection, path: &Path) -> Result<FileReport> {
    let version = file::version(connection, path).map_err(|error| match error {
        OpenError::Newer { found, known, .. } => MaintenanceError::Newer {
            path: path.to_owned(),
            found,
            known,
        },
        OpenError::Sqlite(source) => MaintenanceError::database(path)(source),
        OpenError::System(source) => MaintenanceError::file(path)(source),
        OpenError::Emptied { .. } => emptied(path),
        OpenError::Store(error) => MaintenanceError::Store(error),
        // SQLite has read the file, so its version is not the cause.
        OpenError::Foreign { .. } | OpenError::OldSqlite(_) => {
            MaintenanceError::Foreign(path.to_owned())
        }
        other => other.into(),
    })?;
    match version {
        0 if identity::stood(path) => Err(emptied(path)),
        version => Ok(report_of(version)),
    }
}

fn report_of(version: i64) -> FileReport {
    FileReport {
        version,
        known: known_file_version(),
        pending: file::pending(version),
    }
}

fn emptied(path: &Path) -> MaintenanceError {
    let found = "it holds nothing, where a database stood".to_owned();
    MaintenanceError::Damaged {
        path: path.to_owned(),
        found,
    }
}

/// Renames the finished file, unless another file has that name meanwhile.
fn publish(unfinished: &Path, to: &Path) -> Result<()> {
    match fs::hard_link(unfinished, to) {
        Ok(()) => fs::remove_file(unfinished).map_err(MaintenanceError::file(unfinished))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(MaintenanceError::Exists(to.to_owned()));
        }
        // The file system has no hard links.
        Err(_) => fs::rename(unfinished, to).map_err(MaintenanceError::file(to))?,
    }
    sync_parent(to)
}

fn refuse_existing(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(MaintenanceError::Exists(path.to_owned())),
        Err(_) => Ok(()),
    }
}

fn sync_parent(path: &Path) -> Result<()> {
    let parent = folder_of(path);
    File::open(parent)
        .and_then(|file| file.sync_all())
        .map_err(MaintenanceError::file(parent))
}

// ---- Unfinished
//
// Copies in progress: written under a temporary name, private from the beginning, and
// distinguishable from the leftovers of an interrupted command. Runs on a command's main thread;
// blocks.

/// Makes the temporary file of a copy and locks it while it is written, so that an abandoned one
/// can be recognised.
pub(crate) fn claim(unfinished: &Path) -> Result<File> {
    remove_unfinished(unfinished)?;
    make_private(unfinished)?;
    let claim = File::open(unfinished).map_err(MaintenanceError::file(unfinished))?;
    match claim.try_lock() {
        // On a file system without locks, no second command is assumed.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(claim),
        Err(TryLockError::WouldBlock) => Err(in_work(unfinished)),
    }
}

fn in_work(path: &Path) -> MaintenanceError {
    MaintenanceError::file(path)(io::Error::other("another command is writing it"))
}

/// Removes a copy that an interrupted command left behind. False if there is none.
///
/// # Errors
/// [`MaintenanceError`], also if a command is still writing it.
pub(crate) fn remove_unfinished(path: &Path) -> Result<bool> {
    match File::open(path) {
        Ok(file) if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) => {
            return Err(in_work(path));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(MaintenanceError::file(path)(error)),
    }
    // The journal that SQLite keeps next to a file that it writes.
    let _ = fs::remove_file(beside(path, "-journal"));
    fs::remove_file(path)
        .map(|()| true)
        .map_err(MaintenanceError::file(path))
}

/// Removes the file and ignores errors. It was never reported as finished.
pub(crate) fn remove_quietly(unfinished: &Path) {
    let _ = fs::remove_file(unfinished);
}
