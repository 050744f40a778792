//! Converts between typed values and columns. Pure; runs on the store's threads.

use jiff::civil::Date;
use rusqlite::{CachedStatement, Connection, Params, Row};
use rust_decimal::Decimal;

use super::condition::Failure;
use crate::base::{Broker, Symbol};
use crate::store::StoreError;

/// Runs a statement and returns all its rows.
pub(crate) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    rows_of(connection.prepare_cached(sql)?, params, read)
}

fn rows_of<T>(
    mut statement: CachedStatement<'_>,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Runs a statement to its end, as a writing one needs, and returns its first row.
pub(crate) fn first<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    Ok(all(connection, sql, params, read)?.into_iter().next())
}

/// Runs a statement without result rows and returns how many rows it changed.
pub(crate) fn run(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> Result<usize, Failure> {
    Ok(connection.prepare_cached(sql)?.execute(params)?)
}

pub(crate) fn damaged(what: &'static str) -> Failure {
    StoreError::Damaged(what).into()
}

pub(crate) fn decimal(row: &Row<'_>, at: usize) -> Result<Decimal, Failure> {
    decimal_if_any(row, at)?.ok_or_else(|| damaged("a decimal is missing"))
}

pub(crate) fn decimal_if_any(row: &Row<'_>, at: usize) -> Result<Option<Decimal>, Failure> {
    let text = row.get_ref(at)?.as_str_or_null().map_err(rusqlite::Error::from)?;
    text.map(|text| text.parse().map_err(|_| damaged("a decimal"))).transpose()
}

pub(crate) fn date(row: &Row<'_>, at: usize) -> Result<Date, Failure> {
    date_if_any(row, at)?.ok_or_else(|| damaged("a date is missing"))
}

pub(crate) fn date_if_any(row: &Row<'_>, at: usize) -> Result<Option<Date>, Failure> {
    let text = row.get_ref(at)?.as_str_or_null().map_err(rusqlite::Error::from)?;
    text.map(|text| text.parse().map_err(|_| damaged("a date"))).transpose()
}

pub(crate) fn symbol(row: &Row<'_>, at: usize) -> Result<Symbol, Failure> {
    let text = row.get_ref(at)?.as_str().map_err(rusqlite::Error::from)?;
    Symbol::parse(text).ok_or_else(|| damaged("a symbol"))
}

pub(crate) fn broker(row: &Row<'_>, at: usize) -> Result<Broker, Failure> {
    named(row, at, Broker::parse, "a broker")
}

/// A name out of a closed list.
pub(crate) fn named<T>(
    row: &Row<'_>,
    at: usize,
    parse: fn(&str) -> Option<T>,
    what: &'static str,
) -> Result<T, Failure> {
    let text = row.get_ref(at)?.as_str().map_err(rusqlite::Error::from)?;
    parse(text).ok_or_else(|| damaged(what))
}

/// A decimal as it is stored: as text with its own digits.
pub(crate) fn digits(value: Decimal) -> String {
    value.to_string()
}

pub(crate) fn digits_if_any(value: Option<Decimal>) -> Option<String> {
    value.map(digits)
}
