//! A ZIP: its members through counted limits.
//!
//! Names of members are looked up within it and shown to the person; none is ever a path.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use crate::ledger::limits::{Limits, Packed, Unpacked};
use crate::ledger::refusals::{Cause, FileError};

const ENTRIES_MAX: usize = 200;
/// What ends a directory, with its comment. The library looks for it there too.
const DIRECTORY_END_MAX: u64 = (1 << 16) + 26;
const DIRECTORY_END: &[u8] = b"PK\x05\x06";
/// Where the end of a directory has the number of its entries.
const ENTRIES_AT: usize = 10;

/// A ZIP that has as many members as it may.
pub(crate) struct Archive<'a, R> {
    zip: ZipArchive<Packed<R>>,
    limits: &'a Limits<'a>,
    taken: Rc<Cell<u64>>,
}

/// A member while it is read.
pub(crate) type Member<'a, R> = Unpacked<'a, ZipFile<'a, Packed<R>>>;

impl<'a, R: Read + Seek> Archive<'a, R> {
    pub(crate) fn new(mut from: R, limits: &'a Limits<'a>) -> Result<Self, FileError> {
        few_entries(&mut from)?;
        let packed = Packed::new(from);
        let taken = packed.taken();
        let zip = ZipArchive::new(packed).map_err(|error| refused(&error))?;
        if zip.len() > ENTRIES_MAX {
            return Err(FileError::not_understood(Cause::TooManyEntries));
        }
        if zip.has_duplicate_names() {
            return Err(FileError::not_understood(Cause::RepeatedEntry));
        }
        Ok(Self { zip, limits, taken })
    }

    pub(crate) fn len(&self) -> usize {
        self.zip.len()
    }

    /// Where the member of a name is.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.zip.index_for_name(name)
    }

    /// The name of a member to show; `None` if it is a folder or the copy that a Mac puts beside.
    pub(crate) fn shown_name(&self, at: usize) -> Option<String> {
        let name = self.zip.name_for_index(at)?.ok()?;
        let is_file = !name.ends_with('/') && !name.starts_with("__MACOSX/");
        let last = name.rsplit('/').next().unwrap_or(&name);
        is_file.then(|| {
            last.chars()
                .filter(|letter| !letter.is_control())
                .take(120)
                .collect()
        })
    }

    pub(crate) fn open(&mut self, at: usize) -> Result<Member<'_, R>, FileError> {
        let before = self.taken.get();
        let member = self.zip.by_index(at).map_err(|error| refused(&error))?;
        Ok(Unpacked::new(member, self.limits, self.taken.clone(), before))
    }
}

fn refused(error: &ZipError) -> FileError {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => FileError::Encrypted,
        ZipError::Io(error) => FileError::below(error, Cause::BrokenZip),
        _ => FileError::not_understood(Cause::BrokenZip),
    }
}

/// Looks at how many entries each possible end of a directory claims, before the library keeps a
/// record of each.
fn few_entries<R: Read + Seek>(from: &mut R) -> Result<(), FileError> {
    let mut tail = Vec::new();
    let mut read = || -> io::Result<()> {
        let length = from.seek(SeekFrom::End(0))?;
        from.seek(SeekFrom::Start(length.saturating_sub(DIRECTORY_END_MAX)))?;
        from.by_ref()
            .take(DIRECTORY_END_MAX)
            .read_to_end(&mut tail)?;
        from.seek(SeekFrom::Start(0))?;
        Ok(())
    };
    read().map_err(|error| FileError::Io(error.to_string()))?;
    for at in memchr::memmem::find_iter(&tail, DIRECTORY_END) {
        let claimed = tail
            .get(at + ENTRIES_AT..at + ENTRIES_AT + 2)
            .unwrap_or_default();
        let claimed = claimed
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        if claimed > ENTRIES_MAX {
            return Err(FileError::not_understood(Cause::TooManyEntries));
        }
    }
    Ok(())
}
