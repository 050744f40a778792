//! Judges candles that arrived and stores those that can be believed: jobs of the lane `signals`,
//! which block. Nothing of them outlives the job but what it returns.

use jiff::civil::Date;

use super::sessions::window_from;
use crate::base::{Epoch, Source, Symbol};
use crate::brokers::DailyCandles;
use crate::market::MarketCalendar;
use crate::signals::history::{Conflict, HOLES_MAX, Suspected, Window, check, merge};
use crate::store::{CandleHistory, NewHistory, SignalStore, SplitSuspicion, StoreError};

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

/// Judges what arrived and stores what can be believed.
pub fn take_in(
    store: &dyn SignalStore,
    epoch: Epoch,
    calendar: &MarketCalendar,
    arrived: Arrived,
) -> Result<Taken, StoreError> {
    let (at, source) = (arrived.at, arrived.source);
    let verdict = match &arrived.held {
        Some(held) if !arrived.whole => append(store, epoch, calendar, &arrived, held.clone())?,
        _ => replace(store, epoch, calendar, arrived)?,
    };
    Ok(Taken { at, source, verdict })
}

fn replace(
    store: &dyn SignalStore,
    epoch: Epoch,
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
    store.replace_candles(epoch, NewHistory { symbol, source, simulated, candles, suspicions })?;
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
    epoch: Epoch,
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
            store.want_refetch(epoch, &arrived.symbol, suspected)?;
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
        store.append_candles(epoch, &arrived.symbol, merged.append, keep_from)?;
    }
    Ok(Verdict::Stored { held, gap })
}
