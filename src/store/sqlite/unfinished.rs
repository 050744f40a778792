//! Copies under way: written under a temporary name, private from the beginning, and
//! distinguishable from what an interrupted command left behind. Runs on a command's main thread;
//! blocks.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::Path;

use super::errors::MaintenanceError;
use crate::base::paths::beside;

/// Makes the temporary file of a copy and locks it while it is written, so that an abandoned one
/// can be recognised.
pub(crate) fn claim(unfinished: &Path) -> Result<File, MaintenanceError> {
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
pub fn remove_unfinished(path: &Path) -> Result<bool, MaintenanceError> {
    match File::open(path) {
        Ok(file) if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) => {
            return Err(in_work(path));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(MaintenanceError::file(path)(error)),
    }
    // The journal that SQLite keeps beside a file that it writes.
    let _ = fs::remove_file(beside(path, "-journal"));
    fs::remove_file(path).map(|()| true).map_err(MaintenanceError::file(path))
}

pub(crate) fn make_private(path: &Path) -> Result<(), MaintenanceError> {
    // An interrupted command left it. It was never reported as finished.
    let _ = fs::remove_file(path);
    // Created empty first, so that it is private from the beginning. SQLite accepts an empty file.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(MaintenanceError::file(path))
}

/// Gives the file the owner of its directory, so that the service owns it also if root restores it.
pub(crate) fn owned_like_its_directory(path: &Path) -> Result<(), MaintenanceError> {
    let directory = fs::metadata(parent(path)).map_err(MaintenanceError::file(path))?;
    let own = fs::metadata(path).map_err(MaintenanceError::file(path))?;
    if own.uid() == directory.uid() {
        return Ok(());
    }
    chown(path, Some(directory.uid()), Some(directory.gid())).map_err(MaintenanceError::file(path))
}

/// Removes the file and ignores errors. It was never reported as finished.
pub(crate) fn remove_quietly(unfinished: &Path) {
    let _ = fs::remove_file(unfinished);
}

pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
