//! Cost and value of holdings: each row, the totals, and the point of a day.
//!
//! Pure. Nothing is rounded here. The value sums the rows that have a price; cost and profit sum
//! those that have a price and a cost. Rows that are left out are counted, never estimated.

use std::collections::HashMap;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Cost, Holding, Synced, clock, json};

/// Largest quantity of one row: more than any company has shares.
const QUANTITY_MAX: Decimal = Decimal::from_parts(0xd4a5_1000, 0xe8, 0, false, 0); // 1e12
/// Largest price: above every index, and a hundred times the dearest share.
const PRICE_MAX: Decimal = Decimal::from_parts(1_000_000_000, 0, 0, false, 0);

/// The amounts of one holding. An amount that cannot be known is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Valuation {
    /// Shares owned: settled ones and T1 (bought and not yet delivered).
    pub quantity: Decimal,
    /// Quantity times average cost.
    pub invested: Option<Decimal>,
    /// Quantity times last price.
    pub current_value: Option<Decimal>,
    pub pnl: Option<Decimal>,
    /// Profit in percent of `invested`. `None` also if `invested` is zero.
    pub pnl_pct: Option<Decimal>,
    /// The close that `day_pnl` compares the price with. `None` also if the broker sends only the
    /// change in percent.
    pub previous_close: Option<Decimal>,
    /// Quantity times the change of the price since the previous close.
    pub day_pnl: Option<Decimal>,
}

/// A holding with its amounts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Valued<'a> {
    pub holding: &'a Holding,
    pub(crate) valuation: Valuation,
}

/// Totals over holdings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Cost of the holdings whose cost and price are known. Profit and its percentage cover the
    /// same holdings.
    pub total_invested: Decimal,
    /// Value of every holding that has a price, with or without a known cost.
    pub total_current_value: Decimal,
    pub total_pnl: Decimal,
    /// `None` if `total_invested` is zero.
    pub total_pnl_pct: Option<Decimal>,
    /// Holdings without a known cost.
    pub without_cost: u32,
    /// Holdings without any price, left out of all totals.
    pub without_price: u32,
    /// Value of the holdings without a known cost.
    pub value_without_cost: Decimal,
    /// Holdings that cost and profit leave out, each counted once.
    pub left_out: u32,
    /// Holdings whose shares are all pledged or broker-funded, so that none is owned outright.
    pub pledged_only: u32,
    pub mtf_only: u32,
    /// Change in value on the day asked for, over the holdings whose price is of that day and whose
    /// previous close is known. `None` if there are none.
    pub day_pnl: Option<Decimal>,
    /// `day_pnl` in percent of the value that its holdings had before.
    pub day_pnl_pct: Option<Decimal>,
    /// Holdings left out of `day_pnl` because their price is of another date.
    pub without_day_price: u32,
    /// Holdings left out of `day_pnl` because their previous close is unknown or they have no
    /// price.
    pub without_close: u32,
    /// Times of the oldest and the newest price, Unix milliseconds.
    pub priced_from_ms: Option<i64>,
    pub priced_to_ms: Option<i64>,
}

/// Refuses rows with amounts that no portfolio has. Sums over rows that passed never overflow.
///
/// # Errors
/// [`Overflow`].
pub fn check(synced: &Synced) -> Result<(), Overflow> {
    let fits = |value: Decimal, most: Decimal| value.abs() <= most;
    let price_fits = |price: Option<Decimal>| price.is_none_or(|price| fits(price, PRICE_MAX));
    let cost_max = QUANTITY_MAX.saturating_mul(PRICE_MAX);
    let holding_fits = |row: &Holding| {
        let quantities = [
            row.settled_quantity,
            row.t1_quantity,
            row.pledged_quantity,
            row.mtf_quantity,
            row.disputed_quantity,
        ];
        let cost_fits = match row.cost {
            Some(Cost::PerShare(average)) => price_fits(Some(average)),
            Some(Cost::Total(cost)) => fits(cost, cost_max),
            Some(Cost::Part { quantity, cost }) => {
                fits(quantity, QUANTITY_MAX) && fits(cost, cost_max)
            }
            None => true,
        };
        quantities
            .into_iter()
            .all(|quantity| fits(quantity, QUANTITY_MAX))
            && cost_fits
            && [row.last_price, row.close_price]
                .into_iter()
                .all(price_fits)
    };
    let position_fits = |row: &crate::base::Position| {
        fits(row.quantity, QUANTITY_MAX)
            && fits(row.multiplier, QUANTITY_MAX)
            && [row.average_price, row.last_price, row.close_price]
                .into_iter()
                .all(price_fits)
    };
    let fit =
        synced.holdings.iter().all(holding_fits) && synced.positions.iter().all(position_fits);
    fit.then_some(()).ok_or(Overflow)
}

/// The amounts of one holding at its own last price.
///
/// # Errors
/// [`Overflow`].
pub(crate) fn valuation(holding: &Holding) -> Result<Valuation, Overflow> {
    compared(holding, holding.close_price)
}

/// The amounts of one holding, with its price compared with `previous_close`.
fn compared(holding: &Holding, previous_close: Option<Decimal>) -> Result<Valuation, Overflow> {
    let settled = holding.settled_quantity;
    let quantity = settled.checked_add(holding.t1_quantity).ok_or(Overflow)?;
    let by_quantity = |price: Decimal| quantity.checked_mul(price).ok_or(Overflow);
    let invested = match holding.cost {
        Some(Cost::PerShare(average)) => Some(by_quantity(average)?),
        Some(Cost::Total(cost)) => Some(cost),
        Some(Cost::Part { .. }) | None => None,
    };
    let current_value = holding.last_price.map(by_quantity).transpose()?;
    let pnl = match (current_value, invested) {
        (Some(value), Some(cost)) => Some(value.checked_sub(cost).ok_or(Overflow)?),
        _ => None,
    };
    let pnl_pct = match (pnl, invested) {
        (Some(pnl), Some(cost)) => share(pnl, cost)?,
        _ => None,
    };
    let day_pnl = match (holding.last_price, previous_close, holding.change_pct) {
        (Some(last), Some(close), _) => {
            Some(by_quantity(last.checked_sub(close).ok_or(Overflow)?)?)
        }
        (Some(_), None, Some(percent)) => current_value.and_then(|value| moved(value, percent)),
        _ => None,
    };
    Ok(Valuation {
        quantity,
        invested,
        current_value,
        pnl,
        pnl_pct,
        previous_close,
        day_pnl,
    })
}

/// The change that brought an amount to its present `value`, given the change in percent.
fn moved(value: Decimal, percent: Decimal) -> Option<Decimal> {
    let whole = Decimal::ONE_HUNDRED.checked_add(percent)?;
    value
        .checked_mul(percent)?
        .checked_div(whole)
        .filter(|_| whole > Decimal::ZERO)
}

/// The rows with their amounts. A row without a previous close gets that of another row of the same
/// share on the same exchange, if the prices of both are of the same date.
///
/// # Errors
/// [`Overflow`].
pub(crate) fn valued<'a>(
    holdings: impl IntoIterator<Item = &'a Holding>,
) -> Result<Vec<Valued<'a>>, Overflow> {
    let rows: Vec<&Holding> = holdings.into_iter().collect();
    let lacks_close = |row: &&Holding| row.last_price.is_some() && row.close_price.is_none();
    let closes = if rows.iter().any(lacks_close) {
        closes(&rows)
    } else {
        HashMap::new()
    };
    let valued = |holding: &'a Holding| {
        let others = || closes.get(&listing(holding)?).copied();
        let valuation = compared(holding, holding.close_price.or_else(others))?;
        Ok(Valued { holding, valuation })
    };
    rows.into_iter().map(valued).collect()
}

/// A share on an exchange, and the date of a price.
type Listing<'a> = (&'a str, &'a str, Date);

fn listing(holding: &Holding) -> Option<Listing<'_>> {
    Some((&holding.exchange, holding.isin.as_deref()?, price_date(holding)?))
}

/// The previous closes in the rows. If two differ, the first counts.
fn closes<'a>(rows: &[&'a Holding]) -> HashMap<Listing<'a>, Decimal> {
    let mut closes = HashMap::new();
    for row in rows {
        if let (Some(close), Some(listing)) = (row.close_price, listing(row)) {
            closes.entry(listing).or_insert(close);
        }
    }
    closes
}

/// The totals of valued holdings, and their change on `day`.
///
/// # Errors
/// [`Overflow`].
pub(crate) fn summary<'a>(
    rows: impl IntoIterator<Item = &'a Valued<'a>>,
    day: Option<Date>,
) -> Result<Summary, Overflow> {
    let mut sum = Summary::default();
    let mut day_value = Decimal::ZERO;
    for Valued { holding, valuation } in rows {
        let Valuation {
            invested,
            current_value,
            pnl,
            ..
        } = *valuation;
        if let Some(value) = current_value {
            add(&mut sum.total_current_value, value)?;
            let at = Some(holding.as_of_ms);
            sum.priced_from_ms = [sum.priced_from_ms, at].into_iter().flatten().min();
            sum.priced_to_ms = sum.priced_to_ms.max(at);
        }
        if let (Some(cost), Some(pnl)) = (invested, pnl) {
            add(&mut sum.total_invested, cost)?;
            add(&mut sum.total_pnl, pnl)?;
        } else {
            sum.left_out += 1;
            sum.without_cost += u32::from(invested.is_none());
            sum.without_price += u32::from(current_value.is_none());
            add(&mut sum.value_without_cost, current_value.unwrap_or_default())?;
        }
        if valuation.quantity.is_zero() {
            sum.pledged_only += u32::from(!holding.pledged_quantity.is_zero());
            sum.mtf_only += u32::from(!holding.mtf_quantity.is_zero());
        }
        let is_of_day = day.is_some() && price_date(holding) == day;
        match valuation.day_pnl.filter(|_| is_of_day) {
            Some(moved) => {
                add(sum.day_pnl.get_or_insert_default(), moved)?;
                add(&mut day_value, current_value.unwrap_or_default())?;
            }
            None if current_value.is_some() && day.is_some() && !is_of_day => {
                sum.without_day_price += 1;
            }
            None => sum.without_close += 1,
        }
    }
    sum.total_pnl_pct = share(sum.total_pnl, sum.total_invested)?;
    sum.day_pnl_pct = sum
        .day_pnl
        .map(|moved| gain_pct(moved, day_value))
        .transpose()?
        .flatten();
    Ok(sum)
}

/// The value of what is owned: the sum of the rows that are worth something. A row sold short is
/// no part of it, or the others would be more than the whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owned(Decimal);

/// What is owned in `rows`.
///
/// # Errors
/// [`Overflow`].
pub(crate) fn owned(rows: &[Valued<'_>]) -> Result<Owned, Overflow> {
    Ok(Owned(worth(rows)?.unwrap_or_default()))
}

/// The sum of the rows whose value is not below zero; `None` if there is no such row.
fn worth(rows: &[Valued<'_>]) -> Result<Option<Decimal>, Overflow> {
    let mut sum = None;
    for value in rows.iter().filter_map(|row| row.valuation.current_value) {
        if value >= Decimal::ZERO {
            add(sum.get_or_insert_default(), value)?;
        }
    }
    Ok(sum)
}

impl Owned {
    /// Part of the whole, in percent, that some of its rows are. `None` if one has no price, if
    /// all are sold short, and if nothing is owned.
    ///
    /// # Errors
    /// [`Overflow`].
    pub(crate) fn share_of(self, parts: &[Valued<'_>]) -> Result<Option<Decimal>, Overflow> {
        let has_price = |part: &Valued<'_>| part.valuation.current_value.is_some();
        match worth(parts)?.filter(|_| parts.iter().all(has_price)) {
            Some(worth) => share(worth, self.0),
            None => Ok(None),
        }
    }
}

/// Change of an instrument's value on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DayChange {
    pub(crate) amount: Decimal,
    /// In percent of the value before. `None` if that is zero.
    pub(crate) pct: Option<Decimal>,
}

/// Change of an instrument's value on `day`, over all of its rows. `None` unless the price of each
/// is of that day and its previous close is known.
pub(crate) fn day_change(
    rows: &[Valued<'_>],
    day: Option<Date>,
) -> Result<Option<DayChange>, Overflow> {
    let mut moved = Decimal::ZERO;
    let mut value = Decimal::ZERO;
    for Valued { holding, valuation } in rows {
        let of_day = valuation
            .day_pnl
            .filter(|_| day.is_some() && price_date(holding) == day);
        let Some((of_row, current)) = of_day.zip(valuation.current_value) else {
            return Ok(None);
        };
        add(&mut moved, of_row)?;
        add(&mut value, current)?;
    }
    Ok(Some(DayChange {
        amount: moved,
        pct: gain_pct(moved, value)?,
    }))
}

/// A gain in percent of the value before it, given the value after it.
fn gain_pct(gain: Decimal, value: Decimal) -> Result<Option<Decimal>, Overflow> {
    share(gain, value.checked_sub(gain).ok_or(Overflow)?)
}

/// The IST date of the holding's price.
pub(crate) fn price_date(holding: &Holding) -> Option<Date> {
    clock::date_of_ms(holding.as_of_ms)
}

/// `part` in percent of `whole`; `None` if `whole` is zero or negative.
pub fn share(part: Decimal, whole: Decimal) -> Result<Option<Decimal>, Overflow> {
    if whole <= Decimal::ZERO {
        return Ok(None);
    }
    let sum = whole.checked_add(part).ok_or(Overflow)?;
    // A quotient overflows only if the cost is next to nothing. The percentage then counts as
    // unknown.
    Ok(json::percent_change(sum, whole))
}

pub(crate) fn add(total: &mut Decimal, part: Decimal) -> Result<(), Overflow> {
    *total = total.checked_add(part).ok_or(Overflow)?;
    Ok(())
}

// ---- Overflow
//
// The one error of this module.

/// A quantity, price or sum is larger than any portfolio's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an amount is larger than any portfolio's")]
pub struct Overflow;

#[cfg(test)]
#[path = "valuation_tests.rs"]
mod tests;
