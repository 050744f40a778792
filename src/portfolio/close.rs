//! Writes the closing prices of a trading date into the rows of a portfolio. Pure.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::valuation::price_date;
use crate::base::{ActionSign, ClosingPrice, Holding, Mark, Symbol, ist};

/// A price at or below this share of the last known one, or at or above its inverse, looks like a
/// split, a bonus or a consolidation: the common ones at least halve or double the price. A 1:2
/// bonus takes only a third off, which a very bad month can do too, so it is not detected.
const DROP_SUSPECT: Decimal = Decimal::from_parts(60, 0, 0, false, 2);
const RISE_SUSPECT: Decimal = Decimal::from_parts(167, 0, 0, false, 2);

/// Writes the closing prices of `date` into the rows, over the prices that they had. Marks a row as
/// suspect if its price leaps by that. Returns the indices of the rows that changed.
pub fn reprice(
    holdings: &mut [Holding],
    date: Date,
    close_of: impl Fn(&Symbol) -> Option<ClosingPrice>,
) -> Vec<usize> {
    let mut changed = Vec::new();
    for (index, row) in holdings.iter_mut().enumerate() {
        let Some(close) = row.symbol().and_then(|symbol| close_of(&symbol)) else { continue };
        let before = (row.last_price, row.close_price, row.as_of_ms, row.mark);
        if row.last_price.is_some_and(|last| is_leap(last, close.price)) {
            row.mark = Some(Mark { on: date, sign: ActionSign::PriceLeap });
        }
        // The broker's previous close belongs to this date only if its price is of this date.
        let of_date = row.close_price.filter(|_| price_date(row) == Some(date));
        row.close_price = close.previous_close.or(of_date);
        row.last_price = Some(close.price);
        row.as_of_ms = close.as_of_ms;
        if before != (row.last_price, row.close_price, row.as_of_ms, row.mark) {
            changed.push(index);
        }
    }
    changed
}

/// Dates the prices that a broker sent while the market was closed to the last close: none can be
/// newer, whenever the sync was. On the morning of the next `session` the broker's previous close
/// may already be that last close. The close before it is then unknown.
pub fn date_back(holdings: &mut [Holding], last_close: Timestamp, session: Date) {
    let is_next_morning = ist::zoned(last_close).date() < session;
    for row in holdings {
        row.as_of_ms = row.as_of_ms.min(last_close.as_millisecond());
        row.close_price = row.close_price.filter(|_| !is_next_morning);
    }
}

/// Whether a price moved so far that only a corporate action explains it.
pub(super) fn is_leap(last: Decimal, now: Decimal) -> bool {
    last > Decimal::ZERO
        && now.checked_div(last).is_none_or(|part| part <= DROP_SUSPECT || part >= RISE_SUSPECT)
}

#[cfg(test)]
#[path = "close_tests.rs"]
mod tests;
