//! Finds a date's signals in the stored candles, publishes them, and judges outcomes of earlier
//! ones. Jobs of the lane `signals`, which block and compute.

use jiff::civil::Date;

use crate::base::{Candle, Source, Symbol};
use crate::market::MarketCalendar;
use crate::signals::ListedSignal;
use crate::signals::backtest::{History, Universe as RebuildUniverse};
use crate::store::{PricedSignal, Store, StoreError};
use crate::warmers::quotes::known_closes::{DATES_KEPT, KnownCloses};
use crate::warmers::signals::done::{Done, Outcome};
use crate::warmers::signals::outcomes::{Closes, Expected, walk};
use crate::warmers::signals::publication::{Publication, Shown, show};

/// Reads the stored histories, and publishes the last published signals again.
pub(super) fn load(
    store: &Store,
    calendar: &MarketCalendar,
    publication: &Publication,
    expected: &Expected,
    known: &KnownCloses,
    chart_only_max: usize,
) -> Outcome {
    let histories = store.candle_histories()?;
    let symbols = histories.iter().map(|held| held.symbol.clone()).collect();
    for (symbol, candles) in store.newest_candles(symbols, DATES_KEPT + 1)? {
        known.note_candles(calendar, &symbol, &candles);
    }
    let record = walk(store, &Closes::new(), expected)?;
    let held = store.held_symbols(None, chart_only_max)?;
    Ok(Done::Loaded(histories, show(store, publication, &record)?, held))
}

/// Input of a rebuild.
pub(crate) struct RebuildOrder {
    /// The dates whose lists are to be published, ascending.
    pub dates: Vec<Date>,
    /// Symbols whose candles are trusted, each with its source and the mark of simulated data.
    pub symbols: Vec<(Symbol, Source, bool)>,
    pub expected: Expected,
    pub now_ms: i64,
    pub publication: Publication,
}

/// Finds the signals of the dates in the stored candles, publishes them, and judges outcomes of
/// earlier ones. A date's signals are what was known at its close, whatever came later.
pub(super) fn rebuild(store: &Store, order: &RebuildOrder) -> Result<Shown, StoreError> {
    let mut histories = Vec::with_capacity(order.symbols.len());
    for (symbol, ..) in &order.symbols {
        let mut candles = store.candles(symbol)?;
        candles.retain(|candle| order.dates.last().is_some_and(|last| candle.date <= *last));
        histories.push(History {
            symbol: symbol.as_str().to_owned(),
            candles,
        });
    }
    let universe = RebuildUniverse::examine(&histories);
    for date in order.dates.iter().copied() {
        let signals = found(&histories, &universe, order, date);
        let symbols = histories
            .iter()
            .filter(|h| close_on(&h.candles, date).is_some())
            .count();
        let count = signals.len();
        if store.publish_signals(order.expected.epoch, date, order.now_ms, symbols, signals)? {
            tracing::info!(%date, signals = count, symbols, "signals published");
        }
    }
    let candles: Closes<'_> = histories
        .iter()
        .map(|h| (h.symbol.as_str(), h.candles.as_slice()))
        .collect();
    let record = walk(store, &candles, &order.expected)?;
    show(store, &order.publication, &record)
}

fn close_on(candles: &[Candle], date: Date) -> Option<i64> {
    let at = candles
        .binary_search_by_key(&date, |candle| candle.date)
        .ok()?;
    Some(candles[at].close_e4)
}

/// The date's signals, by rank.
fn found(
    histories: &[History],
    universe: &RebuildUniverse,
    order: &RebuildOrder,
    on: Date,
) -> Vec<PricedSignal> {
    let Ok(date) = universe.dates().binary_search(&on) else {
        return Vec::new();
    };
    let of = |name: &str| {
        let at = histories
            .iter()
            .position(|history| history.symbol == name)?;
        let (symbol, _, simulated) = &order.symbols[at];
        Some((symbol.clone(), *simulated, close_on(&histories[at].candles, on)?))
    };
    let signals = universe.signals_on(date).into_iter().filter_map(|signal| {
        let (symbol, simulated, close_e4) = of(signal.symbol)?;
        let listed = ListedSignal::of(symbol, signal.key, &signal.weight);
        Some((
            ListedSignal {
                simulated,
                ..listed
            },
            close_e4,
        ))
    });
    signals.collect()
}
