//! Candles in memory, by symbol, plain and compressed, and how many symbols may be read from the
//! store at once.
//!
//! Callers can invent symbols without end. So the map is bounded, symbols without candles are the
//! first to be evicted, and few reads are under way at a time: however many symbols a client
//! invents, few jobs of this route wait for the store's readers among those of users.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::base::{BoundedMap, Symbol};
use crate::http::Variants;
use crate::ops::Counter;
use crate::views::candles::CandlesDocument;

/// Every symbol of the largest universe, with about 60 KiB of candles each.
const SYMBOLS_MAX: usize = 512;

/// Time for which candles are served before they are read again. A new one comes once a day.
const LIFE_MS: u64 = 30_000;

/// The same of a symbol without candles: those that are being fetched are asked for each three
/// seconds.
const ABSENT_LIFE_MS: u64 = 2_000;

/// Most compressed documents. They have a limit of their own, because a client may request any
/// number of days. Each is some 40 KiB for the usual 250 days and 90 KiB for 600.
const COMPRESSED_MAX: usize = 512;

/// Most reads and compressions at once. Each takes about a millisecond of the store's or the lane's
/// time.
const READS_MAX: usize = 8;

/// The candles of symbols that clients asked for.
#[derive(Debug)]
pub(crate) struct KeptCandles {
    symbols: Mutex<BoundedMap<Symbol, Entry>>,
    /// By symbol and number of candles.
    compressed: Mutex<BoundedMap<(Symbol, usize), Compressed>>,
    /// Number of uses of compressed documents, for their order.
    uses: AtomicU64,
    counts: [LookUps; 2],
    reads: Arc<AtomicUsize>,
}

/// Metrics of the candles in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptStats {
    pub entries: usize,
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
}

#[derive(Debug, Default)]
struct LookUps {
    hits: Counter,
    misses: Counter,
}

impl LookUps {
    fn count(&self, is_hit: bool) {
        if is_hit { &self.hits } else { &self.misses }.increment();
    }

    fn stats<K: Eq + Hash, V>(&self, map: &Mutex<BoundedMap<K, V>>) -> KeptStats {
        let map = map.lock();
        let hits = self.hits.value();
        let misses = self.misses.value();
        KeptStats {
            entries: map.values().count(),
            hits,
            misses,
            evictions: map.evicted(),
        }
    }
}

/// A document in all codings.
#[derive(Debug)]
struct Compressed {
    variants: Arc<Variants>,
    /// Number of its last use.
    used: u64,
}

/// A symbol's candles; `None` if the store has none.
#[derive(Debug)]
struct Entry {
    document: Option<Arc<CandlesDocument>>,
    until_mono_ms: u64,
}

/// A symbol's candles in memory. The permit to read is `None` if too many reads are under way.
pub(super) enum Found {
    Fresh(Option<Arc<CandlesDocument>>),
    /// Read too long ago. One request at a time gets a permit to read again.
    Old(Option<Arc<CandlesDocument>>, Option<Permit>),
    Absent(Option<Permit>),
}

/// Permission for one read, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for KeptCandles {
    fn default() -> Self {
        let symbols = Mutex::new(BoundedMap::evicting_in_batches(SYMBOLS_MAX));
        let compressed = Mutex::new(BoundedMap::evicting_in_batches(COMPRESSED_MAX));
        let (uses, counts, reads) = Default::default();
        Self {
            symbols,
            compressed,
            uses,
            counts,
            reads,
        }
    }
}

impl KeptCandles {
    pub(super) fn find(&self, symbol: &Symbol, now_mono_ms: u64) -> Found {
        let [counts, _] = &self.counts;
        let mut symbols = self.symbols.lock();
        let Some(entry) = symbols.value_mut(symbol) else {
            counts.count(false);
            return Found::Absent(self.permit());
        };
        let document = entry.document.clone();
        let is_fresh = now_mono_ms < entry.until_mono_ms;
        counts.count(is_fresh);
        if is_fresh {
            return Found::Fresh(document);
        }
        let permit = self.permit();
        if permit.is_some() {
            // Other requests get these until this read has ended, or for the same time again.
            entry.until_mono_ms = now_mono_ms + LIFE_MS;
        }
        Found::Old(document, permit)
    }

    pub(super) fn keep(
        &self,
        symbol: &Symbol,
        document: Option<Arc<CandlesDocument>>,
        now_mono_ms: u64,
    ) {
        let life_ms = if document.is_some() {
            LIFE_MS
        } else {
            ABSENT_LIFE_MS
        };
        let entry = Entry {
            document,
            until_mono_ms: now_mono_ms + life_ms,
        };
        // Evicted first: symbols without candles, then those read longest ago.
        let worth = |entry: &Entry| Some((entry.document.is_some(), entry.until_mono_ms));
        self.symbols.lock().insert(symbol.clone(), entry, worth);
    }

    /// The newest `count` candles of `symbol` in all codings, if those in memory are named `tag`.
    pub(super) fn find_compressed(
        &self,
        symbol: &Symbol,
        count: usize,
        tag: &str,
    ) -> Option<Arc<Variants>> {
        let [_, counts] = &self.counts;
        let used = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut compressed = self.compressed.lock();
        let kept = compressed.value_mut(&(symbol.clone(), count));
        let found = kept.filter(|kept| kept.variants.tag() == tag).map(|kept| {
            kept.used = used;
            Arc::clone(&kept.variants)
        });
        counts.count(found.is_some());
        found
    }

    pub(super) fn keep_compressed(&self, symbol: &Symbol, count: usize, variants: &Arc<Variants>) {
        let used = self.uses.fetch_add(1, Ordering::Relaxed);
        let kept = Compressed {
            variants: Arc::clone(variants),
            used,
        };
        // Evicted first: those used longest ago.
        let worth = |kept: &Compressed| Some(kept.used);
        self.compressed
            .lock()
            .insert((symbol.clone(), count), kept, worth);
    }

    /// Statistics of the candles by symbol, and of the compressed documents.
    pub(crate) fn stats(&self) -> [KeptStats; 2] {
        let [plain, compressed] = &self.counts;
        [
            plain.stats(&self.symbols),
            compressed.stats(&self.compressed),
        ]
    }

    pub(super) fn permit(&self) -> Option<Permit> {
        let count = |reads: usize| (reads < READS_MAX).then_some(reads + 1);
        let counted = self
            .reads
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
        counted.ok().map(|_| Permit(Arc::clone(&self.reads)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Source;
    use crate::http::CachePolicy;
    use crate::views::candles::CandlesHead;
    use crate::views::states::DataState;
    use crate::views::values::{Mark, Simulated};

    fn symbol(number: usize) -> Symbol {
        Symbol::parse(&format!("NSE:S{number}")).unwrap()
    }

    fn document() -> Option<Arc<CandlesDocument>> {
        let head = CandlesHead {
            symbol: &symbol(0),
            state: DataState::Ready,
            detail: None,
            progress: None,
            source: Some(Source::Public),
            simulated: Simulated(false),
            suspect: Mark(false),
        };
        Some(Arc::new(CandlesDocument::of(&head, &[])))
    }

    #[test]
    fn few_reads_are_under_way_at_once() {
        let kept = KeptCandles::default();
        let permit = |number| match kept.find(&symbol(number), 0) {
            Found::Absent(permit) => permit,
            _ => panic!("nothing is kept"),
        };
        let mut permits: Vec<_> = (0..READS_MAX)
            .map(|number| permit(number).unwrap())
            .collect();
        assert!(permit(100).is_none());
        permits.pop();
        assert!(permit(100).is_some());
    }

    #[test]
    fn one_request_reads_again_what_is_old_and_others_get_the_old() {
        let kept = KeptCandles::default();
        kept.keep(&symbol(1), document(), 0);
        assert!(matches!(kept.find(&symbol(1), LIFE_MS - 1), Found::Fresh(Some(_))));
        let first = kept.find(&symbol(1), LIFE_MS);
        assert!(matches!(first, Found::Old(Some(_), Some(_))));
        assert!(matches!(kept.find(&symbol(1), LIFE_MS), Found::Fresh(Some(_))));
    }

    #[test]
    fn invented_symbols_evict_no_candles() {
        let kept = KeptCandles::default();
        kept.keep(&symbol(0), document(), 0);
        for number in 1..4 * SYMBOLS_MAX {
            kept.keep(&symbol(number), None, number as u64);
        }
        assert!(matches!(kept.find(&symbol(0), 1), Found::Fresh(Some(_))));
        assert!(kept.symbols.lock().len() <= SYMBOLS_MAX);
    }

    #[test]
    fn compressed_documents_are_found_by_their_tag_and_the_longest_unused_are_evicted() {
        let kept = KeptCandles::default();
        let variants = |tag: &str| Arc::new(Variants::tagged(b"{}", tag, &CachePolicy::JSON));
        for count in 0..=COMPRESSED_MAX {
            kept.keep_compressed(&symbol(0), count, &variants("a"));
            if count == COMPRESSED_MAX / 2 {
                assert!(kept.find_compressed(&symbol(0), 0, "a").is_some());
            }
        }
        assert!(kept.find_compressed(&symbol(0), 0, "a").is_some(), "it was used");
        assert!(kept.find_compressed(&symbol(0), 1, "a").is_none(), "it was not");
        assert!(kept.find_compressed(&symbol(0), 0, "b").is_none(), "the candles have changed");
        let [_, stats] = kept.stats();
        assert_eq!((stats.hits, stats.misses), (2, 2));
        assert!(stats.evictions > 0 && stats.entries <= COMPRESSED_MAX);
    }
}
