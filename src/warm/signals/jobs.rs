//! What the warmer of signals does with the store, and the daily rebuild: jobs of the lane
//! `signals`, which block and compute. Nothing of them outlives the job but what it returns.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::civil::Date;

use super::due::window_from;
use crate::base::{Candle, Source, Symbol};
use crate::brokers::DailyCandles;
use crate::market::{MarketCalendar, PublishedJson};
use crate::signals::evaluate::{History, Judged, Universe};
use crate::signals::history::{Conflict, Suspected, Window, check, merge};
use crate::signals::patterns::Key;
use crate::signals::{Direction, HORIZON_SESSIONS, ListedSignal, Reliability, SignalList};
use crate::store::{
    CandleHistory, LedgerEntry, NewHistory, PublishedSignal, SignalOutcome, SignalStore,
    SplitSuspicion, StoreError,
};

/// Sessions that a whole history may lack: the public provider leaves out about one in 600.
const HOLES_MAX: usize = 6;
/// Lines of the ledger read at a time.
const LEDGER_PAGE: usize = 2_000;

/// How a job ended well.
pub enum Done {
    Loaded(Vec<CandleHistory>, Shown),
    Taken(Taken),
    Rebuilt(Shown),
}

/// What clients see now.
pub struct Shown {
    /// `None` before the first published date.
    pub as_of: Option<Date>,
    /// The snapshot's array.
    pub top: Arc<str>,
    pub signals: usize,
}

/// Where finished documents go.
#[derive(Clone)]
pub struct Shelf {
    pub signals: Arc<PublishedJson>,
    pub record: Arc<PublishedJson>,
    pub list: Arc<ArcSwapOption<SignalList>>,
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
pub fn load(store: &dyn SignalStore, shelf: &Shelf, now_ms: i64) -> Result<Done, StoreError> {
    let histories = store.candle_histories()?;
    let record = walk(store, &HashMap::new())?;
    Ok(Done::Loaded(histories, show(store, shelf, &record, now_ms)?))
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
    pub now_ms: i64,
    pub shelf: Shelf,
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
    let candles: HashMap<&str, &[Candle]> =
        histories.iter().map(|h| (h.symbol.as_str(), h.candles.as_slice())).collect();
    let record = walk(store, &candles)?;
    Ok(Done::Rebuilt(show(store, &order.shelf, &record, order.now_ms)?))
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
                dates: signal.weight.dates,
                hit_rate: signal.weight.hit_rate,
                base_rate: signal.weight.base_rate,
                close_e4,
                rank,
                simulated,
            })
        })
        .collect()
}

/// Reads the whole ledger page by page, writes the outcomes that `candles` tell now, and counts.
fn walk(
    store: &dyn SignalStore,
    candles: &HashMap<&str, &[Candle]>,
) -> Result<Reliability, StoreError> {
    let mut record = Reliability::default();
    let mut after = 0;
    loop {
        let page = store.ledger(after, LEDGER_PAGE)?;
        let mut outcomes = Vec::new();
        for mut entry in page.iter().cloned() {
            if entry.outcome.is_none() {
                let of_symbol = candles.get(entry.signal.symbol.as_str());
                entry.outcome = of_symbol.and_then(|candles| outcome(&entry, candles));
                outcomes.extend(entry.outcome.map(|outcome| (entry.id, outcome)));
            }
            record.count(entry.on, entry.signal.simulated, judged(&entry).as_ref());
        }
        if !outcomes.is_empty() {
            store.keep_outcomes(outcomes)?;
        }
        match page.last() {
            Some(last) if page.len() == LEDGER_PAGE => after = last.id,
            _ => return Ok(record),
        }
    }
}

/// What became of a signal, once five more sessions of its symbol are there. Both closes are taken
/// from the history as it stands: after a split the ledger's own close is in other shares.
fn outcome(entry: &LedgerEntry, candles: &[Candle]) -> Option<SignalOutcome> {
    let at = candles.binary_search_by_key(&entry.on, |candle| candle.date).ok()?;
    let (from, to) = (candles[at], candles.get(at + HORIZON_SESSIONS)?);
    let hit = direction(entry).is_hit(from.close_e4, to.close_e4);
    let (from_close_e4, to_close_e4) = (from.close_e4, to.close_e4);
    Some(SignalOutcome { judged_on: to.date, from_close_e4, to_close_e4, hit })
}

fn direction(entry: &LedgerEntry) -> Direction {
    if entry.signal.bullish { Direction::Bullish } else { Direction::Bearish }
}

/// `None` while it is pending, and for a pattern that this program does not know any more.
fn judged(entry: &LedgerEntry) -> Option<Judged> {
    let PublishedSignal { confidence, base_rate, .. } = entry.signal;
    let key = Key::from_name(&entry.signal.pattern)?;
    let hit = entry.outcome?.hit;
    Some(Judged { date: entry.on, key, confidence, base_rate, hit })
}

/// Puts the last published list and the record on the shelf. Compresses, so it belongs on a lane.
fn show(
    store: &dyn SignalStore,
    shelf: &Shelf,
    record: &Reliability,
    now_ms: i64,
) -> Result<Shown, StoreError> {
    let as_of = store.signal_dates()?.map(|(_, last)| last);
    shelf.record.publish(record.to_json(as_of), now_ms);
    let Some(as_of) = as_of else {
        return Ok(Shown { as_of: None, top: crate::market::no_signals(), signals: 0 });
    };
    let signals = store.signals_of(as_of)?.into_iter().map(listed).collect();
    let list = SignalList { as_of, signals };
    let mut body = Vec::new();
    list.write_json(&mut body, |_| true);
    shelf.signals.publish(body, now_ms);
    let shown =
        Shown { as_of: Some(as_of), top: list.top_json().into(), signals: list.signals.len() };
    shelf.list.store(Some(Arc::new(list)));
    Ok(shown)
}

fn listed(signal: PublishedSignal) -> ListedSignal {
    ListedSignal {
        symbol: signal.symbol,
        pattern: signal.pattern,
        direction: if signal.bullish { Direction::Bullish } else { Direction::Bearish },
        confidence: signal.confidence,
        samples: signal.dates,
        hit_rate: signal.hit_rate,
        base_rate: signal.base_rate,
        simulated: signal.simulated,
    }
}
