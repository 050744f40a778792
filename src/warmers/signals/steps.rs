//! What the warmer of signals does with the store, and the daily rebuild: jobs of the lane
//! `signals`, which block and compute. Nothing of them outlives the job but what it returns.

use jiff::civil::Date;

use super::outcomes::{Closes, Expected, walk};
use super::provisional::jobs::{Prepared, Refused};
use super::publication::{Publication, Shown, show};
use super::sessions::window_from;
use crate::base::{Candle, Source, Symbol};
use crate::brokers::DailyCandles;
use crate::market::MarketCalendar;
use crate::signals::Direction;
use crate::signals::backtest::{History, Universe};
use crate::signals::confidence::{PRIOR_DATES, Weight};
use crate::signals::history::{Conflict, HOLES_MAX, Suspected, Window, check, merge};
use crate::store::{
    Basis, CandleHistory, NewHistory, PublishedSignal, SignalStore, SplitSuspicion, StoreError,
};

/// How a job ended well.
pub enum Done {
    Loaded(Vec<CandleHistory>, Shown),
    Taken(Taken),
    Rebuilt(Shown),
    /// Running candles can be looked at.
    Prepared(Prepared),
    /// With what was found in them.
    Found(Shown),
    /// What was found could not be put on record, so it is not shown.
    Refused(Refused),
    /// Nothing provisional is shown any more.
    Withdrawn(Shown),
}

/// Candles that a source sent, to be judged and stored.
pub struct Arrived {
    pub at: usize,
    pub symbol: Symbol,
    pub source: Source,
    pub read: DailyCandles,
    /// All of the history was asked for.
    pub whole: bool,
    /// Holes are a reason to ask again.
    pub strict: bool,
    /// The days that were asked for.
    pub from: Date,
    pub to: Date,
    pub held: Option<CandleHistory>,
}

/// What became of them.
pub struct Taken {
    pub at: usize,
    pub source: Source,
    pub verdict: Verdict,
}

#[derive(Debug)]
pub enum Verdict {
    /// The store has this now. `gap`: an earlier session is missing before newer ones.
    Stored { held: CandleHistory, gap: bool },
    /// Refused, and nothing stored: too much is missing or wrong.
    Patchy { missing: usize, faults: usize },
}

/// Reads what the store has and shows what was published last.
pub fn load(
    store: &dyn SignalStore,
    shelf: &Publication,
    expected: &Expected,
) -> Result<Done, StoreError> {
    let histories = store.candle_histories()?;
    let record = walk(store, &Closes::new(), expected)?;
    Ok(Done::Loaded(histories, show(store, shelf, &record)?))
}

/// Judges what arrived and stores what can be believed.
pub fn take_in(
    store: &dyn SignalStore,
    calendar: &MarketCalendar,
    arrived: Arrived,
) -> Result<Done, StoreError> {
    let (at, source) = (arrived.at, arrived.source);
    let verdict = match &arrived.held {
        Some(held) if !arrived.whole => append(store, calendar, &arrived, held.clone())?,
        _ => replace(store, calendar, arrived)?,
    };
    Ok(Done::Taken(Taken { at, source, verdict }))
}

fn replace(
    store: &dyn SignalStore,
    calendar: &MarketCalendar,
    arrived: Arrived,
) -> Result<Verdict, StoreError> {
    let Arrived { symbol, source, read, from, to, .. } = arrived;
    let window = Window { from, to };
    let checked = check(&read.candles, window, &|date| calendar.is_trading_date(date));
    // The date's own candle may come later.
    let holes = checked.missing.iter().filter(|date| **date != to).count();
    let untidy = arrived.strict && (holes > 0 || !checked.faults.is_empty());
    if checked.candles.is_empty() || holes > HOLES_MAX || untidy {
        return Ok(Verdict::Patchy { missing: holes, faults: checked.faults.len() });
    }
    let before = arrived.held.map(|held| held.suspicions).unwrap_or_default();
    let suspicions = suspicions(&checked.suspected, &before, to);
    let last = checked.candles.last().map(|candle| candle.date);
    let simulated = read.simulated;
    let held = CandleHistory {
        symbol: symbol.clone(),
        source,
        simulated,
        refetch: false,
        last,
        suspicions: suspicions.clone(),
    };
    let candles = checked.candles;
    store.replace_candles(NewHistory { symbol, source, simulated, candles, suspicions })?;
    Ok(Verdict::Stored { held, gap: false })
}

/// A day that was suspected before and is so again after everything was fetched anew, on a later
/// date, was a real move.
fn suspicions(suspected: &[Suspected], before: &[SplitSuspicion], to: Date) -> Vec<SplitSuspicion> {
    let dates = suspected.iter().map(|suspected| suspected.date);
    dates
        .map(|date| {
            let known = before.iter().find(|suspicion| suspicion.date == date);
            let confirmed = known.is_some_and(|known| known.confirmed || date < to);
            SplitSuspicion { date, confirmed }
        })
        .collect()
}

fn append(
    store: &dyn SignalStore,
    calendar: &MarketCalendar,
    arrived: &Arrived,
    mut held: CandleHistory,
) -> Result<Verdict, StoreError> {
    let trades_on = |date: Date| calendar.is_trading_date(date);
    let window = Window { from: arrived.from, to: arrived.to };
    let checked = check(&arrived.read.candles, window, &trades_on);
    let stored = store.candles(&arrived.symbol)?;
    let merged = match merge(&stored, &checked.candles, &trades_on) {
        Ok(merged) if arrived.read.simulated == held.simulated => merged,
        conflict => {
            let suspected = match &conflict {
                Err(Conflict::Suspected(suspected)) => Some(suspected.date),
                _ => None,
            };
            let why = conflict.err().map_or("another kind of source".into(), |c| c.to_string());
            tracing::warn!(symbol = %arrived.symbol, why, "fetching all of its candles again");
            store.want_refetch(&arrived.symbol, suspected)?;
            let new = suspected.map(|date| SplitSuspicion { date, confirmed: false });
            held.suspicions.extend(new);
            held.refetch = true;
            return Ok(Verdict::Stored { held, gap: false });
        }
    };
    let gap = merged.waits_for.is_some();
    if let Some(last) = merged.append.last() {
        held.last = Some(last.date);
        let keep_from = window_from(calendar, last.date);
        store.append_candles(&arrived.symbol, merged.append, keep_from)?;
    }
    Ok(Verdict::Stored { held, gap })
}

/// What a date's signals are made of.
pub struct RebuildOrder {
    pub date: Date,
    /// Those whose candles are trusted, with the simulator's mark.
    pub symbols: Vec<(Symbol, bool)>,
    pub expected: Expected,
    pub now_ms: i64,
    pub shelf: Publication,
}

/// Finds the date's signals in the stored candles, publishes them, and judges earlier ones.
pub fn rebuild(store: &dyn SignalStore, order: &RebuildOrder) -> Result<Done, StoreError> {
    let mut histories = Vec::with_capacity(order.symbols.len());
    for (symbol, _) in &order.symbols {
        let mut candles = store.candles(symbol)?;
        candles.retain(|candle| candle.date <= order.date);
        histories.push(History { symbol: symbol.as_str().to_owned(), candles });
    }
    let signals = found(&histories, order);
    let symbols = histories.iter().filter(|h| close_on(&h.candles, order.date).is_some()).count();
    let count = signals.len();
    if store.publish_signals(order.date, order.now_ms, symbols, signals)? {
        tracing::info!(date = %order.date, signals = count, symbols, "signals published");
    }
    let candles: Closes<'_> =
        histories.iter().map(|h| (h.symbol.as_str(), h.candles.as_slice())).collect();
    let record = walk(store, &candles, &order.expected)?;
    Ok(Done::Rebuilt(show(store, &order.shelf, &record)?))
}

/// What of a weight goes on record.
pub fn basis_of(weight: &Weight) -> Basis {
    Basis {
        prior_dates: PRIOR_DATES,
        dates: weight.dates,
        date_hit_rate: weight.date_hit_rate,
        signals_and_hits: Some((weight.signals, weight.hits)),
        base_rate: weight.base_rate,
    }
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
