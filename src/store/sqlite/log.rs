//! Watches and empties the write-ahead log.
//!
//! It is watched because writes to a removed log are lost with the process. It is emptied because
//! erased data is in it until it is overwritten.
//!
//! SQLite keeps using the files that it has opened, even if their names are gone. So the writer
//! checks the names before and after each transaction. If a name no longer refers to its file, the
//! writer moves the log's content into the database through the connection that still has it, and
//! opens everything again.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, io};

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::base::paths::beside;
use crate::store::condition::PROBE_WRITE;
use crate::store::tx::{Failure, Tx};

/// Time that a connection to the database waits for another process that uses the file, which may
/// be a backup. Less than any write's deadline.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_millis(2_000);

/// Time that emptying the log waits for readers; writes wait with it, and no write may be held for
/// 50 ms. A ledger is read for a tenth of a second, a backup for much longer. Then the next probe
/// tries again.
pub(crate) const READERS_WAIT: Duration = Duration::from_millis(20);

/// The same where the log was moved away: nothing can be written before it is empty.
pub(crate) const READERS_WAIT_OF_MOVED_LOG: Duration = Duration::from_millis(250);

/// Identities of the log files that the writer has open, and whether the log has to be emptied.
pub(crate) struct LogWatch {
    log: PathBuf,
    index: PathBuf,
    /// `None` if no connection for writing is open.
    opened: Mutex<Option<[Inode; 2]>>,
    /// Whether erased data is in the log.
    due: AtomicBool,
}

impl LogWatch {
    /// Watches the log of the database at `path`.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            log: beside(path, "-wal"),
            index: beside(path, "-shm"),
            opened: Mutex::new(None),
            due: AtomicBool::new(false),
        }
    }

    /// Records that a connection for writing was opened or closed.
    pub(crate) fn note(&self, opened: bool) {
        *self.opened.lock() = if opened { self.found().ok() } else { None };
    }

    fn found(&self) -> io::Result<[Inode; 2]> {
        Ok([Inode::of(&self.log)?, Inode::of(&self.index)?])
    }

    /// Whether the names still refer to the files that were opened.
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

    /// Renames a log that is not ours, which SQLite would otherwise take for the next one.
    pub(crate) fn set_stranger_aside(&self) -> io::Result<()> {
        if self
            .opened
            .lock()
            .is_some_and(|opened| Inode::of(&self.log).ok() == Some(opened[0]))
        {
            return Ok(());
        }
        set_aside(&self.log)
    }
}

/// Renames a log that does not belong to this database.
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

/// Whether there is no log, or an empty one. A running service's log is never empty
/// ([`keep_filled`]).
pub(crate) fn is_empty(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).map_or(0, |about| about.len()) == 0
}

/// Writes a row into a log that was emptied, so that its loss can be detected.
pub(crate) fn keep_filled(connection: &Connection, path: &Path) -> Result<(), Failure> {
    match is_empty(path) {
        true => connection.run(PROBE_WRITE, &[]).map(drop),
        false => Ok(()),
    }
}

/// Moves the log's content into the database and truncates the log. False if a reader prevented it
/// for `patience`.
pub(crate) fn empty(connection: &Connection, patience: Duration) -> rusqlite::Result<bool> {
    connection.busy_timeout(patience)?;
    let emptied = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0));
    connection.busy_timeout(BUSY_TIMEOUT)?;
    emptied
}

// ---- Inode
//
// Identity of the file that a path names, since the path may come to name another.

/// Identity of the file behind a path: device and inode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inode {
    device: u64,
    inode: u64,
}

impl Inode {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self {
            device: found.dev(),
            inode: found.ino(),
        })
    }
}
