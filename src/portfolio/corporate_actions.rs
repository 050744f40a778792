//! Splits, bonuses and consolidations, as they look from outside: shares that came (or went)
//! without money. Pure. Nothing is adjusted; rows are marked.

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::close::is_leap;
use crate::base::{ActionSign, Holding, Mark};

/// Least move of the quantity that can be one: a bonus of one share for twenty.
const RATIO_MIN: Decimal = millionths(1_050_000);
/// How far the cost of the whole holding may move: brokers round an average to paise.
const COST_TOLERANCE: Decimal = millionths(20_000);
/// What new shares cost at most, as a part of their price, if they count as given. A purchase costs
/// about its price.
const GIVEN_COST_MAX: Decimal = millionths(100_000);
/// Where the cost says nothing, the price has to have moved by the inverse ratio, so nearly as a
/// fourth of that move, and at most by a tenth: the market moves between two syncs as well.
const PRICE_TOLERANCE_MAX: Decimal = millionths(100_000);
const PRICE_TOLERANCE_PART: Decimal = millionths(250_000);
/// How near a quantity has to be to a usual ratio: fractions of a share are paid out.
const USUAL_TOLERANCE: Decimal = millionths(5_000);
/// Ratios that companies use: bonus of 1:10 to 9:1, splits of 2 to 10, 20, 50 and 100.
const USUAL_RATIOS: [Decimal; 22] = [
    millionths(1_100_000),
    millionths(1_125_000),
    millionths(1_142_857),
    millionths(1_166_667),
    millionths(1_200_000),
    millionths(1_250_000),
    millionths(1_333_333),
    millionths(1_400_000),
    millionths(1_500_000),
    millionths(1_600_000),
    millionths(1_666_667),
    millionths(1_750_000),
    millionths(2_000_000),
    millionths(2_500_000),
    millionths(3_000_000),
    millionths(4_000_000),
    millionths(5_000_000),
    millionths(6_000_000),
    millionths(8_000_000),
    millionths(10_000_000),
    millionths(20_000_000),
    millionths(100_000_000),
];

/// A constant decimal.
const fn millionths(count: u32) -> Decimal {
    Decimal::from_parts(count, 0, 0, false, 6)
}

/// Brokers credit the shares of a split or a bonus within days. A quantity that has not followed
/// the price by then belongs to a real move.
const FOLLOWS_WITHIN_DAYS: i32 = 7;

/// What speaks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Sign(ActionSign),
    /// The broker says that its own average is unreliable.
    BrokerDiscrepancy,
}

impl Why {
    /// The word that clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sign(sign) => sign.as_str(),
            Self::BrokerDiscrepancy => "broker_discrepancy",
        }
    }
}

/// A holding under suspicion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspicion<'a> {
    pub holding: &'a Holding,
    pub why: Why,
}

/// Marks the rows of one broker's new holdings that look split since `before`. A mark made earlier
/// on the same date stays, because the day's point is written anew by each sync; a leap of the
/// price stays marked until the quantity has followed. `pairs` has for each row of `after` the row
/// that it continues.
pub fn mark(before: &[&Holding], after: &mut [Holding], pairs: &[Option<usize>], today: Date) {
    for (row, pair) in after.iter_mut().zip(pairs.iter().copied()) {
        let Some(before) = pair.map(|at| before[at]) else { continue };
        // An amount that does not fit says nothing.
        row.mark = match judged(before, row).flatten() {
            Some(sign) => Some(Mark { on: today, sign }),
            None => before.mark.filter(|mark| stays(*mark, today)),
        };
    }
}

fn stays(mark: Mark, today: Date) -> bool {
    let days = today.since(mark.on).map_or(i32::MAX, |span| span.get_days());
    match mark.sign {
        ActionSign::PriceLeap => days < FOLLOWS_WITHIN_DAYS,
        ActionSign::InverseRatios | ActionSign::SharesArrived => days == 0,
    }
}

/// The marked rows and those that the broker itself calls unreliable.
pub fn suspicions(holdings: &[Holding]) -> Vec<Suspicion<'_>> {
    let why = |row: &Holding| match (row.mark, row.discrepancy) {
        (Some(mark), _) => Some(Why::Sign(mark.sign)),
        (None, true) => Some(Why::BrokerDiscrepancy),
        (None, false) => None,
    };
    holdings.iter().filter_map(|row| Some(Suspicion { holding: row, why: why(row)? })).collect()
}

/// What the step from one row to the other looks like; the outer `None` where an amount does not
/// fit.
fn judged(before: &Holding, after: &Holding) -> Option<Option<ActionSign>> {
    let leapt = leapt(before, after).then_some(ActionSign::PriceLeap);
    let (owned, owns) = (before.quantity(), after.quantity());
    if owned <= Decimal::ZERO || owns <= Decimal::ZERO {
        return Some(None);
    }
    let ratio = owns.checked_div(owned)?;
    let size = if ratio >= Decimal::ONE { ratio } else { owned.checked_div(owns)? };
    if size < RATIO_MIN {
        return Some(leapt);
    }
    let price_moved = price_inverse(before, after, ratio, size);
    // The price has leapt already, and now the quantity follows.
    let awaited = before.mark.is_some_and(|mark| mark.sign == ActionSign::PriceLeap);
    let (given, uncorrected) =
        match (positive(before.average_price()), positive(after.average_price())) {
            (Some(was), Some(is)) => {
                let cost_stayed = cost_stayed(before, after, ratio, (was, is))?;
                // A sale may leave the cost alone by accident, so fewer shares need more than that.
                let given = cost_stayed && (ratio > Decimal::ONE || price_moved || awaited);
                // Brokers correct the average days after the quantity. A sale leaves it by design.
                let kept = ratio > Decimal::ONE && was == is && is_usual(size);
                (given, kept && (price_moved || awaited))
            }
            _ => ((price_moved || awaited) && is_usual(size), false),
        };
    Some(match () {
        () if uncorrected || (given && price_moved) => Some(ActionSign::InverseRatios),
        () if given => Some(ActionSign::SharesArrived),
        () => leapt,
    })
}

fn leapt(before: &Holding, after: &Holding) -> bool {
    let prices = positive(before.last_price).zip(positive(after.last_price));
    prices.is_some_and(|(was, is)| is_leap(was, is))
}

/// Whether the whole cost what it did before, and the difference in shares cost next to nothing.
fn cost_stayed(
    before: &Holding,
    after: &Holding,
    ratio: Decimal,
    (was, is): (Decimal, Decimal),
) -> Option<bool> {
    let cost_ratio = ratio.checked_mul(is)?.checked_div(was)?;
    if (cost_ratio - Decimal::ONE).abs() > COST_TOLERANCE {
        return Some(false);
    }
    let cost_was = before.quantity().checked_mul(was)?;
    let cost_is = after.quantity().checked_mul(is)?;
    let prices = [positive(before.last_price), positive(after.last_price)];
    let Some(price) = prices.into_iter().flatten().min() else { return Some(true) };
    let shares = after.quantity().checked_sub(before.quantity())?.abs();
    let worth = shares.checked_mul(price)?.checked_mul(GIVEN_COST_MAX)?;
    Some(cost_is.checked_sub(cost_was)?.abs() <= worth)
}

/// Whether the price moved by the inverse of `ratio`, market aside; `size` is the ratio or its
/// inverse, whichever is above one.
fn price_inverse(before: &Holding, after: &Holding, ratio: Decimal, size: Decimal) -> bool {
    let (Some(was), Some(is)) = (positive(before.last_price), positive(after.last_price)) else {
        return false;
    };
    let tolerance =
        (size - Decimal::ONE).saturating_mul(PRICE_TOLERANCE_PART).min(PRICE_TOLERANCE_MAX);
    let value_ratio = is.checked_div(was).and_then(|moved| moved.checked_mul(ratio));
    value_ratio.is_some_and(|value_ratio| (value_ratio - Decimal::ONE).abs() <= tolerance)
}

fn is_usual(size: Decimal) -> bool {
    let near = |usual: &Decimal| (size - usual).abs() <= usual.saturating_mul(USUAL_TOLERANCE);
    USUAL_RATIOS.iter().any(near)
}

fn positive(price: Option<Decimal>) -> Option<Decimal> {
    price.filter(|price| *price > Decimal::ZERO)
}

#[cfg(test)]
#[path = "corporate_actions_tests.rs"]
mod tests;
