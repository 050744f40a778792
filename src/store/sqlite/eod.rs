//! The revaluation at the close of a trading day: closing prices, progress of the run, pages of
//! users. Runs on the store's threads, within a transaction.

use jiff::civil::Date;
use rusqlite::{Connection, params};

use super::columns::{all, digits, digits_if_any, first, run, symbol as symbol_at};
use super::condition::Failure;
use super::portfolios;
use crate::base::Symbol;
use crate::store::{AccountId, ClosePage, Valued};

/// Most holdings in one page of users, since a larger page would delay other writes. A single
/// user's holdings are read whatever their number.
const PAGE_ROWS_MAX: usize = 20_000;

const CLOSE_RUN: &str = include_str!("../../../sql/store/close_run.sql");
const FINISH_CLOSE_RUN: &str = include_str!("../../../sql/store/finish_close_run.sql");
const NEXT_HELD_SYMBOL: &str = include_str!("../../../sql/store/next_held_symbol.sql");
const FORGET_CLOSES: &str = include_str!("../../../sql/store/forget_closes.sql");
const HOLDERS_AFTER: &str = include_str!("../../../sql/store/holders_after.sql");
const LAST_SYNCED: &str = include_str!("../../../sql/store/last_synced.sql");
const KEEP_LATER_POINTS: &str = include_str!("../../../sql/store/keep_later_points.sql");
const KEEP_CLOSED_PORTFOLIO: &str = include_str!("../../../sql/store/keep_closed_portfolio.sql");
const SILENT_SYMBOLS: &str = include_str!("../../../sql/store/silent_symbols.sql");
const KEEP_SILENT_SYMBOL: &str = include_str!("../../../sql/store/keep_silent_symbol.sql");
const FORGET_SILENT_SYMBOLS: &str = include_str!("../../../sql/store/forget_silent_symbols.sql");

pub(crate) fn is_finished(connection: &Connection, date: Date) -> Result<bool, Failure> {
    Ok(first(connection, CLOSE_RUN, [date.to_string()], |_| Ok(()))?.is_some())
}

/// Needs one index step per symbol, however many users hold it.
pub(crate) fn held_symbols(
    connection: &Connection,
    after: Option<&Symbol>,
    limit: usize,
) -> Result<Vec<Symbol>, Failure> {
    let mut found: Vec<Symbol> = Vec::new();
    while found.len() < limit {
        let last = found.last().or(after).map_or("", Symbol::as_str);
        let Some(next) = first(connection, NEXT_HELD_SYMBOL, [last], |row| symbol_at(row, 0))?
        else {
            break;
        };
        found.push(next);
    }
    Ok(found)
}

pub(crate) fn silent_symbols(
    connection: &Connection,
    after: Option<&Symbol>,
    limit: usize,
) -> Result<Vec<Symbol>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let after = after.map_or("", Symbol::as_str);
    all(connection, SILENT_SYMBOLS, params![after, limit], |row| symbol_at(row, 0))
}

pub(crate) fn portfolios_to_close(
    connection: &Connection,
    date: Date,
    after: AccountId,
    limit: usize,
) -> Result<ClosePage, Failure> {
    let wanted = params![after.0, date.to_string(), i64::try_from(limit).unwrap_or(i64::MAX)];
    let holders = all(connection, HOLDERS_AFTER, wanted, |row| Ok(AccountId(row.get(0)?)))?;
    let mut page = ClosePage { more: holders.len() >= limit, portfolios: Vec::new() };
    let mut rows = 0;
    for id in holders {
        if rows >= PAGE_ROWS_MAX {
            page.more = true;
            break;
        }
        let portfolio = portfolios::of(connection, id)?;
        rows += portfolio.holdings.len();
        page.portfolios.push((id, portfolio));
    }
    Ok(page)
}

pub(crate) fn keep_points(
    connection: &Connection,
    date: Date,
    points: &[Valued],
) -> Result<(), Failure> {
    for valued in points {
        // Writes nothing for a user who was deleted, or whose portfolio was deleted or synced
        // meanwhile.
        let last: Option<i64> =
            first(connection, LAST_SYNCED, [valued.id.0], |row| Ok(row.get(0)?))?.flatten();
        if last != Some(valued.synced_ms) {
            continue;
        }
        portfolios::reprice(connection, valued.id, &valued.repriced)?;
        portfolios::keep_point(connection, valued.id, &valued.point)?;
        keep_later_points(connection, valued)?;
        if valued.is_complete {
            run(connection, KEEP_CLOSED_PORTFOLIO, params![valued.id.0, date.to_string()])?;
        }
    }
    Ok(())
}

/// Points of later dates that have had no trading of their own yet are based on this close too.
fn keep_later_points(connection: &Connection, valued: &Valued) -> Result<(), Failure> {
    let Valued { id, point, next_session, priced, .. } = valued;
    let row = params![
        id.0,
        point.date.to_string(),
        digits(point.total_invested),
        digits(point.total_current_value),
        digits(point.total_pnl),
        digits_if_any(point.value_without_cost),
        point.left_out,
        next_session.to_string(),
        point.carried,
        priced,
        point.suspect,
    ];
    run(connection, KEEP_LATER_POINTS, row).map(drop)
}

pub(crate) fn finish(
    connection: &Connection,
    date: Date,
    finished_ms: i64,
    silent: &[Symbol],
) -> Result<(), Failure> {
    let date = date.to_string();
    for symbol in silent {
        run(connection, KEEP_SILENT_SYMBOL, [symbol.as_str(), date.as_str()])?;
    }
    run(connection, FORGET_SILENT_SYMBOLS, [date.as_str()])?;
    run(connection, FORGET_CLOSES, [date.as_str()])?;
    run(connection, FINISH_CLOSE_RUN, params![date, finished_ms]).map(drop)
}
