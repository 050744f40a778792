//! Gives what this process makes in a folder the folder's owner.
//!
//! A service or a command that `root` runs once must not leave files in a state directory that the
//! service's own user cannot open later. Runs on the thread that makes the file. Never follows a
//! symbolic link: whoever owns the folder could put one in the file's place.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown, lchown};
use std::path::Path;

/// Gives the open `file`, which has or will have the name `path`, the owner of its folder.
///
/// # Errors
/// The system's error. A user who may not give files away keeps them; that is no error.
pub(crate) fn give(file: &File, path: &Path) -> io::Result<()> {
    let own = file.metadata()?.uid();
    given(own, path, |uid, gid| fchown(file, Some(uid), Some(gid)))
}

/// Same as [`give`], for a socket or a folder that was just made.
///
/// # Errors
/// The system's error.
pub(crate) fn give_name(path: &Path) -> io::Result<()> {
    let own = fs::symlink_metadata(path)?.uid();
    given(own, path, |uid, gid| lchown(path, Some(uid), Some(gid)))
}

fn given(own: u32, path: &Path, give: impl FnOnce(u32, u32) -> io::Result<()>) -> io::Result<()> {
    let folder = fs::metadata(folder_of(path))?;
    if folder.uid() == own {
        return Ok(());
    }
    match give(folder.uid(), folder.gid()) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        given => given,
    }
}

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
