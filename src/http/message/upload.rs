//! A request's body that is a file: collected in pieces while it arrives, and handed whole to
//! whoever reads it.
//!
//! All uploads of a server take their pieces from one budget, so that their number cannot fill the
//! memory. The edge fills an upload, and a lane reads it; nothing here waits. It is not for
//! credentials: what reads those from a request's body never sees an upload.

use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::ops::Counter;

/// Bytes of a piece: below the size from which the allocator maps each block by itself, and few
/// enough of them that a list of the pieces of the largest file is short.
const PIECE_BYTES: usize = 64 * 1024;

/// Bytes of all uploads of a server together: two of the largest.
pub const UPLOADS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Uploads that one user may have at once: one that is read, and one that arrives meanwhile.
const UPLOADS_PER_USER_MAX: usize = 2;

/// The uploads of a server.
#[derive(Debug, Default)]
pub struct Uploads {
    /// Bytes of all their pieces.
    bytes: AtomicUsize,
    by_user: Mutex<HashMap<i64, usize>>,
    /// Uploads refused because the budget was used up.
    pub crowded: Counter,
    /// Uploads refused because their user had others.
    pub of_busy_users: Counter,
}

/// The budget is used up, or the user has other uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowded;

impl Uploads {
    /// Bytes that all uploads hold.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// An empty upload of a user, of which so many bytes are announced.
    ///
    /// # Errors
    /// [`Crowded`] if the user has others, or if there is no room for what is announced. That is
    /// not reserved: a client that sends slowly keeps nobody out.
    pub(crate) fn begin(
        self: &Arc<Self>,
        user: i64,
        announced_bytes: u64,
    ) -> Result<Upload, Crowded> {
        let left_bytes = UPLOADS_BYTES_MAX.saturating_sub(self.bytes());
        if announced_bytes > left_bytes as u64 {
            self.crowded.increment();
            return Err(Crowded);
        }
        let mut by_user = self.by_user.lock();
        let count = by_user.entry(user).or_default();
        if *count >= UPLOADS_PER_USER_MAX {
            self.of_busy_users.increment();
            return Err(Crowded);
        }
        *count += 1;
        Ok(Upload {
            uploads: Arc::clone(self),
            user,
            pieces: Vec::new(),
            bytes: 0,
            at: 0,
        })
    }

    fn piece(&self) -> Result<Vec<u8>, Crowded> {
        let before = self.bytes.fetch_add(PIECE_BYTES, Ordering::Relaxed);
        if before + PIECE_BYTES > UPLOADS_BYTES_MAX {
            self.bytes.fetch_sub(PIECE_BYTES, Ordering::Relaxed);
            self.crowded.increment();
            return Err(Crowded);
        }
        Ok(Vec::with_capacity(PIECE_BYTES))
    }
}

/// The body of one request. What it holds is given back when it is dropped.
#[derive(Debug)]
pub struct Upload {
    uploads: Arc<Uploads>,
    user: i64,
    /// Full, but for the last one.
    pieces: Vec<Vec<u8>>,
    bytes: usize,
    /// Where the next read begins.
    at: usize,
}

impl Upload {
    /// Bytes collected so far.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// Adds what has arrived.
    ///
    /// # Errors
    /// [`Crowded`] if the budget is used up.
    pub(crate) fn add(&mut self, mut arrived: &[u8]) -> Result<(), Crowded> {
        while !arrived.is_empty() {
            let has_room = self
                .pieces
                .last()
                .is_some_and(|piece| piece.len() < PIECE_BYTES);
            if !has_room {
                let piece = self.uploads.piece()?;
                self.pieces.push(piece);
            }
            let Some(piece) = self.pieces.last_mut() else {
                break;
            };
            let taken = arrived.len().min(PIECE_BYTES - piece.len());
            piece.extend_from_slice(&arrived[..taken]);
            self.bytes += taken;
            arrived = &arrived[taken..];
        }
        Ok(())
    }
}

impl Read for Upload {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(piece) = self.pieces.get(self.at / PIECE_BYTES) else {
            return Ok(0);
        };
        let rest = piece.get(self.at % PIECE_BYTES..).unwrap_or_default();
        let taken = rest.len().min(into.len());
        into[..taken].copy_from_slice(&rest[..taken]);
        self.at += taken;
        Ok(taken)
    }
}

impl Seek for Upload {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(at) => (0, i64::try_from(at).ok()),
            SeekFrom::End(by) => (self.bytes, Some(by)),
            SeekFrom::Current(by) => (self.at, Some(by)),
        };
        let at = by
            .and_then(|by| (from as i64).checked_add(by))
            .and_then(|at| at.try_into().ok());
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at as u64)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.uploads
            .bytes
            .fetch_sub(self.pieces.len() * PIECE_BYTES, Ordering::Relaxed);
        let mut by_user = self.uploads.by_user.lock();
        if let Some(count) = by_user.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(uploads: &Arc<Uploads>) -> Upload {
        uploads.begin(1, 0).unwrap()
    }

    #[test]
    fn what_arrives_in_pieces_is_read_as_one_file() {
        let uploads = Arc::<Uploads>::default();
        let mut upload = begun(&uploads);
        let sent: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
        for part in sent.chunks(7_001) {
            upload.add(part).unwrap();
        }
        assert_eq!(upload.size(), sent.len());
        let mut read = Vec::new();
        upload.read_to_end(&mut read).unwrap();
        assert!(read == sent, "the same bytes");
        for (to, at) in [
            (SeekFrom::Start(65_530), 65_530),
            (SeekFrom::End(-3), sent.len() - 3),
            (SeekFrom::Current(-100_000), sent.len() - 100_000),
            (SeekFrom::End(5), sent.len()),
        ] {
            read.clear();
            upload.seek(to).unwrap();
            upload.read_to_end(&mut read).unwrap();
            assert!(read == sent[at..], "{to:?}");
        }
        assert!(upload.seek(SeekFrom::End(-200_001)).is_err(), "before the beginning");
    }

    #[test]
    fn the_budget_is_shared_and_given_back() {
        let uploads = Arc::<Uploads>::default();
        let piece = vec![7; PIECE_BYTES];
        let mut one = begun(&uploads);
        for _ in 0..UPLOADS_BYTES_MAX / PIECE_BYTES {
            one.add(&piece).unwrap();
        }
        assert_eq!(uploads.bytes(), UPLOADS_BYTES_MAX);
        let mut other = uploads.begin(2, 0).unwrap();
        assert_eq!(other.add(b"a").unwrap_err(), Crowded);
        assert_eq!(uploads.begin(3, 1).unwrap_err(), Crowded);
        assert_eq!(uploads.crowded.value(), 2);
        drop(one);
        assert_eq!(uploads.bytes(), 0);
        other.add(b"a").unwrap();
        assert_eq!(uploads.begin(3, UPLOADS_BYTES_MAX as u64).unwrap_err(), Crowded);
    }

    #[test]
    fn a_user_has_two_at_once() {
        let uploads = Arc::<Uploads>::default();
        let one = begun(&uploads);
        let _two = begun(&uploads);
        assert_eq!(uploads.begin(1, 0).unwrap_err(), Crowded);
        assert_eq!(uploads.of_busy_users.value(), 1);
        uploads.begin(2, 0).unwrap();
        drop(one);
        begun(&uploads);
        assert_eq!(uploads.by_user.lock().len(), 1);
    }
}
