//! Eviction from L1: keeps the bound on entries and chooses what to evict. Called by writers only,
//! under their lock.

use std::sync::atomic::Ordering::Relaxed;

use papaya::LocalGuard;

use super::entry::{State, second};
use super::{L1, Writer};
use crate::base::Symbol;

/// Entries sampled to choose one to evict. The one of them that was asked for longest ago is, on
/// average, among the oldest twentieth. A sample costs the writer about a microsecond.
const EVICTION_SAMPLE: usize = 16;

impl L1 {
    /// Adds `symbol` to the keys unless it is pinned, and evicts entries while the bound is
    /// reached.
    pub(super) fn make_room(
        &self,
        writer: &mut Writer,
        guard: &LocalGuard<'_>,
        symbol: &Symbol,
        now_mono_ms: u64,
    ) {
        while !writer.keys.is_empty() && writer.keys.len() + writer.pinned >= self.entries_max {
            let at = self.victim(writer, guard, now_mono_ms);
            let evicted = writer.keys.swap_remove(at);
            if let Some(entry) = self.map.remove(&evicted, guard) {
                self.bytes.fetch_sub(entry.bytes(evicted.as_str().len()), Relaxed);
                writer.negatives -= usize::from(matches!(entry.state, State::Unknown { .. }));
            }
            self.evictions.fetch_add(1, Relaxed);
        }
        match self.pinned.contains(symbol) {
            true => writer.pinned += 1,
            false => writer.keys.push(symbol.clone()),
        }
    }

    /// Index in `keys` of the entry to evict, chosen from a random sample. An expired negative
    /// entry goes first. While negative entries fill more than half of the cache, any of them goes
    /// next, so that invented symbols cannot drive out quotes. Otherwise the one that was asked for
    /// or received longest ago goes.
    fn victim(&self, writer: &mut Writer, guard: &LocalGuard<'_>, now_mono_ms: u64) -> usize {
        let crowded = writer.negatives > self.entries_max / 2;
        let mut least = (u8::MAX, u32::MAX);
        let mut least_at = 0;
        for _ in 0..EVICTION_SAMPLE {
            let at = writer.random.usize(..writer.keys.len());
            let Some(entry) = self.map.get(&writer.keys[at], guard) else { return at };
            let asked_s = entry.asked_s.load(Relaxed);
            let worth = match &entry.state {
                State::Unknown { until_mono_ms } if *until_mono_ms <= now_mono_ms => (0, asked_s),
                State::Unknown { .. } if crowded => (1, asked_s),
                State::Unknown { .. } => (2, asked_s),
                State::Known(known) => {
                    let vouched_ms = u64::try_from(known.vouched().mono_ms).unwrap_or_default();
                    (2, asked_s.max(second(vouched_ms)))
                }
            };
            if worth < least {
                (least, least_at) = (worth, at);
            }
        }
        least_at
    }
}
