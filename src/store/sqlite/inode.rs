//! Which file a path names: it may come to name another one.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

/// Identity of the file behind a path (device and inode), since a path may come to name another
/// file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inode {
    device: u64,
    inode: u64,
}

impl Inode {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }
}
