//! Closing prices of a trading day, by symbol. Runs on the store's threads, within a transaction.

use std::collections::HashMap;

use jiff::civil::Date;

use super::columns::{decimal, decimal_if_any, symbol as symbol_at};
use crate::base::{ClosingPrice, Symbol};
use crate::store::PriceOfClose;
use crate::store::arg::{Arg, args};
use crate::store::cells::Cells;
use crate::store::tx::{Failure, Sql, Tx, sql};

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
