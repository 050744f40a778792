//! The file in the hands of its operator: copied while in use, judged, put back.
//!
//! Called by commands on their main thread, beside a running service or without one; blocks. Must
//! never leave half a copy under its final name, nor write over a file that exists.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use super::condition::Failure;
use super::file::{self, OpenError, beside};

/// What a file was found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Its schema; 0 for an empty file.
    pub version: i64,
    /// The schema that this program writes.
    pub known: i64,
    /// Names of the migrations that a start would run, oldest first.
    pub pending: Vec<&'static str>,
}

/// Why a file cannot be used, copied or put back.
#[derive(Debug, thiserror::Error)]
pub enum UpkeepError {
    #[error("{0}")]
    Open(#[from] OpenError),
    #[error("{path} is damaged: {found}")]
    Damaged { path: PathBuf, found: String },
    #[error("{path} has schema version {found}: start the service once, which migrates it")]
    Older { path: PathBuf, found: i64 },
    #[error("{0} exists already; it is not overwritten")]
    Exists(PathBuf),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl From<Failure> for UpkeepError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => error.into(),
            Failure::Sqlite(error) => error.into(),
        }
    }
}

impl UpkeepError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

/// Looks at a file and changes nothing in it.
///
/// # Errors
/// [`UpkeepError`]: not there, not ours, or newer than this program.
pub fn inspect(path: &Path) -> Result<FileReport, UpkeepError> {
    let connection = open(path)?;
    report(&connection, path)
}

/// As [`inspect`], and reads every page and row reference.
///
/// # Errors
/// [`UpkeepError`].
pub fn verify(path: &Path) -> Result<FileReport, UpkeepError> {
    let connection = open(path)?;
    let report = report(&connection, path)?;
    let damaged = |found: String| UpkeepError::Damaged { path: path.to_owned(), found };
    let whole: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
    if whole != "ok" {
        return Err(damaged(whole));
    }
    let mut dangling = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = dangling.query([])?;
    if let Some(row) = rows.next()? {
        let table: String = row.get(0)?;
        return Err(damaged(format!("a row of {table} belongs to nobody")));
    }
    Ok(report)
}

/// Copies the database of `from`, in use or not, to the new file `to`: checked, private, on disk.
///
/// # Errors
/// [`UpkeepError`]; then there is no file `to`.
pub fn copy_to(from: &Path, to: &Path) -> Result<FileReport, UpkeepError> {
    refuse_existing(to)?;
    let unfinished = beside(to, ".unfinished");
    let copied = copy_unfinished(from, &unfinished)
        .and_then(|report| publish(&unfinished, to).map(|()| report));
    if copied.is_err() {
        // Whatever it holds, nobody was told of it.
        let _ = fs::remove_file(&unfinished);
    }
    copied
}

fn copy_unfinished(from: &Path, unfinished: &Path) -> Result<FileReport, UpkeepError> {
    let connection = open(from)?;
    report(&connection, from)?;
    make_private(unfinished)?;
    connection.execute("VACUUM INTO ?1", [unfinished.to_string_lossy()])?;
    drop(connection);
    let report = verify(unfinished)?;
    File::open(unfinished)
        .and_then(|file| file.sync_all())
        .map_err(UpkeepError::file(unfinished))?;
    Ok(report)
}

/// What putting a backup back did.
#[derive(Debug)]
pub struct Restored {
    pub report: FileReport,
    /// Where the database that stood there is now.
    pub kept: Option<PathBuf>,
}

/// Puts a checked copy of `backup` in the place of the database at `path`; what stood there is kept
/// under the name with `.before-restore-` and `stamp`. The caller holds the state directory's lock.
///
/// # Errors
/// [`UpkeepError`]; then the database that stood there stands there still, or is under that name.
pub fn restore(backup: &Path, path: &Path, stamp: &str) -> Result<Restored, UpkeepError> {
    let unfinished = beside(path, ".restoring");
    let copied = copy_unfinished(backup, &unfinished);
    let report = copied
        .and_then(|report| match report.version {
            // An empty file opens as an empty database.
            0 => Err(OpenError::Foreign { path: backup.display().to_string() }.into()),
            _ => Ok(report),
        })
        .and_then(|report| owned_like_its_directory(&unfinished).map(|()| report))
        .inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })?;
    let kept = beside(path, &format!(".before-restore-{stamp}"));
    let kept = set_aside(path, &kept)?;
    fs::rename(&unfinished, path).map_err(UpkeepError::file(path))?;
    sync_parent(path)?;
    Ok(Restored { report, kept })
}

/// The service's own, also where root puts it back.
fn owned_like_its_directory(path: &Path) -> Result<(), UpkeepError> {
    let directory = fs::metadata(parent(path)).map_err(UpkeepError::file(path))?;
    let own = fs::metadata(path).map_err(UpkeepError::file(path))?;
    if own.uid() == directory.uid() {
        return Ok(());
    }
    chown(path, Some(directory.uid()), Some(directory.gid())).map_err(UpkeepError::file(path))
}

/// Moves the database and the log that belongs to it, so that what stands there opens as it was.
fn set_aside(path: &Path, kept: &Path) -> Result<Option<PathBuf>, UpkeepError> {
    refuse_existing(kept)?;
    let there = path.exists();
    if there {
        // So that the one file is all of it. A damaged one keeps its log beside it.
        let _ = fold_log(path);
        fs::rename(path, kept).map_err(UpkeepError::file(path))?;
    }
    for suffix in ["-wal", "-shm"] {
        let (log, target) = (beside(path, suffix), beside(kept, suffix));
        match fs::rename(&log, target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(UpkeepError::file(&log)(error)),
        }
    }
    sync_parent(path)?;
    Ok(there.then(|| kept.to_owned()))
}

fn fold_log(path: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(file::BUSY_TIMEOUT)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Reads; where the log has to be read too, SQLite makes its shared memory beside it.
fn open(path: &Path) -> Result<Connection, UpkeepError> {
    // SQLite would only say that it cannot.
    File::open(path).map_err(UpkeepError::file(path))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(file::BUSY_TIMEOUT)?;
    Ok(connection)
}

fn report(connection: &Connection, path: &Path) -> Result<FileReport, UpkeepError> {
    let not_a_database = |error: OpenError| match error {
        OpenError::Sqlite(inner)
            if inner.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) =>
        {
            OpenError::Foreign { path: path.display().to_string() }
        }
        other => other,
    };
    let version = file::version(connection, path).map_err(not_a_database)?;
    let names = file::MIGRATION_NAMES.iter().copied();
    Ok(FileReport {
        version,
        known: file::known_version(),
        pending: names.skip(usize::try_from(version).unwrap_or(0)).collect(),
    })
}

fn make_private(path: &Path) -> Result<(), UpkeepError> {
    // Left by a command that was ended in between; nobody was told of it.
    let _ = fs::remove_file(path);
    // Made first, so that it is private from the beginning; SQLite takes an empty file.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(UpkeepError::file(path))
}

/// Gives the finished file its name, unless somebody else took it meanwhile.
fn publish(unfinished: &Path, to: &Path) -> Result<(), UpkeepError> {
    match fs::hard_link(unfinished, to) {
        Ok(()) => fs::remove_file(unfinished).map_err(UpkeepError::file(unfinished))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(UpkeepError::Exists(to.to_owned()));
        }
        // A file system without links.
        Err(_) => fs::rename(unfinished, to).map_err(UpkeepError::file(to))?,
    }
    sync_parent(to)
}

fn refuse_existing(path: &Path) -> Result<(), UpkeepError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(UpkeepError::Exists(path.to_owned())),
        Err(_) => Ok(()),
    }
}

fn sync_parent(path: &Path) -> Result<(), UpkeepError> {
    let parent = parent(path);
    File::open(parent).and_then(|file| file.sync_all()).map_err(UpkeepError::file(parent))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
