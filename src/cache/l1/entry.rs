//! One entry of the first level, and what it weighs. Made by writers; readers only note that they
//! asked.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};

use super::Vouched;
use crate::base::{Quote, Symbol};

/// What an entry costs beside its texts: itself, its symbol in the map and in the list of keys, and
/// the two counts before the symbol's shared text.
const ENTRY_BYTES: usize = size_of::<Entry>() + 2 * size_of::<Symbol>() + 2 * size_of::<usize>();

/// What the cache knows of a symbol, as a copy that may be kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Peek {
    Known {
        quote: Quote,
        stale: bool,
        vouched: Vouched,
        /// The last moment at which it is fresh, as far as is known now.
        fresh_until_mono_ms: i64,
    },
    /// Looked up lately and known to no source.
    Unknown,
    Missing,
}

pub(super) struct Entry {
    pub(super) state: State,
    /// Second, counted from 1, in which a client last asked; 0: never.
    pub(super) asked_s: AtomicU32,
}

pub(super) enum State {
    Known(Known),
    /// No source knows the symbol; forgotten at this time.
    Unknown {
        until_mono_ms: u64,
    },
}

pub(super) struct Known {
    pub(super) quote: Quote,
    pub(super) json: Box<[u8]>,
    /// When its source stood for it, which the source may confirm; see [`Vouched`].
    pub(super) vouched_mono_ms: AtomicI64,
    pub(super) calls: u8,
}

impl Known {
    pub(super) fn vouched(&self) -> Vouched {
        Vouched { mono_ms: self.vouched_mono_ms.load(Relaxed), calls: self.calls }
    }
}

impl Entry {
    /// Whether a client asked since `since_s`, before this request.
    #[inline]
    pub(super) fn asked_since(&self, since_s: u32) -> bool {
        let asked_s = self.asked_s.load(Relaxed);
        asked_s > 0 && asked_s >= since_s
    }

    /// Stores only when the second changed, so that a hot entry's cache line stays shared.
    #[inline]
    pub(super) fn touch(&self, now_mono_ms: u64) {
        let now_s = second(now_mono_ms);
        if self.asked_s.load(Relaxed) != now_s {
            self.asked_s.store(now_s, Relaxed);
        }
    }

    /// About how much memory the entry takes under a symbol of `symbol_bytes`; without the map's
    /// own table, which is of one size from the start.
    pub(super) fn bytes(&self, symbol_bytes: usize) -> usize {
        let json_bytes = match &self.state {
            State::Known(known) => known.json.len(),
            State::Unknown { .. } => 0,
        };
        ENTRY_BYTES + symbol_bytes + json_bytes
    }
}

/// The second of a monotonic time, counted from 1; 136 years fit.
#[inline]
pub(super) fn second(mono_ms: u64) -> u32 {
    u32::try_from(mono_ms / 1_000 + 1).unwrap_or(u32::MAX)
}
