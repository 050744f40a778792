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
        let before = (row.last_price, row.close_price, row.change_pct, row.as_of_ms, row.mark);
        if row.last_price.is_some_and(|last| is_leap(last, close.price)) {
            row.mark = Some(Mark { on: date, sign: ActionSign::PriceLeap });
        }
        // The broker's previous close belongs to this date only if its price is of this date.
        let of_date = row.close_price.filter(|_| price_date(row) == Some(date));
        row.close_price = close.previous_close.or(of_date);
        row.change_pct = None;
        row.last_price = Some(close.price);
        row.as_of_ms = close.as_of_ms;
        if before != (row.last_price, row.close_price, row.change_pct, row.as_of_ms, row.mark) {
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
        row.change_pct = row.change_pct.filter(|_| !is_next_morning);
    }
}

/// Dates the prices that a broker sent in a pre-open to the close before it, where they still are
/// that close: the closing price that is kept, or the broker's own previous close. Another price is
/// one that the pre-open has found.
pub fn date_back_unmoved(
    holdings: &mut [Holding],
    close_before_open: Timestamp,
    close_of: impl Fn(&Symbol) -> Option<ClosingPrice>,
) {
    for row in holdings {
        let Some(last) = row.last_price else { continue };
        let kept = row.symbol().and_then(|symbol| close_of(&symbol));
        let kept = kept.filter(|close| close.price == last);
        let is_brokers_close = row.close_price == Some(last)
            || row.change_pct.is_some_and(|percent| percent.is_zero());
        if kept.is_none() && !is_brokers_close {
            continue;
        }
        row.close_price = kept.and_then(|close| close.previous_close);
        row.change_pct = None;
        row.as_of_ms = kept.map_or(close_before_open.as_millisecond(), |close| close.as_of_ms);
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
