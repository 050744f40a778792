//! Small files beside the database. Each is replaced as a whole: after a crash either the new or
//! the old content is there. They are private to the service's user. Blocks on the disk.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::{fs, io};

use crate::base::paths::beside;
use crate::ops::owner;
use crate::store::errors::MaintenanceError;

/// Enough for two values. This program never writes a longer file.
const BYTES_MAX: u64 = 1_024;

/// Content of the file; `None` if there is none.
///
/// # Errors
/// The system's error.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces the content by `bytes`. After a power cut the old content may be back, intact.
///
/// # Errors
/// [`MaintenanceError`]. Then the file is unchanged.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), MaintenanceError> {
    replace_with(path, |_| bytes.to_vec())
}

/// Same as [`replace`], with a content that may name the file that holds it.
///
/// # Errors
/// [`MaintenanceError`]. Then the file is unchanged.
pub(crate) fn replace_with(
    path: &Path,
    content: impl FnOnce(&Metadata) -> Vec<u8>,
) -> Result<(), MaintenanceError> {
    let unfinished = beside(path, ".unfinished");
    let written = make_private(&unfinished).and_then(|mut file| {
        let done = file
            .metadata()
            .and_then(|about| file.write_all(&content(&about)));
        let done = done
            .and_then(|()| file.sync_all())
            .and_then(|()| owner::give(&file, path));
        done.map_err(MaintenanceError::file(path))?;
        fs::rename(&unfinished, path).map_err(MaintenanceError::file(path))
    });
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Makes an empty file, in place of any other, that only its owner may read.
pub(crate) fn make_private(path: &Path) -> Result<File, MaintenanceError> {
    // An interrupted command left it. It was never reported as finished.
    let _ = fs::remove_file(path);
    // Created empty first, so that it is private from the beginning. SQLite accepts an empty file.
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    made.map_err(MaintenanceError::file(path))
}

/// Gives the file the owner of its directory, so that the service owns it also if root restores it.
pub(crate) fn owned_like_its_directory(path: &Path) -> Result<(), MaintenanceError> {
    owner::give_name(path).map_err(MaintenanceError::file(path))
}
