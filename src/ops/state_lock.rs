//! The lock on a state directory: one instance at a time, and commands that can tell.
//!
//! Main thread. The lock is the system's, so it goes with the process that holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

const FILE_NAME: &str = "lock";

/// What trying for the lock showed.
#[derive(Debug)]
pub enum StateLock {
    /// Nobody had it; it is ours while the file lives.
    Held(File),
    /// A running instance has it.
    InUse,
}

/// Takes the lock of the directory, making its file.
///
/// # Errors
/// When the file cannot be made or locked.
pub fn take(state_dir: &Path) -> io::Result<StateLock> {
    let lock = try_lock(OpenOptions::new().write(true).create(true).truncate(false), state_dir)?;
    if let StateLock::Held(file) = &lock {
        let (own, directory) = (file.metadata()?, std::fs::metadata(state_dir)?);
        if own.uid() != directory.uid() {
            // Made by root, for a command: the service must be able to open it too.
            fchown(file, Some(directory.uid()), Some(directory.gid()))?;
        }
    }
    Ok(lock)
}

/// Whether an instance runs on the directory; changes nothing in it. `None` where that cannot be
/// told.
pub fn in_use(state_dir: &Path) -> Option<bool> {
    match try_lock(OpenOptions::new().read(true), state_dir) {
        Ok(StateLock::InUse) => Some(true),
        Ok(StateLock::Held(_)) => Some(false),
        // No instance ever ran there.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
    }
}

fn try_lock(options: &OpenOptions, state_dir: &Path) -> io::Result<StateLock> {
    let file = options.open(state_dir.join(FILE_NAME))?;
    match file.try_lock() {
        Ok(()) => Ok(StateLock::Held(file)),
        Err(TryLockError::WouldBlock) => Ok(StateLock::InUse),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_and_others_can_tell() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(in_use(directory.path()), Some(false));
        assert!(std::fs::read_dir(directory.path()).unwrap().next().is_none());
        let held = take(directory.path()).unwrap();
        assert!(matches!(held, StateLock::Held(_)));
        assert!(matches!(take(directory.path()).unwrap(), StateLock::InUse));
        assert_eq!(in_use(directory.path()), Some(true));
        drop(held);
        assert_eq!(in_use(directory.path()), Some(false));
        assert!(take(&directory.path().join("missing")).is_err());
    }
}
