//! The ledger of published signals. Runs on the store's threads, within a transaction.
//!
//! The ledger is append-only: triggers of the schema refuse to change or delete an entry.

use jiff::civil::Date;

use crate::store::statements::columns::{date, symbol};
use crate::store::tx::{Arg, Cells, Failure, Sql, Tx, args, sql};
use crate::store::{
    Basis, Completion, LedgerEntry, ProvisionalEntry, ProvisionalSignal, PublishedSignal,
    SignalOutcome,
};

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

// ---- Provisional signals
//
// The ledger of provisional signals (of unfinished candles). Runs on the store's threads, within a
// transaction.
//
// Separate from the ledger of complete signals, and append-only like that one.

const KEEP: Sql = sql!("sql/store/keep_provisional_signal.sql");
const PROVISIONAL_LEDGER: Sql = sql!("sql/store/provisional_ledger.sql");
const KEEP_PROVISIONAL_OUTCOME: Sql = sql!("sql/store/keep_provisional_outcome.sql");

pub(crate) fn keep(
    tx: &dyn Tx,
    on: Date,
    seen_ms: i64,
    signals: &[ProvisionalSignal],
) -> Result<usize, Failure> {
    let rows: Vec<_> = signals.iter().map(|signal| provisional_args(on, seen_ms, signal)).collect();
    Ok(tx.run_many(KEEP, &rows)? as usize)
}

fn provisional_args(on: Date, seen_ms: i64, signal: &ProvisionalSignal) -> Vec<Arg<'_>> {
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

pub(crate) fn provisional_page(
    tx: &dyn Tx,
    after: i64,
    limit: usize,
) -> Result<Vec<ProvisionalEntry>, Failure> {
    tx.all(PROVISIONAL_LEDGER, &args![after, limit], |row| {
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
pub(crate) fn keep_provisional_outcomes(
    tx: &dyn Tx,
    outcomes: &[(i64, SignalOutcome)],
) -> Result<(), Failure> {
    let rows: Vec<_> = outcomes.iter().map(outcome_args).collect();
    tx.run_many(KEEP_PROVISIONAL_OUTCOME, &rows).map(drop)
}

// ---- Ledger columns
//
// The columns that the two ledgers of signals have in common, in the same places. Pure; runs on
// the store's threads.

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
