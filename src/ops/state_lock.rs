//! The lock on a state directory: one running instance at a time, and commands can check whether
//! one runs.
//!
//! The main thread takes it at start. If it could not, the store's writer thread tries again. The
//! lock is a file lock, so the kernel releases it when the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::ops::owner;

const FILE_NAME: &str = "lock";

/// The locked file. Unlocked by name when dropped: closing would leave it locked for as long as a
/// process that was started meanwhile has not replaced itself with its program.
#[derive(Debug)]
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // A file that cannot be unlocked is closed next.
        let _ = self.0.unlock();
    }
}

/// Result of trying to take the lock.
#[derive(Debug)]
pub enum StateLock {
    /// The lock is ours until it is dropped.
    Held(Lock),
    /// A running instance holds the lock.
    InUse,
}

/// The lock of a running instance. If it could not be taken at start (the directory was not
/// writable), the store tries again before each write.
#[derive(Debug)]
pub struct InstanceLock {
    state_dir: PathBuf,
    hold: Mutex<Hold>,
}

#[derive(Debug)]
enum Hold {
    NotYet,
    Held {
        _lock: Lock,
    },
    /// Given up for good, so that the next instance can take it.
    Released,
}

/// Why the lock is not held.
#[derive(Debug, thiserror::Error)]
pub enum NotHeld {
    #[error("another instance uses the state directory")]
    InUse,
    #[error("the lock of the state directory cannot be taken: {0}")]
    Refused(#[from] io::Error),
    #[error("the service is stopping")]
    Released,
}

impl InstanceLock {
    /// The lock of `state_dir`, not taken yet.
    pub fn of(state_dir: &Path) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
            hold: Mutex::new(Hold::NotYet),
        }
    }

    /// Takes the lock unless it is held already.
    ///
    /// # Errors
    /// [`NotHeld`].
    pub fn hold(&self) -> Result<(), NotHeld> {
        let mut hold = self.hold.lock();
        match *hold {
            Hold::Held { .. } => Ok(()),
            Hold::Released => Err(NotHeld::Released),
            Hold::NotYet => match take(&self.state_dir)? {
                StateLock::Held(lock) => {
                    *hold = Hold::Held { _lock: lock };
                    Ok(())
                }
                StateLock::InUse => Err(NotHeld::InUse),
            },
        }
    }

    /// Releases the lock for good, so that the next instance can take it.
    pub(crate) fn release(&self) {
        *self.hold.lock() = Hold::Released;
    }
}

/// Takes the lock of the directory and creates its file if needed. On a directory that is not
/// writable now, an existing lock file is enough.
///
/// # Errors
/// If the file cannot be created or locked.
pub fn take(state_dir: &Path) -> io::Result<StateLock> {
    let mut creating = OpenOptions::new();
    creating.write(true).create(true).truncate(false);
    let lock = try_lock(&creating, state_dir).or_else(|error| {
        // If reading fails too, report the first error: it names the cause.
        try_lock(OpenOptions::new().read(true), state_dir).map_err(|_| error)
    })?;
    if let StateLock::Held(held) = &lock {
        // A command run by root created the file; the service's user must be able to open it.
        owner::give(&held.0, &state_dir.join(FILE_NAME))?;
    }
    Ok(lock)
}

/// Whether a running instance uses the directory; `None` if the lock file cannot be opened or
/// checked. Changes nothing in the directory.
pub(crate) fn in_use(state_dir: &Path) -> Option<bool> {
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
        Ok(()) => Ok(StateLock::Held(Lock(file))),
        Err(TryLockError::WouldBlock) => Ok(StateLock::InUse),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

// ---- Secret file
//
// Reads a small file that may hold a secret. Blocks on the disk.

/// Reads the file into memory that is wiped on drop.
///
/// # Errors
/// If it cannot be read. [`io::ErrorKind::FileTooLarge`] if it has more than `bytes_max` bytes.
pub(crate) fn read(file: File, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    // Reserve everything at once: a buffer that grows leaves unwiped copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(bytes_max + 1));
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let why = format!("more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_refused_to_others_and_seen_as_in_use() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(in_use(directory.path()), Some(false));
        assert!(
            std::fs::read_dir(directory.path())
                .unwrap()
                .next()
                .is_none()
        );
        let held = take(directory.path()).unwrap();
        assert!(matches!(held, StateLock::Held(_)));
        assert!(matches!(take(directory.path()).unwrap(), StateLock::InUse));
        assert_eq!(in_use(directory.path()), Some(true));
        drop(held);
        assert_eq!(in_use(directory.path()), Some(false));
        assert!(take(&directory.path().join("missing")).is_err());
    }

    #[test]
    fn an_instance_takes_the_lock_at_a_later_try_and_never_after_release() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("state");
        let first = InstanceLock::of(&directory);
        let second = InstanceLock::of(&directory);
        assert!(matches!(first.hold(), Err(NotHeld::Refused(_))));
        std::fs::create_dir(&directory).unwrap();
        first.hold().unwrap();
        first.hold().unwrap();
        assert!(matches!(second.hold(), Err(NotHeld::InUse)));
        first.release();
        second.hold().unwrap();
        assert!(matches!(first.hold(), Err(NotHeld::Released)));
    }

    /// A process that is being started holds every open file until it runs its program.
    #[test]
    fn a_released_lock_is_free_although_its_file_is_still_open_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        let StateLock::Held(lock) = take(directory.path()).unwrap() else {
            panic!("free")
        };
        let inherited = lock.0.try_clone().unwrap();
        drop(lock);
        assert_eq!(in_use(directory.path()), Some(false));
        drop(inherited);
    }

    /// The case of a read-only file system where an earlier instance left its lock file.
    #[test]
    fn a_lock_file_that_is_not_writable_is_locked_through_a_reader() {
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

#[cfg(test)]
mod secret_file_tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_refused_beyond() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        std::fs::write(&path, "ten bytes.").unwrap();
        let bytes = read(File::open(&path).unwrap(), 10).unwrap();
        assert_eq!(bytes.as_slice(), b"ten bytes.");
        assert!(bytes.capacity() < 2 * 10 + 2, "grew");
        let error = read(File::open(&path).unwrap(), 9).unwrap_err();
        assert_eq!(error.to_string(), "more than 9 bytes");
    }
}
