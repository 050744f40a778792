//! Searches running candles for signals: jobs of the lane `signals`. No candle is stored here.
//! Signals are recorded in the store before they are published.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::civil::Date;

use crate::base::{Candle, Source, Symbol};
use crate::brokers::DailyCandles;
use crate::signals::backtest::{History, Universe};
use crate::signals::confidence::Weight;
use crate::signals::history::{newest, running, tail};
use crate::signals::list::by_rank;
use crate::signals::patterns::{Detector, Key};
use crate::signals::{ListedSignal, ScanTime};
use crate::store::{PricedSignal, Store, StoreError};
use crate::warmers::signals::outcomes::{Closes, Expected, walk};
use crate::warmers::signals::publication::{Publication, Shown, show_record};

/// The data of earlier sessions that the searches of a session need, prepared once.
pub(crate) struct Prepared {
    /// The previous session.
    pub settled: Date,
    /// By the symbols' positions; `None` if the candles are not trusted or end earlier.
    pub tails: Vec<Option<Tail>>,
    /// The weight of every key while the session runs.
    pub weights: HashMap<Key, Weight>,
}

/// The end of a symbol's stored candles.
pub(crate) struct Tail {
    pub symbol: Symbol,
    pub source: Source,
    pub simulated: bool,
    pub candles: Vec<Candle>,
}

/// Reads all candles, weighs every key, and keeps the data that a search needs. `settled`: the
/// session before the current one. `symbols`: by position, `None` if the candles are not trusted.
pub(crate) fn prepare(
    store: &Store,
    settled: Date,
    symbols: Vec<Option<(Symbol, Source, bool)>>,
) -> Result<Prepared, StoreError> {
    let mut histories = Vec::with_capacity(symbols.len());
    let mut tails = Vec::with_capacity(symbols.len());
    for wanted in symbols {
        let Some((symbol, source, simulated)) = wanted else {
            tails.push(None);
            continue;
        };
        let candles = store.candles(&symbol)?;
        let reaches = candles.last().is_some_and(|last| last.date == settled);
        let candles_kept = tail(&candles).to_vec();
        histories.push(History { symbol: symbol.as_str().to_owned(), candles });
        tails.push(reaches.then_some(Tail { symbol, source, simulated, candles: candles_kept }));
    }
    let universe = Universe::examine(&histories);
    let next = universe.dates().len();
    let weights = Key::all().map(|key| (key, universe.weigh(key, next))).collect();
    Ok(Prepared { settled, tails, weights })
}

/// Input of a search.
pub(crate) struct LookOrder {
    pub look: ScanTime,
    pub prepared: Arc<Prepared>,
    /// The last answer of each symbol's source, by position.
    pub answers: Vec<(usize, Arc<DailyCandles>)>,
    pub expected: Expected,
    pub until_mono_ms: u64,
    pub now_ms: i64,
    pub publication: Publication,
}

/// Finds the patterns of running candles, records them in the store, and publishes them with the
/// complete signals. An error: they could not be recorded, so they are not published.
pub(crate) fn look(store: &Store, order: &LookOrder) -> (Shown, Option<StoreError>) {
    let LookOrder { look, until_mono_ms, publication, .. } = order;
    let Some(complete) = publication.complete() else { return (Shown::nothing(), None) };
    let found = found(order);
    let listed = found.iter().map(|(signal, _)| signal.clone()).collect();
    if let Err(error) = put_on_record(store, order, found) {
        return (publication.put(complete, None), Some(error));
    }
    let list = complete.with_provisional(*look, listed);
    (publication.put(list, Some(*until_mono_ms)), None)
}

/// Publishes signals that another node has found and recorded.
pub(crate) fn adopt(
    store: &Store,
    (look, signals): (ScanTime, Vec<ListedSignal>),
    until_mono_ms: u64,
    expected: &Expected,
    publication: &Publication,
) -> Result<Shown, StoreError> {
    let Some(complete) = publication.complete() else { return Ok(Shown::nothing()) };
    let is_shown = |found: &ListedSignal| {
        let list = publication.list.load();
        list.as_ref().is_some_and(|list| {
            list.signals.iter().any(|s| s.is_of_candle(found) && s.pattern == found.pattern)
        })
    };
    // The record has entries for the new ones.
    if !signals.iter().all(is_shown) {
        show_record(store, publication, &walk(store, &Closes::new(), expected)?)?;
    }
    let list = complete.with_provisional(look, signals);
    Ok(publication.put(list, Some(until_mono_ms)))
}

/// Publishes the signals of finished candles alone. Needs no store.
pub(crate) fn withdraw(publication: &Publication) -> Shown {
    let shown = publication.complete().map(|complete| publication.put(complete, None));
    shown.unwrap_or_else(Shown::nothing)
}

fn put_on_record(
    store: &Store,
    order: &LookOrder,
    found: Vec<PricedSignal>,
) -> Result<(), StoreError> {
    let LookOrder { look, now_ms, publication, expected, .. } = order;
    if found.is_empty() || store.keep_provisional(expected.epoch, look.date, *now_ms, found)? == 0 {
        return Ok(());
    }
    show_record(store, publication, &walk(store, &Closes::new(), expected)?).map(drop)
}

/// The found signals by rank, with the last prices of their candles.
fn found(order: &LookOrder) -> Vec<PricedSignal> {
    let LookOrder { look, prepared, answers, expected, .. } = order;
    let detector = Detector::default();
    let mut found = Vec::new();
    for (at, answer) in answers {
        let Some(Some(tail)) = prepared.tails.get(*at) else { continue };
        if answer.simulated != tail.simulated {
            continue;
        }
        let trades_on = |date: Date| expected.calendar.is_trading_date(date);
        let candle = match running(&tail.candles, &answer.candles, look.date, &trades_on) {
            Ok(candle) => candle,
            Err(fault) => {
                tracing::debug!(symbol = %tail.symbol, %fault, "running candle left out");
                continue;
            }
        };
        let keys = newest(&detector, &tail.candles, &candle);
        found.extend(keys.into_iter().filter_map(|key| {
            let listed = ListedSignal::of(tail.symbol.clone(), key, prepared.weights.get(&key)?);
            let simulated = tail.simulated;
            Some((ListedSignal { simulated, provisional: true, ..listed }, candle.close_e4))
        }));
    }
    found.sort_by(|one, other| by_rank(&one.0, &other.0));
    found
}
