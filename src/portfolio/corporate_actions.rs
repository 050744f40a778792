//! Detects splits, bonuses and other corporate actions: prices that the exchange adjusted, and
//! shares that came or went without money. Pure. Nothing is adjusted; suspect rows are marked.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::base_ratio::{BaseRatio, is_usual_ratio};
use crate::base::{ActionSign, Holding, Mark, MarketDay};
use crate::portfolio::close::{is_before_base, is_leap};

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
/// each row of `after` the row that it continues, and `bases` the adjusted base price that was
/// seen.
///
/// A mark made earlier on the same date stays, because each sync writes the day's point again. The
/// mark of a price leap stays until the quantity has followed, for at most a week. That of a base
/// price stays until quantity and average cost have, for as long as they are waited for.
pub(crate) fn mark(
    before: &[&Holding],
    after: &mut [Holding],
    pairs: &[Option<usize>],
    bases: &[Option<BaseRatio>],
    day: &MarketDay,
) {
    for (at, row) in after.iter_mut().enumerate() {
        let Some(before) = pairs[at].map(|at| before[at]) else {
            continue;
        };
        let base = bases.get(at).copied().flatten();
        row.mark = next_mark(before, row, base, day);
    }
}

fn next_mark(
    before: &Holding,
    after: &Holding,
    base: Option<BaseRatio>,
    day: &MarketDay,
) -> Option<Mark> {
    let today = day.today;
    if let Some((mark, ratio)) = awaited(before, today) {
        return after_base(mark, ratio, before, after, today);
    }
    // If an amount overflows, nothing is suspected.
    let judged = judged(before, after).flatten();
    let seen = base.filter(|_| is_before_base(before, day.trading_date()));
    if let Some(ratio) = seen {
        let mark = Mark {
            on: day.trading_date(),
            sign: ActionSign::BasePrice,
            ratio: Some(ratio),
        };
        match followed(before, after, ratio) {
            Followed::Nothing => return Some(mark),
            Followed::Quantity => {
                return Some(Mark {
                    sign: ActionSign::AverageAwaited,
                    ..mark
                });
            }
            Followed::Cost | Followed::Both => {}
        }
    }
    match judged {
        Some(sign) => Some(Mark {
            on: today,
            sign,
            ratio: None,
        }),
        None => before.mark.filter(|mark| stays(*mark, today)),
    }
}

/// The mark of a base price whose quantity or cost is still waited for.
fn awaited(before: &Holding, today: Date) -> Option<(Mark, BaseRatio)> {
    let mark = before.mark.filter(|mark| mark.is_awaited(today))?;
    Some((mark, mark.ratio?))
}

fn after_base(
    mark: Mark,
    ratio: BaseRatio,
    before: &Holding,
    after: &Holding,
    today: Date,
) -> Option<Mark> {
    let arrived = Some(Mark {
        on: today,
        sign: ActionSign::SharesArrived,
        ratio: None,
    });
    if mark.sign == ActionSign::AverageAwaited {
        return if cost_followed(before, after, ratio) {
            arrived
        } else {
            Some(mark)
        };
    }
    match followed(before, after, ratio) {
        Followed::Nothing => Some(mark),
        Followed::Quantity => Some(Mark {
            sign: ActionSign::AverageAwaited,
            ..mark
        }),
        Followed::Cost => None,
        Followed::Both => arrived,
    }
}

/// What of a holding has followed an adjusted base price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Followed {
    Nothing,
    /// The shares have come, at the old average cost.
    Quantity,
    /// The broker has split the cost and there are no more shares: after a demerger the new ones
    /// are of another company.
    Cost,
    Both,
}

fn followed(before: &Holding, after: &Holding, ratio: BaseRatio) -> Followed {
    let owned = before.quantity();
    let owns = after.quantity();
    let moved = owns
        .checked_div(owned)
        .filter(|moved| *moved > Decimal::ZERO);
    let (Some(moved), Some(size)) = (moved, ratio.quantity_ratio()) else {
        return Followed::Nothing;
    };
    match (is_move_by(moved, size), cost_followed(before, after, ratio)) {
        (true, true) => Followed::Both,
        (true, false) => Followed::Quantity,
        (false, true) if moved == Decimal::ONE && is_known_cost(before, after) => Followed::Cost,
        (false, _) => Followed::Nothing,
    }
}

/// Whether the average cost has followed the base price. An unknown one is not waited for.
fn cost_followed(before: &Holding, after: &Holding, ratio: BaseRatio) -> bool {
    let averages = positive(before.average_price()).zip(positive(after.average_price()));
    averages.is_none_or(|(was, is)| {
        is.checked_div(was)
            .is_some_and(|moved| is_move_by(moved, ratio.0))
    })
}

fn is_known_cost(before: &Holding, after: &Holding) -> bool {
    before.average_price().is_some() && after.average_price().is_some()
}

/// Whether something moved by about `ratio`: by no more than a quarter of the move more or less.
fn is_move_by(moved: Decimal, ratio: Decimal) -> bool {
    let tolerance = (ratio - Decimal::ONE)
        .abs()
        .saturating_mul(PRICE_TOLERANCE_PART);
    (moved - ratio).abs() <= tolerance
}

fn stays(mark: Mark, today: Date) -> bool {
    let days = today
        .since(mark.on)
        .map_or(i32::MAX, |span| span.get_days());
    match mark.sign {
        ActionSign::PriceLeap => days < FOLLOWS_WITHIN_DAYS,
        ActionSign::InverseRatios | ActionSign::SharesArrived => days == 0,
        ActionSign::BasePrice | ActionSign::AverageAwaited => mark.is_awaited(today),
    }
}

/// The marked rows, and the rows that the broker itself calls unreliable, each with the reason.
pub(crate) fn suspicions(holdings: &[Holding]) -> Vec<(&Holding, Why)> {
    let why = |row: &Holding| match (row.mark, row.discrepancy) {
        (Some(mark), _) => Some(Why::Sign(mark.sign)),
        (None, true) => Some(Why::BrokerDiscrepancy),
        (None, false) => None,
    };
    holdings
        .iter()
        .filter_map(|row| Some((row, why(row)?)))
        .collect()
}

/// The corporate action that the step from `before` to `after` suggests. The outer `None` means
/// that an amount overflowed.
fn judged(before: &Holding, after: &Holding) -> Option<Option<ActionSign>> {
    let leapt = leapt(before, after).then_some(ActionSign::PriceLeap);
    let owned = before.quantity();
    let owns = after.quantity();
    if owned <= Decimal::ZERO || owns <= Decimal::ZERO {
        return Some(None);
    }
    let ratio = owns.checked_div(owned)?;
    let size = if ratio >= Decimal::ONE {
        ratio
    } else {
        owned.checked_div(owns)?
    };
    if size < RATIO_MIN {
        return Some(leapt);
    }
    let price_moved = price_inverse(before, after, ratio, size);
    // The price leapt at an earlier sync, and the quantity follows now.
    let quantity_follows_leap = before
        .mark
        .is_some_and(|mark| mark.sign == ActionSign::PriceLeap);
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
                let kept = ratio > Decimal::ONE && was == is && is_usual_ratio(size);
                (given, kept && (price_moved || quantity_follows_leap))
            }
            _ => ((price_moved || quantity_follows_leap) && is_usual_ratio(size), false),
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
    let Some(price) = prices.into_iter().flatten().min() else {
        return Some(true);
    };
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
    let tolerance = (size - Decimal::ONE)
        .saturating_mul(PRICE_TOLERANCE_PART)
        .min(PRICE_TOLERANCE_MAX);
    let value_ratio = is
        .checked_div(was)
        .and_then(|moved| moved.checked_mul(ratio));
    value_ratio.is_some_and(|value_ratio| (value_ratio - Decimal::ONE).abs() <= tolerance)
}

fn positive(price: Option<Decimal>) -> Option<Decimal> {
    price.filter(|price| *price > Decimal::ZERO)
}

#[cfg(test)]
#[path = "corporate_actions_tests.rs"]
mod tests;
