//! Finds a date's signals in the stored candles, publishes them, and judges earlier ones: jobs of
//! the lane `signals`, which block and compute.

use jiff::civil::Date;

use super::outcomes::{Closes, Expected, basis_of, walk};
use super::publication::{Publication, Shown, show};
use crate::base::{Candle, Symbol};
use crate::signals::Direction;
use crate::signals::backtest::{History, Universe};
use crate::store::{CandleHistory, PublishedSignal, SignalStore, StoreError};

/// Reads what the store has and shows what was published last.
pub fn load(
    store: &dyn SignalStore,
    publication: &Publication,
    expected: &Expected,
) -> Result<(Vec<CandleHistory>, Shown), StoreError> {
    let histories = store.candle_histories()?;
    let record = walk(store, &Closes::new(), expected)?;
    Ok((histories, show(store, publication, &record)?))
}

/// What a date's signals are made of.
pub struct RebuildOrder {
    pub date: Date,
    /// Those whose candles are trusted, with the simulator's mark.
    pub symbols: Vec<(Symbol, bool)>,
    pub expected: Expected,
    pub now_ms: i64,
    pub publication: Publication,
}

/// Finds the date's signals in the stored candles, publishes them, and judges earlier ones.
pub fn rebuild(store: &dyn SignalStore, order: &RebuildOrder) -> Result<Shown, StoreError> {
    let mut histories = Vec::with_capacity(order.symbols.len());
    for (symbol, _) in &order.symbols {
        let mut candles = store.candles(symbol)?;
        candles.retain(|candle| candle.date <= order.date);
        histories.push(History { symbol: symbol.as_str().to_owned(), candles });
    }
    let signals = found(&histories, order);
    let symbols = histories.iter().filter(|h| close_on(&h.candles, order.date).is_some()).count();
    let count = signals.len();
    if store.publish_signals(order.expected.epoch, order.date, order.now_ms, symbols, signals)? {
        tracing::info!(date = %order.date, signals = count, symbols, "signals published");
    }
    let candles: Closes<'_> =
        histories.iter().map(|h| (h.symbol.as_str(), h.candles.as_slice())).collect();
    let record = walk(store, &candles, &order.expected)?;
    show(store, &order.publication, &record)
}

fn close_on(candles: &[Candle], date: Date) -> Option<i64> {
    let at = candles.binary_search_by_key(&date, |candle| candle.date).ok()?;
    Some(candles[at].close_e4)
}

/// The date's signals in their order.
fn found(histories: &[History], order: &RebuildOrder) -> Vec<PublishedSignal> {
    let universe = Universe::examine(histories, |_| ());
    let Ok(date) = universe.dates().binary_search(&order.date) else { return Vec::new() };
    let of = |name: &str| {
        let at = histories.iter().position(|history| history.symbol == name)?;
        let (symbol, simulated) = &order.symbols[at];
        Some((symbol.clone(), *simulated, close_on(&histories[at].candles, order.date)?))
    };
    let signals = universe.signals_on(date).into_iter().zip(1..);
    signals
        .filter_map(|(signal, rank)| {
            let (symbol, simulated, close_e4) = of(signal.symbol)?;
            Some(PublishedSignal {
                symbol,
                pattern: signal.key.name().to_owned(),
                bullish: signal.key.direction() == Direction::Bullish,
                confidence: signal.weight.confidence,
                basis: basis_of(&signal.weight),
                close_e4,
                rank,
                simulated,
            })
        })
        .collect()
}
