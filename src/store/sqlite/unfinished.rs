//! Files that are written before they get their name: private from the beginning, and told from
//! what a command that was ended has left behind. On a command's main thread; blocks.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::file::beside;
use super::maintenance::MaintenanceError;

/// Makes the file of a copy that is under way, locked while it is, so that one that was left behind
/// can be told from it.
pub(crate) fn claim(unfinished: &Path) -> Result<File, MaintenanceError> {
    remove_unfinished(unfinished)?;
    make_private(unfinished)?;
    let claim = File::open(unfinished).map_err(MaintenanceError::file(unfinished))?;
    match claim.try_lock() {
        // A file system without locks has no second command to fear either.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(claim),
        Err(TryLockError::WouldBlock) => Err(in_work(unfinished)),
    }
}

fn in_work(path: &Path) -> MaintenanceError {
    MaintenanceError::file(path)(io::Error::other("another command is writing it"))
}

/// Removes a copy that a command which was ended left behind; false where there is none.
///
/// # Errors
/// [`MaintenanceError`], also where a command is at work on it.
pub fn remove_unfinished(path: &Path) -> Result<bool, MaintenanceError> {
    match File::open(path) {
        Ok(file) if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) => {
            return Err(in_work(path));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(MaintenanceError::file(path)(error)),
    }
    // What SQLite keeps beside a file that it writes.
    let _ = fs::remove_file(beside(path, "-journal"));
    fs::remove_file(path).map(|()| true).map_err(MaintenanceError::file(path))
}

pub(crate) fn make_private(path: &Path) -> Result<(), MaintenanceError> {
    // Left by a command that was ended in between; nobody was told of it.
    let _ = fs::remove_file(path);
    // Made first, so that it is private from the beginning; SQLite takes an empty file.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(MaintenanceError::file(path))
}

/// Whatever it holds, nobody was told of it.
pub(crate) fn remove_quietly(unfinished: &Path) {
    let _ = fs::remove_file(unfinished);
}
