//! The ledger of provisional signals (of unfinished candles). Runs on the store's threads, within a
//! transaction.
//!
//! Separate from the ledger of complete signals, and append-only like that one.

use jiff::civil::Date;

use super::columns::{date, symbol};
use super::ledger_columns::{basis, direction, outcome_args, outcome_if_any};
use crate::store::arg::{Arg, args};
use crate::store::tx::{Failure, Sql, Tx, sql};
use crate::store::{Completion, ProvisionalEntry, ProvisionalSignal, SignalOutcome};

const KEEP: Sql = sql!("sql/store/keep_provisional_signal.sql");
const LEDGER: Sql = sql!("sql/store/provisional_ledger.sql");
const KEEP_OUTCOME: Sql = sql!("sql/store/keep_provisional_outcome.sql");

pub(crate) fn keep(
    tx: &dyn Tx,
    on: Date,
    seen_ms: i64,
    signals: &[ProvisionalSignal],
) -> Result<usize, Failure> {
    let rows: Vec<_> = signals.iter().map(|signal| signal_args(on, seen_ms, signal)).collect();
    Ok(tx.run_many(KEEP, &rows)? as usize)
}

fn signal_args(on: Date, seen_ms: i64, signal: &ProvisionalSignal) -> Vec<Arg<'_>> {
    args![
        on,
        &signal.symbol,
        &signal.pattern,
        direction(signal.bullish),
        signal.confidence,
        signal.basis.dates,
        signal.basis.date_hit_rate,
        signal.basis.base_rate,
        signal.price_e4,
        seen_ms,
        signal.simulated,
        signal.basis.prior_dates,
        signal.basis.signals_and_hits.map(|(signals, _)| signals),
        signal.basis.signals_and_hits.map(|(_, hits)| hits),
    ]
    .into()
}

pub(crate) fn page(
    tx: &dyn Tx,
    after: i64,
    limit: usize,
) -> Result<Vec<ProvisionalEntry>, Failure> {
    tx.all(LEDGER, &args![after, limit], |row| {
        let completion = match (row.get(22)?, row.get(23)?) {
            (false, _) => Completion::Unknown,
            (true, false) => Completion::Vanished,
            (true, true) => Completion::Confirmed,
        };
        let signal = ProvisionalSignal {
            symbol: symbol(row, 2)?,
            pattern: row.get(3)?,
            bullish: row.str(4)? == direction(true),
            confidence: row.get(5)?,
            basis: basis(row)?,
            price_e4: row.get(9)?,
            simulated: row.get(11)?,
        };
        Ok(ProvisionalEntry {
            id: row.get(0)?,
            on: date(row, 1)?,
            signal,
            first_seen_ms: row.get(10)?,
            completion,
            outcome: outcome_if_any(row)?,
            has_candle: row.get(21)?,
        })
    })
}

/// Records outcomes. One that exists is not overwritten.
pub(crate) fn keep_outcomes(tx: &dyn Tx, outcomes: &[(i64, SignalOutcome)]) -> Result<(), Failure> {
    let rows: Vec<_> = outcomes.iter().map(outcome_args).collect();
    tx.run_many(KEEP_OUTCOME, &rows).map(drop)
}
