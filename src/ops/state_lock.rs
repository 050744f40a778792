//! The lock on a state directory: one instance at a time, and commands that can tell.
//!
//! Main thread, and the store's writer for an instance that could not take it at its start. The
//! lock is the system's, so it goes with the process that holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

const FILE_NAME: &str = "lock";

/// What trying for the lock showed.
#[derive(Debug)]
pub enum StateLock {
    /// Nobody had it; it is ours while the file lives.
    Held(File),
    /// A running instance has it.
    InUse,
}

/// The lock of a running instance. Where it could not be taken, as on a directory that cannot be
/// written, it is tried for again by whoever wants to write.
#[derive(Debug)]
pub struct InstanceLock {
    state_dir: PathBuf,
    hold: Mutex<Hold>,
}

#[derive(Debug)]
enum Hold {
    NotYet,
    Held {
        _file: File,
    },
    /// For good: the next instance may have it.
    Released,
}

/// Why an instance has no lock.
#[derive(Debug, thiserror::Error)]
pub enum NotHeld {
    #[error("another instance runs on the state directory")]
    InUse,
    #[error("the lock of the state directory cannot be taken: {0}")]
    Refused(#[from] io::Error),
    #[error("the service is stopping")]
    Released,
}

impl InstanceLock {
    /// Nobody's yet.
    pub fn of(state_dir: &Path) -> Self {
        Self { state_dir: state_dir.to_owned(), hold: Mutex::new(Hold::NotYet) }
    }

    /// Takes the lock where it is not held already.
    ///
    /// # Errors
    /// [`NotHeld`].
    pub fn hold(&self) -> Result<(), NotHeld> {
        let mut hold = self.hold.lock();
        match *hold {
            Hold::Held { .. } => Ok(()),
            Hold::Released => Err(NotHeld::Released),
            Hold::NotYet => match take(&self.state_dir)? {
                StateLock::Held(file) => {
                    *hold = Hold::Held { _file: file };
                    Ok(())
                }
                StateLock::InUse => Err(NotHeld::InUse),
            },
        }
    }

    /// Lets the next instance have it.
    pub fn release(&self) {
        *self.hold.lock() = Hold::Released;
    }
}

/// Takes the lock of the directory, making its file. One that is there is enough: a directory that
/// takes no writes now may take them later.
///
/// # Errors
/// When the file cannot be made or locked.
pub fn take(state_dir: &Path) -> io::Result<StateLock> {
    let mut making = OpenOptions::new();
    making.write(true).create(true).truncate(false);
    let lock = try_lock(&making, state_dir).or_else(|error| {
        // What was wrong with making it is the cause.
        try_lock(OpenOptions::new().read(true), state_dir).map_err(|_| error)
    })?;
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

    #[test]
    fn an_instance_takes_it_as_soon_as_it_can() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("state");
        let (first, second) = (InstanceLock::of(&directory), InstanceLock::of(&directory));
        assert!(matches!(first.hold(), Err(NotHeld::Refused(_))));
        std::fs::create_dir(&directory).unwrap();
        first.hold().unwrap();
        first.hold().unwrap();
        assert!(matches!(second.hold(), Err(NotHeld::InUse)));
        first.release();
        second.hold().unwrap();
        assert!(matches!(first.hold(), Err(NotHeld::Released)));
    }

    /// As on a medium that takes no writes, where an earlier instance left its file.
    #[test]
    fn a_file_that_cannot_be_written_is_locked_all_the_same() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        drop(take(directory.path()).unwrap());
        let file = directory.path().join(FILE_NAME);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
        let reading = try_lock(OpenOptions::new().read(true), directory.path()).unwrap();
        assert!(matches!(reading, StateLock::Held(_)));
        assert!(matches!(take(directory.path()).unwrap(), StateLock::InUse));
    }
}
