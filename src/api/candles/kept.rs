//! Candles in memory, by symbol, and how many symbols may be read from the store at once.
//!
//! Callers can invent symbols without end. So the map is bounded, symbols without candles are the
//! first to be evicted, and few reads are under way at a time: however many symbols a client
//! invents, few jobs of this route wait for the store's readers among those of users.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::base::{BoundedMap, Symbol};
use crate::views::candles::CandlesDocument;

/// Every symbol of the largest universe, with about 60 KiB of candles each.
const SYMBOLS_MAX: usize = 512;

/// How long candles are served before they are read again. A new one comes once a day.
const LIFE_MS: u64 = 30_000;

/// Reads under way at once. Each is about a millisecond of the store's and of the lane's time.
const READS_MAX: usize = 8;

/// The candles of symbols that clients asked for.
#[derive(Debug)]
pub struct KeptCandles {
    symbols: Mutex<BoundedMap<Symbol, Entry>>,
    reads: Arc<AtomicUsize>,
}

/// A symbol's candles; `None` if the store has none.
#[derive(Debug)]
struct Entry {
    document: Option<Arc<CandlesDocument>>,
    until_mono_ms: u64,
}

/// What memory has of a symbol. The permit to read it is `None` if too many reads are under way.
pub(super) enum Found {
    Fresh(Option<Arc<CandlesDocument>>),
    /// Read too long ago. One request at a time gets a permit.
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
        Self { symbols, reads: Arc::default() }
    }
}

impl KeptCandles {
    pub(super) fn find(&self, symbol: &Symbol, now_mono_ms: u64) -> Found {
        let mut symbols = self.symbols.lock();
        let Some(entry) = symbols.value_mut(symbol) else { return Found::Absent(self.permit()) };
        let document = entry.document.clone();
        if now_mono_ms < entry.until_mono_ms {
            return Found::Fresh(document);
        }
        let permit = self.permit();
        if permit.is_some() {
            // Others are answered with these until this read has ended, or for as long again.
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
        let entry = Entry { document, until_mono_ms: now_mono_ms + LIFE_MS };
        // Worth least: symbols without candles, then those read longest ago.
        let worth = |entry: &Entry| Some((entry.document.is_some(), entry.until_mono_ms));
        self.symbols.lock().insert(symbol.clone(), entry, worth);
    }

    fn permit(&self) -> Option<Permit> {
        let count = |reads: usize| (reads < READS_MAX).then_some(reads + 1);
        let counted = self.reads.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
        counted.ok().map(|_| Permit(Arc::clone(&self.reads)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Source;
    use crate::views::candles::CandlesHead;
    use crate::views::values::{Mark, Simulated};

    fn symbol(number: usize) -> Symbol {
        Symbol::parse(&format!("NSE:S{number}")).unwrap()
    }

    fn document() -> Option<Arc<CandlesDocument>> {
        let head = CandlesHead {
            symbol: &symbol(0),
            source: Source::Public,
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
        let mut permits: Vec<_> = (0..READS_MAX).map(|number| permit(number).unwrap()).collect();
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
}
