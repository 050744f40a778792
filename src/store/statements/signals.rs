//! The ledger of published signals. Runs on the store's threads, within a transaction.
//!
//! The ledger is append-only: triggers of the schema refuse to change or delete an entry.

use jiff::civil::Date;

use super::columns::{date, symbol};
use super::ledger_columns::{basis, direction, outcome_args, outcome_if_any};
use crate::store::arg::{Arg, args};
use crate::store::cells::Cells;
use crate::store::tx::{Failure, Sql, Tx, sql};
use crate::store::{LedgerEntry, PublishedSignal, SignalOutcome};

const PUBLISH_DATE: Sql = sql!("sql/store/publish_signal_date.sql");
const PUBLISH_SIGNAL: Sql = sql!("sql/store/publish_signal.sql");
const LAST_DATE: Sql = sql!("sql/store/last_signal_date.sql");
const FIRST_DATE: Sql = sql!("sql/store/first_signal_date.sql");
const DATES: Sql = sql!("sql/store/published_signal_dates.sql");
const OF_DATE: Sql = sql!("sql/store/signals_of_date.sql");
const LEDGER: Sql = sql!("sql/store/signal_ledger.sql");
const KEEP_OUTCOME: Sql = sql!("sql/store/keep_signal_outcome.sql");

/// Publishes a date's signals. False, and nothing is written, if the date was published before.
pub(crate) fn publish(
    tx: &dyn Tx,
    on: Date,
    published_ms: i64,
    symbols: usize,
    signals: &[PublishedSignal],
) -> Result<bool, Failure> {
    if tx.run(PUBLISH_DATE, &args![on, published_ms, symbols])? == 0 {
        return Ok(false);
    }
    let rows: Vec<_> = signals.iter().map(|signal| signal_args(on, signal)).collect();
    tx.run_many(PUBLISH_SIGNAL, &rows)?;
    Ok(true)
}

fn signal_args(on: Date, signal: &PublishedSignal) -> Vec<Arg<'_>> {
    args![
        on,
        &signal.symbol,
        &signal.pattern,
        direction(signal.bullish),
        signal.confidence,
        signal.basis.dates,
        signal.basis.date_hit_rate,
        signal.basis.base_rate,
        signal.close_e4,
        signal.rank,
        signal.simulated,
        signal.basis.prior_dates,
        signal.basis.signals_and_hits.map(|(signals, _)| signals),
        signal.basis.signals_and_hits.map(|(_, hits)| hits),
    ]
    .into()
}

pub(crate) fn first_and_last_date(tx: &dyn Tx) -> Result<Option<(Date, Date)>, Failure> {
    let earliest = tx.first(FIRST_DATE, &[], |row| date(row, 0))?;
    Ok(earliest.zip(tx.first(LAST_DATE, &[], |row| date(row, 0))?))
}

/// Every date that was published, oldest first.
pub(crate) fn dates(tx: &dyn Tx) -> Result<Vec<Date>, Failure> {
    tx.all(DATES, &[], |row| date(row, 0))
}

/// A date's signals in their published order.
pub(crate) fn of_date(tx: &dyn Tx, on: Date) -> Result<Vec<PublishedSignal>, Failure> {
    let mut found = tx.all(OF_DATE, &args![on], published)?;
    found.sort_by_key(|signal| signal.rank);
    Ok(found)
}

/// A page of the ledger after the entry `after`.
pub(crate) fn page(tx: &dyn Tx, after: i64, limit: usize) -> Result<Vec<LedgerEntry>, Failure> {
    tx.all(LEDGER, &args![after, limit], |row| {
        let (signal, outcome) = (published(row)?, outcome_if_any(row)?);
        let has_candle = row.get(21)?;
        Ok(LedgerEntry { id: row.get(0)?, on: date(row, 1)?, signal, outcome, has_candle })
    })
}

fn published(row: &dyn Cells) -> Result<PublishedSignal, Failure> {
    Ok(PublishedSignal {
        symbol: symbol(row, 2)?,
        pattern: row.get(3)?,
        bullish: row.str(4)? == direction(true),
        confidence: row.get(5)?,
        basis: basis(row)?,
        close_e4: row.get(9)?,
        rank: row.get(10)?,
        simulated: row.get(11)?,
    })
}

/// Records outcomes. One that exists is not overwritten.
pub(crate) fn keep_outcomes(tx: &dyn Tx, outcomes: &[(i64, SignalOutcome)]) -> Result<(), Failure> {
    let rows: Vec<_> = outcomes.iter().map(outcome_args).collect();
    tx.run_many(KEEP_OUTCOME, &rows).map(drop)
}
