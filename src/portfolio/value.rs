//! What holdings cost and what they are worth: per row, in total, and as the point of a day.
//!
//! Pure. Nothing is rounded here. The totals are the sums of the rows that have both a cost and a
//! price; the others are counted, never guessed.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::Overflow;
use crate::base::{Holding, Synced, decimal, ist};

/// Largest quantity of one row: above every company's number of shares.
const QUANTITY_MAX: Decimal = Decimal::from_parts(0xd4a5_1000, 0xe8, 0, false, 0); // 1e12
/// Largest price: a hundred times the dearest share's, and above it every index.
const PRICE_MAX: Decimal = Decimal::from_parts(1_000_000_000, 0, 0, false, 0);

/// One holding's amounts. What cannot be known is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Valuation {
    /// Owned: settled and T1.
    pub quantity: Decimal,
    /// Quantity by average cost.
    pub invested: Option<Decimal>,
    /// Quantity by last price.
    pub current_value: Option<Decimal>,
    pub pnl: Option<Decimal>,
    /// Of what was invested; `None` also where that is nothing.
    pub pnl_pct: Option<Decimal>,
    /// Quantity by what the price moved since the previous close.
    pub day_pnl: Option<Decimal>,
}

/// A holding with its amounts.
#[derive(Debug, Clone, Copy)]
pub struct Valued<'a> {
    pub holding: &'a Holding,
    pub valuation: Valuation,
}

/// Totals over holdings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    pub total_invested: Decimal,
    pub total_current_value: Decimal,
    pub total_pnl: Decimal,
    /// Zero without holdings; `None` where the holdings cost nothing.
    pub total_pnl_pct: Option<Decimal>,
    /// Holdings without a cost, left out of the three totals.
    pub without_cost: u32,
    /// Holdings without any price, left out as well.
    pub without_price: u32,
    /// What the holdings without a cost are worth, where they have a price.
    pub value_without_cost: Decimal,
    /// Holdings left out of the three totals, each counted once.
    pub left_out: u32,
    /// Over the holdings whose last price and previous close are known.
    pub day_pnl: Decimal,
    /// Holdings left out of `day_pnl`.
    pub without_close: u32,
}

/// A day's point of the trend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    pub date: Date,
    pub total_invested: Decimal,
    pub total_current_value: Decimal,
    pub total_pnl: Decimal,
    /// Holdings left out of the totals.
    pub left_out: u32,
    /// Holdings valued at a price older than the date's.
    pub carried: u32,
    /// A split or bonus is suspected on this date, or a broker calls an average unreliable.
    pub suspect: bool,
}

/// Refuses rows whose amounts no portfolio has; sums over rows that passed always fit.
///
/// # Errors
/// [`Overflow`].
pub fn check(synced: &Synced) -> Result<(), Overflow> {
    let fits = |value: Decimal, most: Decimal| value.abs() <= most;
    let price_fits = |price: Option<Decimal>| price.is_none_or(|price| fits(price, PRICE_MAX));
    let holding_fits = |row: &Holding| {
        let quantities = [
            row.settled_quantity,
            row.t1_quantity,
            row.pledged_quantity,
            row.mtf_quantity,
            row.disputed_quantity,
        ];
        quantities.into_iter().all(|quantity| fits(quantity, QUANTITY_MAX))
            && [row.average_price, row.last_price, row.close_price].into_iter().all(price_fits)
    };
    let position_fits = |row: &crate::base::Position| {
        fits(row.quantity, QUANTITY_MAX)
            && fits(row.multiplier, QUANTITY_MAX)
            && [row.average_price, row.last_price, row.close_price].into_iter().all(price_fits)
    };
    let fit =
        synced.holdings.iter().all(holding_fits) && synced.positions.iter().all(position_fits);
    fit.then_some(()).ok_or(Overflow)
}

/// The amounts of one holding at its own last price.
///
/// # Errors
/// [`Overflow`].
pub fn valuation(holding: &Holding) -> Result<Valuation, Overflow> {
    let settled = holding.settled_quantity;
    let quantity = settled.checked_add(holding.t1_quantity).ok_or(Overflow)?;
    let by_quantity = |price: Decimal| quantity.checked_mul(price).ok_or(Overflow);
    let invested = holding.average_price.map(by_quantity).transpose()?;
    let current_value = holding.last_price.map(by_quantity).transpose()?;
    let pnl = match (current_value, invested) {
        (Some(value), Some(cost)) => Some(value.checked_sub(cost).ok_or(Overflow)?),
        _ => None,
    };
    let pnl_pct = match (pnl, invested) {
        (Some(pnl), Some(cost)) => share(pnl, cost)?,
        _ => None,
    };
    let day_pnl = match (holding.last_price, holding.close_price) {
        (Some(last), Some(close)) => Some(by_quantity(last.checked_sub(close).ok_or(Overflow)?)?),
        _ => None,
    };
    Ok(Valuation { quantity, invested, current_value, pnl, pnl_pct, day_pnl })
}

/// The totals of valued holdings.
///
/// # Errors
/// [`Overflow`].
pub fn summary<'a>(rows: impl IntoIterator<Item = &'a Valuation>) -> Result<Summary, Overflow> {
    let mut sum = Summary::default();
    let mut counted = 0_u32;
    for row in rows {
        match (row.invested, row.current_value, row.pnl) {
            (Some(invested), Some(value), Some(pnl)) => {
                add(&mut sum.total_invested, invested)?;
                add(&mut sum.total_current_value, value)?;
                add(&mut sum.total_pnl, pnl)?;
                counted += 1;
            }
            (invested, value, _) => {
                sum.left_out += 1;
                sum.without_cost += u32::from(invested.is_none());
                sum.without_price += u32::from(value.is_none());
                if invested.is_none() {
                    add(&mut sum.value_without_cost, value.unwrap_or_default())?;
                }
            }
        }
        match row.day_pnl {
            Some(day_pnl) => add(&mut sum.day_pnl, day_pnl)?,
            None => sum.without_close += 1,
        }
    }
    sum.total_pnl_pct = match counted {
        0 => Some(Decimal::ZERO),
        _ => share(sum.total_pnl, sum.total_invested)?,
    };
    Ok(sum)
}

/// The point of `date` for holdings of both brokers.
///
/// # Errors
/// [`Overflow`].
pub fn point<'a>(
    date: Date,
    holdings: impl IntoIterator<Item = &'a Holding>,
) -> Result<Point, Overflow> {
    let mut rows = Vec::new();
    let (mut carried, mut suspect) = (0, false);
    for holding in holdings {
        let valuation = valuation(holding)?;
        let on_date = is_of(holding, date);
        carried += u32::from(valuation.pnl.is_some() && !on_date);
        suspect |= holding.discrepancy || (holding.corporate_action && on_date);
        rows.push(valuation);
    }
    let sum = summary(&rows)?;
    Ok(Point {
        date,
        total_invested: sum.total_invested,
        total_current_value: sum.total_current_value,
        total_pnl: sum.total_pnl,
        left_out: sum.left_out,
        carried,
        suspect,
    })
}

/// Whether the holding's price is of this IST date.
pub(super) fn is_of(holding: &Holding, date: Date) -> bool {
    let at = Timestamp::from_millisecond(holding.as_of_ms);
    at.is_ok_and(|at| ist::zoned(at).date() == date)
}

/// `part` in percent of `whole`; `None` of nothing or less.
pub(super) fn share(part: Decimal, whole: Decimal) -> Result<Option<Decimal>, Overflow> {
    if whole <= Decimal::ZERO {
        return Ok(None);
    }
    let sum = whole.checked_add(part).ok_or(Overflow)?;
    // A quotient that does not fit stands against next to no cost: as good as unknown.
    Ok(decimal::percent_change(sum, whole))
}

pub(super) fn add(total: &mut Decimal, part: Decimal) -> Result<(), Overflow> {
    *total = total.checked_add(part).ok_or(Overflow)?;
    Ok(())
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
