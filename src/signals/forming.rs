//! The running candle, of a day that is not over: whether it can be trusted so far, and which
//! patterns it has. Pure.
//!
//! A running candle never becomes part of a history. It is appended to the last stored candles to
//! look for patterns, and then dropped. Until the official close a pattern can appear and vanish.

use jiff::civil::Date;

use super::history::{self, Conflict, HistoryFault, Suspected, TradingDates, Window};
use super::patterns::{Columns, Detector, Key};
use crate::base::Candle;

/// Stored sessions that are kept in memory for each symbol. The pattern functions look back 14
/// sessions at most, and a few more to confirm the trend; the check for a split uses 20.
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

/// Finds the candle of `date` in `fresh`, which must overlap the stored `tail`.
///
/// # Errors
/// [`RunningFault`]. The check for a split ignores volumes, since little is traded early in a day.
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

/// The keys (patterns with direction) of a running candle that follows `tail`.
pub fn newest(detector: &Detector, tail: &[Candle], running: &Candle) -> Vec<Key> {
    detector.newest(&Columns::of(tail.iter().chain([running])))
}

#[cfg(test)]
#[path = "forming_tests.rs"]
mod tests;
