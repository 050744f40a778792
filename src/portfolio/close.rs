//! A portfolio at the closing prices of a trading date. Pure.

use jiff::Timestamp;
use rust_decimal::Decimal;

use super::value::is_of;
use super::{Overflow, Point, point};
use crate::base::{Holding, Symbol, ist};

/// A close at or below this part of the last known price, or at or above its inverse, looks like a
/// split, a bonus or a consolidation: the common ones at least halve or double the price. A 1:2
/// bonus, which takes a third, is not told from a terrible month.
const DROP_SUSPECT: Decimal = Decimal::from_parts(60, 0, 0, false, 2);
const RISE_SUSPECT: Decimal = Decimal::from_parts(167, 0, 0, false, 2);

/// The point of the date whose official close stood at `close`: `holdings` at what `close_of`
/// gives. Where it gives nothing, at the last price that the broker named: that is carried, unless
/// it was true at the close or later.
///
/// # Errors
/// [`Overflow`].
pub fn point_at_close(
    mut holdings: Vec<Holding>,
    close: Timestamp,
    close_of: impl Fn(&Symbol) -> Option<Decimal>,
) -> Result<Point, Overflow> {
    let date = ist::zoned(close).date();
    let close_ms = close.as_millisecond();
    let mut is_suspect = false;
    let mut carried = 0;
    for holding in &mut holdings {
        // A mark belongs to the point of the date on which it was made.
        holding.corporate_action &= is_of(holding, date);
        match holding.symbol().and_then(|symbol| close_of(&symbol)) {
            Some(price) => {
                is_suspect |= holding.last_price.is_some_and(|last| is_leap(last, price));
                holding.last_price = Some(price);
            }
            None => {
                let counts = holding.last_price.is_some() && holding.average_price.is_some();
                carried += u32::from(counts && holding.as_of_ms < close_ms);
            }
        }
    }
    // `corporate_action` is judged by the row's own time, which still is that of its sync.
    let point = point(date, &holdings)?;
    Ok(Point { carried, suspect: point.suspect || is_suspect, ..point })
}

/// Whether a price moved as far as only corporate actions move it.
fn is_leap(last: Decimal, close: Decimal) -> bool {
    last > Decimal::ZERO
        && close.checked_div(last).is_none_or(|part| part <= DROP_SUSPECT || part >= RISE_SUSPECT)
}

#[cfg(test)]
#[path = "close_tests.rs"]
mod tests;
