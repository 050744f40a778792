//! Records when the last backup was tried and when one last succeeded, in a small file beside the
//! database. Commands make backups; the running service reads this file to report them.
//!
//! Written by commands on their main thread, read on a lane of the service; blocks on the disk. The
//! record is written after the backup, so that a failure here never prevents one.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::store::errors::MaintenanceError;
use crate::store::small_file;

/// Name of the file in the state directory.
pub const FILE_NAME: &str = "last-backup.json";

/// Times of the last attempt and of the last success, Unix milliseconds by this machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRecord {
    pub tried_ms: i64,
    /// `None` if no backup ever succeeded.
    pub succeeded_ms: Option<i64>,
}

impl BackupRecord {
    /// Whether the last attempt failed.
    pub fn failed(&self) -> bool {
        self.succeeded_ms != Some(self.tried_ms)
    }
}

/// Reads the record of a state directory. `None` if no backup was ever tried.
///
/// # Errors
/// The file cannot be read, or this program did not write it.
pub fn read(state_dir: &Path) -> io::Result<Option<BackupRecord>> {
    let bytes = small_file::read(&state_dir.join(FILE_NAME))?;
    bytes
        .map(|bytes| sonic_rs::from_slice(&bytes).map_err(io::Error::other))
        .transpose()
}

/// Records an attempt that ended at `tried_ms`; `good` if it succeeded.
///
/// # Errors
/// [`MaintenanceError`].
pub fn note(state_dir: &Path, tried_ms: i64, good: bool) -> Result<(), MaintenanceError> {
    // An unreadable record is replaced.
    let before = read(state_dir)
        .ok()
        .flatten()
        .and_then(|record| record.succeeded_ms);
    let record = BackupRecord {
        tried_ms,
        succeeded_ms: if good { Some(tried_ms) } else { before },
    };
    // Serialising two numbers cannot fail.
    let mut bytes = sonic_rs::to_vec(&record).unwrap_or_default();
    bytes.push(b'\n');
    small_file::replace(&state_dir.join(FILE_NAME), &bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_failed_backup_keeps_the_time_of_the_last_success() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(read(state.path()).unwrap(), None);
        note(state.path(), 1_000, false).unwrap();
        let record = read(state.path()).unwrap().unwrap();
        assert_eq!(
            record,
            BackupRecord {
                tried_ms: 1_000,
                succeeded_ms: None
            }
        );
        assert!(record.failed());
        note(state.path(), 2_000, true).unwrap();
        assert!(!read(state.path()).unwrap().unwrap().failed());
        note(state.path(), 3_000, false).unwrap();
        let record = read(state.path()).unwrap().unwrap();
        assert_eq!(
            record,
            BackupRecord {
                tried_ms: 3_000,
                succeeded_ms: Some(2_000)
            }
        );
        let about = fs::metadata(state.path().join(FILE_NAME)).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1, "nothing half is left");
    }

    #[test]
    fn a_foreign_file_is_no_record_and_is_replaced() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join(FILE_NAME);
        for text in ["", "garbage", &"9".repeat(5_000)] {
            fs::write(&path, text).unwrap();
            assert!(read(state.path()).is_err(), "{text}");
        }
        note(state.path(), 1_000, true).unwrap();
        assert_eq!(read(state.path()).unwrap().unwrap().succeeded_ms, Some(1_000));
    }
}
