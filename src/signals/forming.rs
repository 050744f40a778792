//! The candle of a day that is not over: whether it can be believed so far, and what it looks like.
//! Pure.
//!
//! Such a candle is never part of a history. It is laid on the last stored ones for a look, and
//! dropped: until the official close its pattern can appear and vanish.

use jiff::civil::Date;

use super::history::{self, Conflict, HistoryFault, Suspected, TradingDates, Window};
use super::patterns::{Columns, Detector, Key};
use crate::base::Candle;

/// Stored sessions that are kept at hand of each symbol. The functions look back 14 at most, with a
/// few more to confirm what came before; a split is judged by 20.
pub const TAIL_SESSIONS: usize = 30;

/// Why a running candle gives no signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunningFault {
    #[error("no candle of the day")]
    Absent,
    #[error("{0}")]
    Impossible(HistoryFault),
    #[error("{0}")]
    Conflict(Conflict),
    #[error("a session before it is missing")]
    Gap,
}

/// The newest `TAIL_SESSIONS` of ascending candles.
pub fn tail(candles: &[Candle]) -> &[Candle] {
    &candles[candles.len().saturating_sub(TAIL_SESSIONS)..]
}

/// The candle of `date` among `fresh`, which overlaps the stored `tail`.
///
/// # Errors
/// [`RunningFault`]; volumes do not matter where the price looks split, since a day begins with
/// little.
pub fn running(
    tail: &[Candle],
    fresh: &[Candle],
    date: Date,
    dates: &impl TradingDates,
) -> Result<Candle, RunningFault> {
    let Some(last) = tail.last() else { return Err(RunningFault::Absent) };
    let checked = history::check(fresh, Window { from: tail[0].date, to: date }, dates);
    let Some(candle) = checked.candles.last().filter(|candle| candle.date == date) else {
        let fault = checked.faults.last().copied();
        return Err(fault.map_or(RunningFault::Absent, RunningFault::Impossible));
    };
    let merged = history::merge(tail, &checked.candles, dates).map_err(RunningFault::Conflict)?;
    if merged.append != [*candle] {
        return Err(RunningFault::Gap);
    }
    match history::simple_ratio(candle.open_e4, last.close_e4) {
        Some(ratio) => Err(RunningFault::Conflict(Conflict::Suspected(Suspected { date, ratio }))),
        None => Ok(*candle),
    }
}

/// The keys of a running candle that follows `tail`.
pub fn newest(detector: &Detector, tail: &[Candle], running: &Candle) -> Vec<Key> {
    detector.newest(&Columns::of(tail.iter().chain([running])))
}

#[cfg(test)]
#[path = "forming_tests.rs"]
mod tests;
