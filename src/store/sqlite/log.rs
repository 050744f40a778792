//! The write-ahead log beside the database and its index: watched, because what is written to a
//! removed log is gone with the process; and emptied, because what was erased stands in it until it
//! is overwritten.
//!
//! SQLite goes on with the files that it has opened, whatever their names stand for. So the writer
//! looks before each transaction and after it, and where a name has lost its file it moves what the
//! log holds into the database, through the connection that still has it, and opens all anew.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, io};

use parking_lot::Mutex;
use rusqlite::Connection;

use super::condition::Identity;
use super::file::{BUSY_TIMEOUT, beside};

/// How long the service's emptying of the log waits for readers, and its writes with it. A backup
/// may read for much longer; then it is tried again with the next probe.
pub(crate) const READERS_WAIT: Duration = Duration::from_millis(250);

/// What the writer's connection was opened with, and whether the log has to be emptied.
pub(crate) struct LogWatch {
    log: PathBuf,
    index: PathBuf,
    /// `None` where there is no connection that writes.
    opened: Mutex<Option<[Identity; 2]>>,
    /// Something erased stands in the log.
    due: AtomicBool,
}

impl LogWatch {
    /// Of the database at `path`.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            log: beside(path, "-wal"),
            index: beside(path, "-shm"),
            opened: Mutex::new(None),
            due: AtomicBool::new(false),
        }
    }

    /// A connection that writes has just been opened, or closed.
    pub(crate) fn note(&self, opened: bool) {
        *self.opened.lock() = if opened { self.found().ok() } else { None };
    }

    fn found(&self) -> io::Result<[Identity; 2]> {
        Ok([Identity::of(&self.log)?, Identity::of(&self.index)?])
    }

    /// Whether the names stand for what was opened.
    pub(crate) fn in_place(&self) -> bool {
        let opened = *self.opened.lock();
        opened.is_none_or(|opened| self.found().is_ok_and(|found| found == opened))
    }

    /// Whether the log has to be emptied.
    pub(crate) fn due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }

    pub(crate) fn set_due(&self, due: bool) {
        self.due.store(due, Ordering::Relaxed);
    }

    /// Out of the way of the next log, which would else be taken for the same: it is not ours.
    pub(crate) fn set_stranger_aside(&self) -> io::Result<()> {
        if self.opened.lock().is_some_and(|opened| Identity::of(&self.log).ok() == Some(opened[0]))
        {
            return Ok(());
        }
        set_aside(&self.log)
    }
}

/// Gives a log that belongs to no database, or not to this one, another name.
pub(crate) fn set_aside(log: &Path) -> io::Result<()> {
    let kept = beside(log, ".set-aside");
    match fs::rename(log, &kept) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(()) => {
            let kept = kept.display();
            tracing::warn!(%kept, "a log that does not belong to the database was set aside");
            Ok(())
        }
        failed => failed,
    }
}

/// Moves everything into the database and cuts the log to nothing. False where a reader has held it
/// for `patience`.
pub(crate) fn empty(connection: &Connection, patience: Duration) -> rusqlite::Result<bool> {
    connection.busy_timeout(patience)?;
    let emptied = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0));
    connection.busy_timeout(BUSY_TIMEOUT)?;
    emptied
}
