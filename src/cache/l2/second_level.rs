//! [`SecondLevel`]: a narrow trait over keys and bytes, its records, limits and errors.
//!
//! Every call may block, so only lane threads and start-up code call it, never the edge.

use crate::base::words;
use crate::views::states::CacheBackend;

words! {
    /// The kind of a record. Keys are distinct within a kind. Records are stored under these words,
    /// which never change.
    #[derive(Hash)]
    pub enum Kind {
        /// A quote, by symbol (`encode`).
        Quote = "quote",
        /// The instrument list of a day, in the form that its owner writes.
        Instruments = "instruments",
    }
}

/// Longest key. A symbol is shorter.
pub(crate) const KEY_BYTES_MAX: usize = 64;

/// Largest record: an instruments file, whose download has the same limit.
pub const RECORD_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The bytes of a record and when they were stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub bytes: Vec<u8>,
    /// Wall time of the store, milliseconds since the Unix epoch.
    pub stored_ms: i64,
}

/// Why L2 could not load or store. Never fatal: the service runs on L1 alone.
#[derive(Debug, thiserror::Error)]
pub enum L2Error {
    #[error("second cache level: {detail}")]
    Unavailable { detail: String },
    /// The shared server refuses the command. `nodes::valkey` logs each refusal once.
    #[error("second cache level: the server refuses: {detail}")]
    Refused { detail: String },
    #[error("second cache level: {what} of {bytes} bytes is over the limit of {bytes_max}")]
    TooLarge {
        what: &'static str,
        bytes: usize,
        bytes_max: usize,
    },
    /// The level is shared, and a newer leader writes it now.
    #[error("second cache level: a newer leader stores its records")]
    Deposed,
}

/// Causes for which a value on a shared server is distrusted.
pub const DISTRUSTED: [&str; 3] = ["forged", "unreadable", "replayed"];

/// Counters that health and metrics show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L2Stats {
    pub backend: CacheBackend,
    /// Look-ups that found a record.
    pub hits: u64,
    /// Look-ups and loads of a whole kind that found nothing.
    pub misses: u64,
    pub errors: u64,
    /// Records dropped because of the bound on records.
    pub evictions: u64,
    /// Files that could not be read and were replaced by an empty one.
    pub set_aside: u64,
    /// Records of all kinds, as of the last change that this process made.
    pub entries: u64,
    /// Size on disk, or in the server's memory, as of that change.
    pub bytes: u64,
    /// Distrusted values of all kinds on a shared server, by cause as in [`DISTRUSTED`].
    pub distrusted: [u64; DISTRUSTED.len()],
}

impl L2Stats {
    /// Counts a look-up that found this many records.
    pub(crate) fn count_found(&mut self, records: usize) {
        match records {
            0 => self.misses += 1,
            records => self.hits += records as u64,
        }
    }
}

/// Keys and bytes that survive a restart.
pub trait SecondLevel: Send + Sync {
    /// One record.
    ///
    /// # Errors
    /// [`L2Error::Unavailable`].
    fn load(&self, kind: Kind, key: &str) -> Result<Option<Record>, L2Error>;

    /// Every record of a kind with its key, in no particular order.
    ///
    /// # Errors
    /// [`L2Error::Unavailable`].
    fn load_all(&self, kind: Kind) -> Result<Vec<(String, Record)>, L2Error>;

    /// Stores all `items` or none, replacing records with the same keys. Over the bound of a kind,
    /// the records stored longest ago are dropped.
    ///
    /// # Errors
    /// [`L2Error::Unavailable`], [`L2Error::Deposed`], and [`L2Error::TooLarge`] for a key or a
    /// record.
    fn store(&self, kind: Kind, items: &[(String, Vec<u8>)], now_ms: i64) -> Result<(), L2Error>;

    /// Counters since the start. Does not block.
    fn stats(&self) -> L2Stats;
}

/// Checks the limits that every implementation has to keep.
///
/// # Errors
/// [`L2Error::TooLarge`].
pub(crate) fn check_sizes(items: &[(String, Vec<u8>)]) -> Result<(), L2Error> {
    for (key, bytes) in items {
        for (what, bytes, bytes_max) in [
            ("a key", key.len(), KEY_BYTES_MAX),
            ("a record", bytes.len(), RECORD_BYTES_MAX),
        ] {
            if bytes > bytes_max {
                return Err(L2Error::TooLarge {
                    what,
                    bytes,
                    bytes_max,
                });
            }
        }
    }
    Ok(())
}

/// Used when no L2 could be opened: it holds nothing and never fails.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Absent;

impl SecondLevel for Absent {
    fn load(&self, _kind: Kind, _key: &str) -> Result<Option<Record>, L2Error> {
        Ok(None)
    }

    fn load_all(&self, _kind: Kind) -> Result<Vec<(String, Record)>, L2Error> {
        Ok(Vec::new())
    }

    fn store(
        &self,
        _kind: Kind,
        _items: &[(String, Vec<u8>)],
        _now_ms: i64,
    ) -> Result<(), L2Error> {
        Ok(())
    }

    fn stats(&self) -> L2Stats {
        L2Stats {
            backend: CacheBackend::None,
            ..L2Stats::default()
        }
    }
}
