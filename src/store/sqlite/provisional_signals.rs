//! The ledger of provisional signals (of unfinished candles). Runs on the store's threads, within a
//! transaction.
//!
//! Separate from the ledger of complete signals, and append-only like that one.

use jiff::civil::Date;
use rusqlite::{Connection, params};

use super::columns::{all, date, run, symbol};
use super::condition::Failure;
use super::ledger_columns::{basis, direction, outcome_if_any};
use crate::store::{Completion, ProvisionalEntry, ProvisionalSignal};

const KEEP: &str = include_str!("../../../sql/store/keep_provisional_signal.sql");
const LEDGER: &str = include_str!("../../../sql/store/provisional_ledger.sql");
pub(crate) const KEEP_OUTCOME: &str =
    include_str!("../../../sql/store/keep_provisional_outcome.sql");

pub(crate) fn keep(
    file: &Connection,
    on: Date,
    seen_ms: i64,
    signals: &[ProvisionalSignal],
) -> Result<usize, Failure> {
    let mut new = 0;
    for signal in signals {
        let row = params![
            on.to_string(),
            signal.symbol.as_str(),
            signal.pattern,
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
        ];
        new += run(file, KEEP, row)?;
    }
    Ok(new)
}

pub(crate) fn page(
    file: &Connection,
    after: i64,
    limit: usize,
) -> Result<Vec<ProvisionalEntry>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(file, LEDGER, [after, limit], |row| {
        let completion = match (row.get(22)?, row.get(23)?) {
            (false, _) => Completion::Unknown,
            (true, false) => Completion::Vanished,
            (true, true) => Completion::Confirmed,
        };
        let signal = ProvisionalSignal {
            symbol: symbol(row, 2)?,
            pattern: row.get(3)?,
            bullish: row.get::<_, String>(4)? == direction(true),
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
