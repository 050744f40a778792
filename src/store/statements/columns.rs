//! Converts between typed values and columns. Pure; runs on the store's threads.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Broker, Symbol};
use crate::store::tx::{Cells, Failure, damaged};

pub(crate) fn decimal(row: &dyn Cells, at: usize) -> Result<Decimal, Failure> {
    decimal_if_any(row, at)?.ok_or_else(|| damaged("a decimal is missing"))
}

pub(crate) fn decimal_if_any(row: &dyn Cells, at: usize) -> Result<Option<Decimal>, Failure> {
    let text = row.text(at)?;
    text.map(|text| text.parse().map_err(|_| damaged("a decimal"))).transpose()
}

pub(crate) fn date(row: &dyn Cells, at: usize) -> Result<Date, Failure> {
    date_if_any(row, at)?.ok_or_else(|| damaged("a date is missing"))
}

pub(crate) fn date_if_any(row: &dyn Cells, at: usize) -> Result<Option<Date>, Failure> {
    let text = row.text(at)?;
    text.map(|text| text.parse().map_err(|_| damaged("a date"))).transpose()
}

pub(crate) fn symbol(row: &dyn Cells, at: usize) -> Result<Symbol, Failure> {
    let text = row.str(at)?;
    Symbol::parse(text).ok_or_else(|| damaged("a symbol"))
}

pub(crate) fn broker(row: &dyn Cells, at: usize) -> Result<Broker, Failure> {
    named(row, at, Broker::parse, "a broker")
}

/// A name out of a closed list.
pub(crate) fn named<T>(
    row: &dyn Cells,
    at: usize,
    parse: fn(&str) -> Option<T>,
    what: &'static str,
) -> Result<T, Failure> {
    let text = row.str(at)?;
    parse(text).ok_or_else(|| damaged(what))
}
