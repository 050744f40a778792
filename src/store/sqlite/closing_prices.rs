//! Closing prices of a trading day, by symbol. Runs on the store's threads, within a transaction.

use std::collections::HashMap;

use jiff::civil::Date;
use rusqlite::{Connection, Row, params};

use super::columns::{
    all, decimal, decimal_if_any, digits, digits_if_any, first, run, symbol as symbol_at,
};
use super::condition::Failure;
use crate::base::{ClosingPrice, Symbol};
use crate::store::PriceOfClose;

const KEEP_CLOSE: &str = include_str!("../../../sql/store/keep_close.sql");
const CLOSES: &str = include_str!("../../../sql/store/closes.sql");
const CLOSE_OF: &str = include_str!("../../../sql/store/close_of.sql");

pub(crate) fn keep(
    connection: &Connection,
    date: Date,
    prices: &[PriceOfClose],
) -> Result<(), Failure> {
    let date = date.to_string();
    for (symbol, close) in prices {
        let ClosingPrice { price, previous_close, as_of_ms } = *close;
        let (price, previous_close) = (digits(price), digits_if_any(previous_close));
        let row = params![date, symbol.as_str(), price, previous_close, as_of_ms];
        run(connection, KEEP_CLOSE, row)?;
    }
    Ok(())
}

pub(crate) fn of(connection: &Connection, date: Date) -> Result<Vec<PriceOfClose>, Failure> {
    all(connection, CLOSES, [date.to_string()], |row| Ok((symbol_at(row, 0)?, close(row, 1)?)))
}

/// The closing prices of the symbols of a portfolio.
pub(crate) fn of_symbols(
    connection: &Connection,
    date: Date,
    symbols: impl Iterator<Item = Symbol>,
) -> Result<HashMap<Symbol, ClosingPrice>, Failure> {
    let date = date.to_string();
    let mut found = HashMap::new();
    for symbol in symbols {
        let wanted = params![date, symbol.as_str()];
        if let Some(close) = first(connection, CLOSE_OF, wanted, |row| close(row, 0))? {
            found.insert(symbol, close);
        }
    }
    Ok(found)
}

/// Reads a closing price from the three columns from `at` on.
fn close(row: &Row<'_>, at: usize) -> Result<ClosingPrice, Failure> {
    Ok(ClosingPrice {
        price: decimal(row, at)?,
        previous_close: decimal_if_any(row, at + 1)?,
        as_of_ms: row.get(at + 2)?,
    })
}
