//! `live=true`: prices holdings from the quote cache and asks the feeds for the symbols missing
//! from it.
//!
//! Runs on the portfolio lane and waits for no feed. A symbol that it asks for is fetched with one
//! of the feed's next batches, so a request some seconds later has its price.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::api::state::State;
use crate::base::{Clock, Holding, Quote, Symbol, ist};
use crate::cache::{L1, Peek, Pending};
use crate::market::{InstrumentList, Origin};

/// Symbols that one request may ask to be fetched or kept fresh: as many as a request for quotes
/// may, so that a large portfolio takes no more of the feeds' budget. The next request asks for
/// others.
const DEMAND_MAX: usize = 50;

/// A quote that replaced the broker's price.
pub(crate) struct Live {
    pub(crate) quote: Quote,
    pub(crate) stale: bool,
}

/// What a job on the lane needs of the state to price holdings.
pub(crate) struct Prices {
    l1: Arc<L1>,
    pending: Pending,
    instruments: Arc<InstrumentList>,
    clock: Clock,
}

impl Prices {
    /// As of this moment.
    pub(crate) fn of(state: &State) -> Self {
        Self {
            l1: Arc::clone(&state.l1),
            pending: state.pending.clone(),
            instruments: state.instruments.load_full(),
            clock: state.clock.clone(),
        }
    }

    /// Puts fresher prices into the rows that are `shown`; one entry a row, `None` where its own
    /// price stands.
    pub(crate) fn revalue(
        &self,
        holdings: &mut [Holding],
        shown: impl Fn(&Holding) -> bool,
    ) -> Vec<Option<Live>> {
        let now_mono_ms = self.clock.monotonic_ms();
        let mut demand = Demand::default();
        let live = holdings.iter_mut().map(|row| {
            let symbol = row.symbol().filter(|_| shown(row))?;
            let seen = self.l1.peek(symbol.as_str(), now_mono_ms);
            demand.note(symbol, &seen);
            let Peek::Known { quote, stale, .. } = seen else { return None };
            if row.last_price.is_some() && quote.as_of.as_millisecond() <= row.as_of_ms {
                return None;
            }
            let as_of_ms = quote.as_of.as_millisecond();
            // The broker's own previous close is one of the quote's date only.
            let own = row.close_price.filter(|_| date_of(row.as_of_ms) == date_of(as_of_ms));
            row.last_price = Some(quote.last_price);
            row.close_price = quote.previous_close.or(own);
            row.change_pct = None;
            row.as_of_ms = as_of_ms;
            Some(Live { quote, stale })
        });
        let live = live.collect();
        let (known, missing) = demand.first(DEMAND_MAX);
        known.iter().for_each(|symbol| self.l1.touch(symbol.as_str(), now_mono_ms));
        self.fetch(missing);
        live
    }

    fn fetch(&self, mut missing: Vec<Symbol>) {
        // Broker A's daily list is complete: what it lacks does not exist.
        if self.instruments.origin() == Origin::BrokerA {
            missing.retain(|symbol| self.instruments.contains(symbol.as_str()));
        }
        if let Err(busy) = self.pending.note_held(&missing) {
            tracing::debug!(%busy, "held symbols not noted");
        }
    }
}

/// The IST date of a time in Unix milliseconds.
fn date_of(ms: i64) -> Option<Date> {
    Timestamp::from_millisecond(ms).ok().map(|at| ist::zoned(at).date())
}

/// The symbols that a request would like to see fresher, each once.
#[derive(Default)]
struct Demand {
    seen: HashSet<Symbol>,
    /// With when its quote was asked for; `None` without one.
    symbols: Vec<(Option<Timestamp>, Symbol)>,
}

impl Demand {
    fn note(&mut self, symbol: Symbol, seen: &Peek) {
        let asked = match seen {
            Peek::Known { quote, .. } => Some(quote.asked),
            Peek::Unknown => return,
            Peek::Missing => None,
        };
        if self.seen.insert(symbol.clone()) {
            self.symbols.push((asked, symbol));
        }
    }

    /// At most `max` of them, those without a quote first, then those whose quote is oldest:
    /// first the ones with a quote, then the ones without.
    fn first(mut self, max: usize) -> (Vec<Symbol>, Vec<Symbol>) {
        self.symbols.sort_by_key(|(asked, _)| *asked);
        self.symbols.truncate(max);
        let (known, missing): (Vec<_>, Vec<_>) =
            self.symbols.into_iter().partition(|(asked, _)| asked.is_some());
        let bare = |symbols: Vec<(Option<Timestamp>, Symbol)>| {
            symbols.into_iter().map(|(_, symbol)| symbol).collect()
        };
        (bare(known), bare(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Source;
    use crate::cache::Vouched;

    fn known(symbol: &Symbol, asked: &str) -> Peek {
        let asked: Timestamp = asked.parse().unwrap();
        let quote = Quote {
            symbol: symbol.clone(),
            last_price: 1.into(),
            previous_close: None,
            as_of: asked,
            timed: true,
            asked,
            delay_s: None,
            source: Source::Public,
            simulated: false,
        };
        let vouched = Vouched { mono_ms: 0, calls: 1 };
        Peek::Known { quote, stale: false, vouched, fresh_until_mono_ms: 0 }
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
