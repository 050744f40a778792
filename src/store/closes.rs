//! The close of a trading day: prices, the run's progress, pages of users. Runs on the store's
//! threads, inside a transaction.

use jiff::civil::Date;
use rusqlite::{Connection, params};
use rust_decimal::Decimal;

use super::columns::{all, damaged, decimal, digits, first, run};
use super::condition::Failure;
use super::{AccountId, CloseRun, Portfolio, Valued, portfolios};
use crate::base::Symbol;

const CLOSE_RUN: &str = include_str!("../../sql/store/close_run.sql");
const KEEP_CLOSE_RUN: &str = include_str!("../../sql/store/keep_close_run.sql");
const NEXT_HELD_SYMBOL: &str = include_str!("../../sql/store/next_held_symbol.sql");
const KEEP_CLOSE: &str = include_str!("../../sql/store/keep_close.sql");
const CLOSES: &str = include_str!("../../sql/store/closes.sql");
const FORGET_CLOSES: &str = include_str!("../../sql/store/forget_closes.sql");
const HOLDERS_AFTER: &str = include_str!("../../sql/store/holders_after.sql");
const LAST_SYNCED: &str = include_str!("../../sql/store/last_synced.sql");

pub(super) fn progress(connection: &Connection, date: Date) -> Result<CloseRun, Failure> {
    let found = first(connection, CLOSE_RUN, [date.to_string()], |row| {
        let (done_to, finished_ms): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
        Ok(match finished_ms {
            Some(_) => CloseRun::Finished,
            None => CloseRun::Begun(AccountId(done_to)),
        })
    })?;
    Ok(found.unwrap_or(CloseRun::NotBegun))
}

/// One step of the index per symbol, however many users hold it.
pub(super) fn held_symbols(
    connection: &Connection,
    after: Option<&Symbol>,
    limit: usize,
) -> Result<Vec<Symbol>, Failure> {
    let mut found: Vec<Symbol> = Vec::new();
    while found.len() < limit {
        let last = found.last().or(after).map_or("", Symbol::as_str);
        let next = first(connection, NEXT_HELD_SYMBOL, [last], |row| Ok(row.get::<_, String>(0)?))?;
        let Some(text) = next else { break };
        found.push(Symbol::parse(&text).ok_or_else(|| damaged("a symbol"))?);
    }
    Ok(found)
}

pub(super) fn keep(
    connection: &Connection,
    date: Date,
    prices: &[(Symbol, Decimal)],
) -> Result<(), Failure> {
    let date = date.to_string();
    for (symbol, price) in prices {
        run(connection, KEEP_CLOSE, params![date, symbol.as_str(), digits(*price)])?;
    }
    Ok(())
}

pub(super) fn of(connection: &Connection, date: Date) -> Result<Vec<(Symbol, Decimal)>, Failure> {
    all(connection, CLOSES, [date.to_string()], |row| {
        let text: String = row.get(0)?;
        Ok((Symbol::parse(&text).ok_or_else(|| damaged("a symbol"))?, decimal(row, 1)?))
    })
}

pub(super) fn portfolios_after(
    connection: &Connection,
    after: AccountId,
    limit: usize,
) -> Result<Vec<(AccountId, Portfolio)>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let holders =
        all(connection, HOLDERS_AFTER, [after.0, limit], |row| Ok(AccountId(row.get(0)?)))?;
    let with_portfolio = |id| Ok((id, portfolios::of(connection, id)?));
    holders.into_iter().map(with_portfolio).collect()
}

pub(super) fn keep_points(
    connection: &Connection,
    date: Date,
    points: &[Valued],
    done_to: AccountId,
    finished_ms: Option<i64>,
) -> Result<(), Failure> {
    for valued in points {
        // Nothing for a user who is gone or whose portfolio was deleted or synced meanwhile.
        let last: Option<i64> =
            first(connection, LAST_SYNCED, [valued.id.0], |row| Ok(row.get(0)?))?.flatten();
        if last == Some(valued.synced_ms) {
            portfolios::keep_point(connection, valued.id, &valued.point)?;
        }
    }
    let date = date.to_string();
    run(connection, KEEP_CLOSE_RUN, params![date, done_to.0, finished_ms])?;
    if finished_ms.is_some() {
        run(connection, FORGET_CLOSES, [date])?;
    }
    Ok(())
}
