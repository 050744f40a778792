//! The revaluation at the close of a trading day: closing prices, progress of the run, pages of
//! users. Runs on the store's threads, within a transaction.

use std::collections::HashMap;

use jiff::civil::Date;

use crate::base::{ClosingPrice, Symbol};
use crate::store::statements::columns::{decimal, decimal_if_any, symbol as symbol_at};
use crate::store::statements::portfolios;
use crate::store::tx::{Arg, Cells, Failure, Sql, Tx, args, sql};
use crate::store::{AccountId, ClosePage, PriceOfClose, Valued};

/// Most holdings in one page of users, since a larger page would delay other writes. A single
/// user's holdings are read whatever their number.
const PAGE_ROWS_MAX: usize = 20_000;

const CLOSE_RUN: Sql = sql!("sql/store/close_run.sql");
const FINISH_CLOSE_RUN: Sql = sql!("sql/store/finish_close_run.sql");
const NEXT_HELD_SYMBOL: Sql = sql!("sql/store/next_held_symbol.sql");
const FORGET_CLOSES: Sql = sql!("sql/store/forget_closes.sql");
const HOLDERS_AFTER: Sql = sql!("sql/store/holders_after.sql");
const LAST_SYNCED: Sql = sql!("sql/store/last_synced.sql");
const KEEP_LATER_POINTS: Sql = sql!("sql/store/keep_later_points.sql");
const KEEP_CLOSED_PORTFOLIO: Sql = sql!("sql/store/keep_closed_portfolio.sql");
const SILENT_SYMBOLS: Sql = sql!("sql/store/silent_symbols.sql");
const KEEP_SILENT_SYMBOL: Sql = sql!("sql/store/keep_silent_symbol.sql");
const FORGET_SILENT_SYMBOLS: Sql = sql!("sql/store/forget_silent_symbols.sql");

pub(crate) fn is_finished(tx: &dyn Tx, date: Date) -> Result<bool, Failure> {
    Ok(tx.first(CLOSE_RUN, &args![date], |_| Ok(()))?.is_some())
}

/// Needs one index step per symbol, however many users hold it.
pub(crate) fn held_symbols(
    tx: &dyn Tx,
    after: Option<&Symbol>,
    limit: usize,
) -> Result<Vec<Symbol>, Failure> {
    let mut found: Vec<Symbol> = Vec::new();
    while found.len() < limit {
        let last = found.last().or(after).map_or("", Symbol::as_str);
        let Some(next) = tx.first(NEXT_HELD_SYMBOL, &args![last], |row| symbol_at(row, 0))? else {
            break;
        };
        found.push(next);
    }
    Ok(found)
}

pub(crate) fn silent_symbols(
    tx: &dyn Tx,
    after: Option<&Symbol>,
    limit: usize,
) -> Result<Vec<Symbol>, Failure> {
    let after = after.map_or("", Symbol::as_str);
    tx.all(SILENT_SYMBOLS, &args![after, limit], |row| symbol_at(row, 0))
}

pub(crate) fn portfolios_to_close(
    tx: &dyn Tx,
    date: Date,
    after: AccountId,
    limit: usize,
) -> Result<ClosePage, Failure> {
    let wanted = &args![after, date, limit];
    let holders = tx.all(HOLDERS_AFTER, wanted, |row| Ok(AccountId(row.get(0)?)))?;
    let mut page = ClosePage { more: holders.len() >= limit, portfolios: Vec::new() };
    let mut rows = 0;
    for id in holders {
        if rows >= PAGE_ROWS_MAX {
            page.more = true;
            break;
        }
        let portfolio = portfolios::of(tx, id)?;
        rows += portfolio.holdings.len();
        page.portfolios.push((id, portfolio));
    }
    Ok(page)
}

pub(crate) fn keep_points(tx: &dyn Tx, date: Date, points: &[Valued]) -> Result<(), Failure> {
    for valued in points {
        // Writes nothing for a user who was deleted, or whose portfolio was deleted or synced
        // meanwhile.
        let last: Option<i64> =
            tx.first(LAST_SYNCED, &args![valued.id], |row| row.get(0))?.flatten();
        if last != Some(valued.synced_ms) {
            continue;
        }
        portfolios::reprice(tx, valued.id, &valued.repriced)?;
        portfolios::keep_point(tx, valued.id, &valued.point)?;
        keep_later_points(tx, valued)?;
        portfolios::count_write(tx, valued.id)?;
        if valued.is_complete {
            tx.run(KEEP_CLOSED_PORTFOLIO, &args![valued.id, date])?;
        }
    }
    Ok(())
}

/// Points of later dates that have had no trading of their own yet are based on this close too.
fn keep_later_points(tx: &dyn Tx, valued: &Valued) -> Result<(), Failure> {
    let Valued { id, point, next_session, priced, .. } = valued;
    let row = &args![
        *id,
        point.date,
        point.total_invested,
        point.total_current_value,
        point.total_pnl,
        point.value_without_cost,
        point.left_out,
        *next_session,
        point.carried,
        *priced,
        point.suspect,
        point.made_of.map(|made| made.brokers.as_str()),
        point.made_of.map(|made| made.holdings),
        point.made_of.map(|made| made.discrepancies),
    ];
    tx.run(KEEP_LATER_POINTS, row).map(drop)
}

pub(crate) fn finish(
    tx: &dyn Tx,
    date: Date,
    finished_ms: i64,
    silent: &[Symbol],
) -> Result<(), Failure> {
    let silent = silent.iter().map(|symbol| args![symbol, date].into());
    tx.run_many(KEEP_SILENT_SYMBOL, &silent.collect::<Vec<_>>())?;
    tx.run(FORGET_SILENT_SYMBOLS, &args![date])?;
    tx.run(FORGET_CLOSES, &args![date])?;
    tx.run(FINISH_CLOSE_RUN, &args![date, finished_ms]).map(drop)
}

// ---- Closing prices
//
// Closing prices of a trading day, by symbol. Runs on the store's threads, within a transaction.

const KEEP_CLOSE: Sql = sql!("sql/store/keep_close.sql");
const CLOSES: Sql = sql!("sql/store/closes.sql");
const CLOSE_OF: Sql = sql!("sql/store/close_of.sql");

pub(crate) fn keep(tx: &dyn Tx, date: Date, prices: &[PriceOfClose]) -> Result<(), Failure> {
    let rows = prices.iter().map(|(symbol, close)| {
        let ClosingPrice { price, previous_close, as_of_ms } = *close;
        args![date, symbol, price, previous_close, as_of_ms].into()
    });
    tx.run_many(KEEP_CLOSE, &rows.collect::<Vec<_>>()).map(drop)
}

pub(crate) fn of(tx: &dyn Tx, date: Date) -> Result<Vec<PriceOfClose>, Failure> {
    tx.all(CLOSES, &args![date], |row| Ok((symbol_at(row, 0)?, close(row, 1)?)))
}

/// The closing prices of the symbols of a portfolio.
pub(crate) fn of_symbols(
    tx: &dyn Tx,
    date: Date,
    symbols: impl Iterator<Item = Symbol>,
) -> Result<HashMap<Symbol, ClosingPrice>, Failure> {
    let symbols: Vec<Symbol> = symbols.collect();
    let wanted: Vec<Vec<Arg<'_>>> =
        symbols.iter().map(|symbol| args![date, symbol].into()).collect();
    let mut found = HashMap::new();
    tx.query_many(CLOSE_OF, &wanted, &mut |at, row| {
        found.insert(symbols[at].clone(), close(row, 0)?);
        Ok(())
    })?;
    Ok(found)
}

/// Reads a closing price from the three columns from `at` on.
fn close(row: &dyn Cells, at: usize) -> Result<ClosingPrice, Failure> {
    Ok(ClosingPrice {
        price: decimal(row, at)?,
        previous_close: decimal_if_any(row, at + 1)?,
        as_of_ms: row.get(at + 2)?,
    })
}
