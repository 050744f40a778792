//! Small files beside the database, each replaced as a whole: all of the new one or of the old one
//! is there, private and the service's own. Blocks on the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use super::sqlite::file::beside;
use super::sqlite::maintenance::{MaintenanceError, owned_like_its_directory};
use super::sqlite::unfinished::make_private;

/// Two values; whoever wrote more is not us.
const BYTES_MAX: u64 = 1_024;

/// What it holds; `None` where there is none.
///
/// # Errors
/// As the system says.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Puts `bytes` in its place. A power cut may bring the old file back, whole.
///
/// # Errors
/// [`MaintenanceError`]; then what stood there stands there still.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), MaintenanceError> {
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
