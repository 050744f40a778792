//! The symbols for which a view of many shares wants fresher prices: a portfolio's, and those of
//! the universe.
//!
//! A view waits for no feed. A symbol that it wants is fetched with one of the feed's next batches,
//! so the same view some seconds later has its price. Any thread; never blocks.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::base::Symbol;
use crate::cache::{L1, Peek, Pending};

/// Symbols that one view may have fetched or kept fresh: as many as a request for quotes may, so
/// that a large portfolio takes no more of the feeds' budget. The next view asks for others.
const DEMAND_MAX: usize = 50;

/// The symbols for which a view wants fresher prices, each once.
#[derive(Default)]
pub(crate) struct Demand {
    seen: HashSet<Symbol>,
    /// Each with the time at which its quote was fetched; `None` without a quote.
    symbols: Vec<(Option<Timestamp>, Symbol)>,
}

impl Demand {
    pub(crate) fn note(&mut self, symbol: Symbol, seen: &Peek) {
        let asked = match seen {
            Peek::Known { quote, .. } => Some(quote.asked),
            Peek::Unknown => return,
            Peek::Missing => None,
        };
        if self.seen.insert(symbol.clone()) {
            self.symbols.push((asked, symbol));
        }
    }

    /// Keeps quotes fresh, and has missing ones fetched, whether or not a list has them.
    pub(crate) fn want(self, l1: &L1, pending: &Pending, now_mono_ms: u64) {
        let (known, missing) = self.first(DEMAND_MAX);
        known
            .iter()
            .for_each(|symbol| l1.touch(symbol.as_str(), now_mono_ms));
        if let Err(busy) = pending.note_held(&missing) {
            tracing::debug!(%busy, "held symbols not queued for fresh quotes");
        }
    }

    /// Selects at most `max` symbols: those without a quote first, then those with the oldest
    /// quotes. Returns the selected ones with a quote, then those without.
    fn first(mut self, max: usize) -> (Vec<Symbol>, Vec<Symbol>) {
        self.symbols.sort_by_key(|(asked, _)| *asked);
        self.symbols.truncate(max);
        let (known, missing): (Vec<_>, Vec<_>) = self
            .symbols
            .into_iter()
            .partition(|(asked, _)| asked.is_some());
        let bare = |symbols: Vec<(Option<Timestamp>, Symbol)>| {
            symbols.into_iter().map(|(_, symbol)| symbol).collect()
        };
        (bare(known), bare(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Quote, Source, testing};
    use crate::cache::Vouched;

    fn known(symbol: &Symbol, asked: &str) -> Peek {
        let asked: Timestamp = asked.parse().unwrap();
        let quote = Quote {
            source: Source::Public,
            ..testing::quote(symbol.as_str(), "1", asked)
        };
        let vouched = Vouched {
            mono_ms: 0,
            calls: 1,
        };
        Peek::Known {
            quote,
            stale: false,
            vouched,
            fresh_until_mono_ms: 0,
        }
    }

    #[test]
    fn a_large_portfolio_asks_for_a_bounded_part_the_oldest_first() {
        let symbol = |number: usize| Symbol::parse(&format!("NSE:S{number:03}")).unwrap();
        let mut demand = Demand::default();
        for number in 0..500 {
            let symbol = symbol(number);
            let seen = match number {
                0..10 => known(&symbol, "2026-11-20T05:30:00Z"),
                10..490 => known(&symbol, &format!("2026-11-20T05:{:02}:00Z", number % 30)),
                490..495 => Peek::Missing,
                _ => Peek::Unknown,
            };
            demand.note(symbol.clone(), &seen);
            demand.note(symbol, &seen);
        }
        let (known, missing) = demand.first(DEMAND_MAX);
        assert_eq!(missing, (490..495).map(symbol).collect::<Vec<_>>());
        assert_eq!(known.len(), DEMAND_MAX - missing.len());
        assert_eq!(known[..2], [symbol(30), symbol(60)], "the oldest are those of each thirty");
        assert!(!known.contains(&symbol(0)));
    }
}
