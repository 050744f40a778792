//! Detects splits, bonuses and consolidations: shares that came or went without money. Pure.
//! Nothing is adjusted; suspect rows are marked.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{ActionSign, ClosingPrice, Holding, Mark, Symbol, clock};
use crate::portfolio::valuation::price_date;

/// Smallest ratio of new to old quantity that can be a corporate action: a bonus of one share for
/// twenty.
const RATIO_MIN: Decimal = millionths(1_050_000);
/// Largest change of the whole holding's cost, as a share of it, that counts as none. Brokers round
/// an average price to paise.
const COST_TOLERANCE: Decimal = millionths(20_000);
/// Highest cost of new shares, as a share of their price, at which they count as given. A purchase
/// costs about the price.
const GIVEN_COST_MAX: Decimal = millionths(100_000);
/// Tolerance of the price's move, which has to be the inverse ratio if the cost does not decide: a
/// quarter of that move and at most a tenth, because the market moves between two syncs as well.
const PRICE_TOLERANCE_MAX: Decimal = millionths(100_000);
const PRICE_TOLERANCE_PART: Decimal = millionths(250_000);
/// Largest distance of a quantity from a usual ratio. It is rarely exact, because fractions of a
/// share are paid out in money.
const USUAL_TOLERANCE: Decimal = millionths(5_000);
/// Ratios that companies use: bonuses of 1:10 to 9:1, and splits into 2 to 10, 20, 50 and 100.
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

/// A decimal constant from a count of millionths.
const fn millionths(count: u32) -> Decimal {
    Decimal::from_parts(count, 0, 0, false, 6)
}

/// Brokers credit the shares of a split or a bonus within days. If the quantity has not followed
/// the price by then, the price move was real.
const FOLLOWS_WITHIN_DAYS: i32 = 7;

/// Why a corporate action is suspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Sign(ActionSign),
    /// The broker itself flags its average price as unreliable.
    BrokerDiscrepancy,
}

impl Why {
    /// Name of the reason in the API.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sign(sign) => sign.as_str(),
            Self::BrokerDiscrepancy => "broker_discrepancy",
        }
    }
}

/// Marks those of one broker's new holdings that look as if split since `before`. `pairs` has for
/// each row of `after` the row that it continues.
///
/// A mark made earlier on the same date stays, because each sync writes the day's point again. The
/// mark of a price leap stays until the quantity has followed, for at most a week.
pub(crate) fn mark(
    before: &[&Holding],
    after: &mut [Holding],
    pairs: &[Option<usize>],
    today: Date,
) {
    for (row, pair) in after.iter_mut().zip(pairs.iter().copied()) {
        let Some(before) = pair.map(|at| before[at]) else { continue };
        // If an amount overflows, nothing is suspected.
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

/// The marked rows, and the rows that the broker itself calls unreliable, each with the reason.
pub(crate) fn suspicions(holdings: &[Holding]) -> Vec<(&Holding, Why)> {
    let why = |row: &Holding| match (row.mark, row.discrepancy) {
        (Some(mark), _) => Some(Why::Sign(mark.sign)),
        (None, true) => Some(Why::BrokerDiscrepancy),
        (None, false) => None,
    };
    holdings.iter().filter_map(|row| Some((row, why(row)?))).collect()
}

/// The corporate action that the step from `before` to `after` suggests. The outer `None` means
/// that an amount overflowed.
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
    // The price leapt at an earlier sync, and the quantity follows now.
    let quantity_follows_leap = before.mark.is_some_and(|mark| mark.sign == ActionSign::PriceLeap);
    let (given, uncorrected) =
        match (positive(before.average_price()), positive(after.average_price())) {
            (Some(was), Some(is)) => {
                let cost_stayed = cost_stayed(before, after, ratio, (was, is))?;
                // After a sale the cost may be the same by accident. So a lower quantity needs one
                // more sign.
                let given =
                    cost_stayed && (ratio > Decimal::ONE || price_moved || quantity_follows_leap);
                // Brokers correct the average days after the quantity, so it may still be the old
                // one. After a sale it stays the same by design.
                let kept = ratio > Decimal::ONE && was == is && is_usual(size);
                (given, kept && (price_moved || quantity_follows_leap))
            }
            _ => ((price_moved || quantity_follows_leap) && is_usual(size), false),
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

/// Whether the cost of the whole holding stayed the same, and the shares that were added cost next
/// to nothing.
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

/// Whether the price moved by the inverse of `ratio`, apart from the market's own move. `size` is
/// the ratio or its inverse, whichever is above one.
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

// ---- Close
//
// Writes the closing prices of a trading date into the rows of a portfolio. Pure.

/// A price at or below this share of the last known one, or at or above its inverse, looks like a
/// split, a bonus or a consolidation: the common ones at least halve or double the price. A 1:2
/// bonus takes only a third off, which a very bad month can do too, so it is not detected.
const DROP_SUSPECT: Decimal = Decimal::from_parts(60, 0, 0, false, 2);
const RISE_SUSPECT: Decimal = Decimal::from_parts(167, 0, 0, false, 2);

/// Replaces the prices of the rows by the closing prices of `date`. Marks a row as suspect if its
/// price leaps. Returns the indices of the changed rows.
pub(crate) fn reprice(
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
pub(crate) fn date_back(holdings: &mut [Holding], last_close: Timestamp, session: Date) {
    let is_next_morning = clock::zoned(last_close).date() < session;
    for row in holdings {
        row.as_of_ms = row.as_of_ms.min(last_close.as_millisecond());
        row.close_price = row.close_price.filter(|_| !is_next_morning);
        row.change_pct = row.change_pct.filter(|_| !is_next_morning);
    }
}

/// Dates the prices that a broker sent in a pre-open to the close before it, if they still equal
/// that close: the stored closing price, or the broker's own previous close. A different price
/// comes from the pre-open's matching.
pub(crate) fn date_back_unmoved(
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
#[path = "corporate_actions_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "close_tests.rs"]
mod close_tests;
