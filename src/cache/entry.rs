//! One entry of L1 and its size. Writers make entries; readers only note when they asked.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU32};

use crate::base::{Quote, Symbol};
use crate::cache::freshness::Vouched;

/// Memory of an entry besides its texts: itself, its symbol in the map and in the list of keys, and
/// the two reference counts of the symbol's shared text.
const ENTRY_BYTES: usize = size_of::<Entry>() + 2 * size_of::<Symbol>() + 2 * size_of::<usize>();

/// A copy of what the cache knows about a symbol.
#[derive(Clone, Debug, PartialEq)]
pub enum Peek {
    Known {
        quote: Quote,
        stale: bool,
        vouched: Vouched,
        /// The last moment at which it is fresh, as far as known now.
        fresh_until_mono_ms: i64,
    },
    /// Looked up lately, and no source knows it.
    Unknown,
    Missing,
}

pub(super) struct Entry {
    pub(super) state: State,
    /// Second, counted from 1, in which a client last asked; 0 if none ever did.
    pub(super) asked_s: AtomicU32,
}

pub(super) enum State {
    Known(Known),
    /// No source knows the symbol. The entry expires at this time.
    Unknown {
        until_mono_ms: u64,
    },
}

pub(super) struct Known {
    pub(super) quote: Quote,
    pub(super) json: Box<[u8]>,
    /// When its source last vouched for it. The source may confirm it later; see [`Vouched`].
    pub(super) vouched_mono_ms: AtomicI64,
    pub(super) calls: u8,
}

impl Known {
    pub(super) fn vouched(&self) -> Vouched {
        Vouched {
            mono_ms: self.vouched_mono_ms.load(Relaxed),
            calls: self.calls,
        }
    }
}

impl Entry {
    /// Whether a client asked at or after `since_s`, before this request.
    #[inline]
    pub(super) fn asked_since(&self, since_s: u32) -> bool {
        let asked_s = self.asked_s.load(Relaxed);
        asked_s > 0 && asked_s >= since_s
    }

    /// Notes that a client asked. Writes only if the second has changed, so that the cache line of
    /// an often used entry stays shared.
    #[inline]
    pub(super) fn touch(&self, now_mono_ms: u64) {
        let now_s = second(now_mono_ms);
        if self.asked_s.load(Relaxed) != now_s {
            self.asked_s.store(now_s, Relaxed);
        }
    }

    /// Approximate memory of the entry under a symbol of `symbol_bytes`, without the map's own
    /// table, whose size never changes.
    pub(super) fn bytes(&self, symbol_bytes: usize) -> usize {
        let json_bytes = match &self.state {
            State::Known(known) => known.json.len(),
            State::Unknown { .. } => 0,
        };
        ENTRY_BYTES + symbol_bytes + json_bytes
    }
}

/// The second of a monotonic time, counted from 1. 32 bits last for 136 years.
#[inline]
pub(super) fn second(mono_ms: u64) -> u32 {
    u32::try_from(mono_ms / 1_000 + 1).unwrap_or(u32::MAX)
}
