//! Small files beside the database. Each is replaced as a whole: after a crash either the new or
//! the old content is there. They are private to the service's user. Blocks on the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use super::sqlite::errors::MaintenanceError;
use super::sqlite::unfinished::{make_private, owned_like_its_directory};
use crate::base::paths::beside;

/// Enough for two values. This program never writes a longer file.
const BYTES_MAX: u64 = 1_024;

/// Content of the file; `None` if there is none.
///
/// # Errors
/// As the system says.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces the content by `bytes`. After a power cut the old content may be back, unharmed.
///
/// # Errors
/// [`MaintenanceError`]. Then the file is unchanged.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), MaintenanceError> {
    let unfinished = beside(path, ".unfinished");
    let written = make_private(&unfinished)
        .and_then(|()| write(&unfinished, bytes).map_err(MaintenanceError::file(path)))
        .and_then(|()| owned_like_its_directory(&unfinished))
        .and_then(|()| fs::rename(&unfinished, path).map_err(MaintenanceError::file(path)));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
