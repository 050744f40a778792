//! What reading one file may cost, counted while it is read and never taken from what the file
//! says of itself.

use std::cell::Cell;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::rc::Rc;

use crate::ledger::refusals::{Expansion, FileError};

/// Rows of all tables of a file.
const ROWS_MAX: usize = 200_000;
/// Unpacked bytes of all members.
const UNPACKED_BYTES_MAX: u64 = 256 << 20;
/// A member may be this many times as large as what it is packed in...
const EXPANSION_MAX: u64 = 200;
/// ...once so much of it was unpacked. Small tables of equal rows pack well.
const EXPANSION_FREE_BYTES: u64 = 8 << 20;
/// Rows between two looks at the time.
const ROWS_A_LOOK: usize = 256;

/// Counts for one file, shared by all that reads it.
pub(crate) struct Limits<'a> {
    out_of_time: &'a dyn Fn() -> bool,
    unpacked: Cell<u64>,
    rows: Cell<usize>,
}

impl<'a> Limits<'a> {
    pub(crate) fn new(out_of_time: &'a dyn Fn() -> bool) -> Self {
        Self {
            out_of_time,
            unpacked: Cell::new(0),
            rows: Cell::new(0),
        }
    }

    /// Counts a row of a table.
    pub(crate) fn add_row(&self) -> Result<(), FileError> {
        let rows = self.rows.get() + 1;
        self.rows.set(rows);
        if rows > ROWS_MAX {
            return Err(FileError::TooManyRows);
        }
        if rows.is_multiple_of(ROWS_A_LOOK) {
            self.in_time()
        } else {
            Ok(())
        }
    }

    pub(crate) fn in_time(&self) -> Result<(), FileError> {
        if (self.out_of_time)() {
            Err(FileError::TooSlow)
        } else {
            Ok(())
        }
    }

    fn add_unpacked(&self, bytes: usize) -> Result<(), FileError> {
        let unpacked = self.unpacked.get() + bytes as u64;
        self.unpacked.set(unpacked);
        if unpacked > UNPACKED_BYTES_MAX {
            return Err(FileError::Expands(Expansion::Whole));
        }
        self.in_time()
    }
}

/// The packed file, which counts what is read of it.
pub(crate) struct Packed<R> {
    from: R,
    taken: Rc<Cell<u64>>,
}

impl<R> Packed<R> {
    pub(crate) fn new(from: R) -> Self {
        Self {
            from,
            taken: Rc::default(),
        }
    }

    /// Bytes read so far, for who unpacks them.
    pub(crate) fn taken(&self) -> Rc<Cell<u64>> {
        self.taken.clone()
    }
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.taken.set(self.taken.get() + count as u64);
        Ok(count)
    }
}

impl<R: Seek> Seek for Packed<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.from.seek(to)
    }
}

/// What comes out of one member, counted.
pub(crate) struct Unpacked<'a, R> {
    from: R,
    limits: &'a Limits<'a>,
    /// Bytes read of the packed file, and what they were when this member began.
    taken: Rc<Cell<u64>>,
    taken_before: u64,
    unpacked: u64,
}

impl<'a, R: Read> Unpacked<'a, R> {
    /// `taken_before`: as it was before the member was opened.
    pub(crate) fn new(
        from: R,
        limits: &'a Limits<'a>,
        taken: Rc<Cell<u64>>,
        taken_before: u64,
    ) -> Self {
        Self {
            from,
            limits,
            taken,
            taken_before,
            unpacked: 0,
        }
    }
}

impl<R: Read> Read for Unpacked<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.unpacked += count as u64;
        self.limits.add_unpacked(count).map_err(io::Error::other)?;
        let packed = (self.taken.get() - self.taken_before).max(1);
        let is_large = self.unpacked > EXPANSION_FREE_BYTES;
        if is_large && self.unpacked / packed >= EXPANSION_MAX {
            return Err(io::Error::other(FileError::Expands(Expansion::Ratio)));
        }
        Ok(count)
    }
}

/// Gives a parser so many bytes and no more until it is allowed others, since parsers keep what
/// they have read of an unfinished piece.
pub(crate) struct Allowance<B> {
    from: B,
    left: usize,
}

impl<B: BufRead> Allowance<B> {
    pub(crate) fn new(from: B) -> Self {
        Self { from, left: 0 }
    }

    pub(crate) fn allow(&mut self, bytes: usize) {
        self.left = bytes;
    }
}

impl<B: BufRead> Read for Allowance<B> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let count = ready.len().min(into.len());
        into[..count].copy_from_slice(&ready[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<B: BufRead> BufRead for Allowance<B> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let ready = self.from.fill_buf()?;
        Ok(&ready[..ready.len().min(self.left)])
    }

    fn consume(&mut self, count: usize) {
        self.left -= count;
        self.from.consume(count);
    }
}
