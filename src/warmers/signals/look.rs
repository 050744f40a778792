//! Looks for signals in running candles: jobs of the lane `signals`. Nothing here stores a candle;
//! what is found goes on record before it is shown.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::civil::Date;

use super::outcomes::{Closes, Expected, basis_of, walk};
use super::publication::{Publication, Shown, show_record};
use crate::base::{Candle, Source, Symbol};
use crate::brokers::DailyCandles;
use crate::signals::backtest::{History, Universe};
use crate::signals::confidence::Weight;
use crate::signals::forming::{newest, running, tail};
use crate::signals::list::by_rank;
use crate::signals::patterns::{Detector, Key};
use crate::signals::{Direction, ListedSignal, Look};
use crate::store::{ProvisionalSignal, SignalStore, StoreError};

/// What looks at a session need of those before it, made once.
pub struct Prepared {
    /// The session before.
    pub settled: Date,
    /// By the symbols' places; `None` where the candles are not trusted or end earlier.
    pub tails: Vec<Option<Tail>>,
    /// Of every key, as known while the session runs.
    pub weights: HashMap<Key, Weight>,
}

/// The end of a symbol's stored candles.
pub struct Tail {
    pub symbol: Symbol,
    pub source: Source,
    pub simulated: bool,
    pub candles: Vec<Candle>,
}

/// What to prepare.
pub struct PrepareOrder {
    /// The session before the one under way.
    pub settled: Date,
    /// By their places; `None` where the candles are not trusted.
    pub symbols: Vec<Option<(Symbol, Source, bool)>>,
}

/// Reads all candles, weighs every key, and keeps what a look needs.
pub fn prepare(store: &dyn SignalStore, order: PrepareOrder) -> Result<Prepared, StoreError> {
    let PrepareOrder { settled, symbols } = order;
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
    let universe = Universe::examine(&histories, |_| ());
    let next = universe.dates().len();
    let weights = Key::all().map(|key| (key, universe.weigh(key, next))).collect();
    Ok(Prepared { settled, tails, weights })
}

/// What to look at.
pub struct LookOrder {
    pub look: Look,
    pub prepared: Arc<Prepared>,
    /// What each symbol's source said last, by its place.
    pub said: Vec<(usize, Arc<DailyCandles>)>,
    pub expected: Expected,
    pub until_mono_ms: u64,
    pub now_ms: i64,
    pub publication: Publication,
}

/// What could not be put on record.
pub struct Refused {
    pub shown: Shown,
    pub error: StoreError,
}

/// Finds the patterns of running candles, puts them on record and then among the others.
pub fn look(store: &dyn SignalStore, order: &LookOrder) -> Result<Shown, Refused> {
    let LookOrder { look, until_mono_ms, publication, .. } = order;
    let Some(complete) = publication.complete() else { return Ok(Shown::nothing()) };
    let (listed, found) = found(order).into_iter().unzip();
    if let Err(error) = put_on_record(store, order, found) {
        let shown = publication.put(complete, None);
        return Err(Refused { shown, error });
    }
    let list = complete.with_provisional(*look, listed);
    Ok(publication.put(list, Some(*until_mono_ms)))
}

/// What another node found in running candles.
pub struct Adopted {
    pub look: Look,
    pub signals: Vec<ListedSignal>,
    pub until_mono_ms: u64,
}

/// Shows what another node found and put on record.
pub fn adopt(
    store: &dyn SignalStore,
    adopted: Adopted,
    expected: &Expected,
    publication: &Publication,
) -> Result<Shown, StoreError> {
    let Adopted { look, signals, until_mono_ms } = adopted;
    let Some(complete) = publication.complete() else { return Ok(Shown::nothing()) };
    let is_shown = |found: &ListedSignal| {
        let list = publication.list.load();
        list.as_ref().is_some_and(|list| {
            list.signals.iter().any(|s| s.is_of_candle(found) && s.pattern == found.pattern)
        })
    };
    // What is new among them has come on record.
    if !signals.iter().all(is_shown) {
        show_record(store, publication, &walk(store, &Closes::new(), expected)?)?;
    }
    let list = complete.with_provisional(look, signals);
    Ok(publication.put(list, Some(until_mono_ms)))
}

/// Shows finished candles' signals alone again; needs no store.
pub fn withdraw(publication: &Publication) -> Shown {
    let shown = publication.complete().map(|complete| publication.put(complete, None));
    shown.unwrap_or_else(Shown::nothing)
}

fn put_on_record(
    store: &dyn SignalStore,
    order: &LookOrder,
    found: Vec<ProvisionalSignal>,
) -> Result<(), StoreError> {
    let LookOrder { look, now_ms, publication, expected, .. } = order;
    if found.is_empty() || store.keep_provisional(expected.epoch, look.date, *now_ms, found)? == 0 {
        return Ok(());
    }
    show_record(store, publication, &walk(store, &Closes::new(), expected)?).map(drop)
}

/// In their order, for the list and for the ledger.
fn found(order: &LookOrder) -> Vec<(ListedSignal, ProvisionalSignal)> {
    let LookOrder { look, prepared, said, expected, .. } = order;
    let detector = Detector::default();
    let mut found = Vec::new();
    for (at, said) in said {
        let Some(Some(tail)) = prepared.tails.get(*at) else { continue };
        if said.simulated != tail.simulated {
            continue;
        }
        let trades_on = |date: Date| expected.calendar.is_trading_date(date);
        let candle = match running(&tail.candles, &said.candles, look.date, &trades_on) {
            Ok(candle) => candle,
            Err(fault) => {
                tracing::debug!(symbol = %tail.symbol, %fault, "running candle left out");
                continue;
            }
        };
        let keys = newest(&detector, &tail.candles, &candle);
        found.extend(keys.into_iter().filter_map(|key| {
            let weight = prepared.weights.get(&key)?;
            Some(signal(tail, key, *weight, candle.close_e4))
        }));
    }
    found.sort_by(|one, other| by_rank(&one.0, &other.0));
    found
}

fn signal(
    tail: &Tail,
    key: Key,
    weight: Weight,
    price_e4: i64,
) -> (ListedSignal, ProvisionalSignal) {
    let (confidence, basis) = (weight.confidence, basis_of(&weight));
    let listed = ListedSignal {
        symbol: tail.symbol.clone(),
        pattern: key.name().to_owned(),
        direction: key.direction(),
        confidence,
        prior_dates: basis.prior_dates,
        samples: basis.dates,
        date_hit_rate: basis.date_hit_rate,
        past: basis.signals_and_hits,
        base_rate: basis.base_rate,
        simulated: tail.simulated,
        provisional: true,
    };
    let kept = ProvisionalSignal {
        symbol: tail.symbol.clone(),
        pattern: key.name().to_owned(),
        bullish: key.direction() == Direction::Bullish,
        confidence,
        basis,
        price_e4,
        simulated: tail.simulated,
    };
    (listed, kept)
}
