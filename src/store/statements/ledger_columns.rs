//! The columns that the two ledgers of signals have in common, in the same places. Pure; runs on
//! the store's threads.

use super::columns::date;
use crate::store::arg::{Arg, args};
use crate::store::cells::Cells;
use crate::store::tx::Failure;
use crate::store::{Basis, SignalOutcome};

/// Reads what a confidence was made of.
pub(crate) fn basis(row: &dyn Cells) -> Result<Basis, Failure> {
    let (signals, hits) = (row.get::<Option<u32>>(13)?, row.get(14)?);
    Ok(Basis {
        dates: row.get(6)?,
        date_hit_rate: row.get(7)?,
        base_rate: row.get(8)?,
        prior_dates: row.get(12)?,
        signals_and_hits: signals.zip(hits),
    })
}

/// Reads the outcome, if there is one.
pub(crate) fn outcome_if_any(row: &dyn Cells) -> Result<Option<SignalOutcome>, Failure> {
    let Some(hit) = row.get::<Option<bool>>(18)? else { return Ok(None) };
    Ok(Some(SignalOutcome {
        judged_on: date(row, 15)?,
        from_close_e4: row.get(16)?,
        to_close_e4: row.get(17)?,
        universe: row.get::<Option<u32>>(19)?.zip(row.get(20)?),
        hit,
    }))
}

/// Arguments of the statements that keep an outcome.
pub(crate) fn outcome_args(outcome: &(i64, SignalOutcome)) -> Vec<Arg<'static>> {
    let (id, SignalOutcome { judged_on, from_close_e4, to_close_e4, hit, universe }) = *outcome;
    let (symbols, moved) = universe.unzip();
    args![id, judged_on, from_close_e4, to_close_e4, hit, symbols, moved].into()
}

pub(crate) fn direction(bullish: bool) -> &'static str {
    if bullish { "bullish" } else { "bearish" }
}
