//! Profit of a user's noted trades: buys and sells of one symbol are matched first in, first out.
//!
//! Pure and exact. Each match of a part of one trade with a part of a later one on the other side
//! is a closed pair, so a sale of 10 shares that were bought as 4 and 6 closes two. A sale before
//! any purchase opens a short position, which a later purchase closes. A part of a trade bears its
//! part of the fees; sums are kept as fractions and divided last.

use std::collections::{BTreeMap, HashMap, VecDeque};

use num_rational::Ratio;
use num_traits::{CheckedAdd, CheckedDiv, CheckedMul};
use rust_decimal::Decimal;

/// A trade as its user noted it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotedTrade<'a> {
    pub symbol: &'a str,
    pub is_buy: bool,
    /// Above zero.
    pub quantity: Decimal,
    pub price: Decimal,
    pub fees: Decimal,
}

/// Parts of two trades that close each other. Trades are named by their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClosedPair {
    pub opened_by: usize,
    pub closed_by: usize,
    pub quantity: Decimal,
}

/// The open rest of a trade.
struct Lot {
    at: usize,
    quantity: Decimal,
}

/// The closed pairs of `trades` (oldest first), in the order in which they were closed.
pub(crate) fn closed_pairs(trades: &[NotedTrade<'_>]) -> Vec<ClosedPair> {
    let mut open: HashMap<&str, VecDeque<Lot>> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, trade) in trades.iter().enumerate() {
        let lots = open.entry(trade.symbol).or_default();
        let mut left = trade.quantity;
        while left > Decimal::ZERO
            && let Some(lot) = lots.front_mut()
            && trades[lot.at].is_buy != trade.is_buy
        {
            let quantity = left.min(lot.quantity);
            left -= quantity;
            lot.quantity -= quantity;
            pairs.push(ClosedPair {
                opened_by: lot.at,
                closed_by: at,
                quantity,
            });
            if lot.quantity.is_zero() {
                lots.pop_front();
            }
        }
        if left > Decimal::ZERO {
            lots.push_back(Lot { at, quantity: left });
        }
    }
    pairs
}

/// Total profit of some pairs of `trades`, less their parts of the fees. `None` if it has more
/// digits than the decimal type.
pub(crate) fn realised<'a>(
    trades: &[NotedTrade<'_>],
    pairs: impl IntoIterator<Item = &'a ClosedPair>,
) -> Option<Decimal> {
    let mut sum = Decimal::ZERO;
    let mut closed: BTreeMap<usize, Decimal> = BTreeMap::new();
    for pair in pairs {
        let opened = &trades[pair.opened_by];
        let closing = &trades[pair.closed_by];
        let (bought, sold) = if opened.is_buy {
            (opened, closing)
        } else {
            (closing, opened)
        };
        let gain = sold
            .price
            .checked_sub(bought.price)?
            .checked_mul(pair.quantity)?;
        sum = sum.checked_add(gain)?;
        for at in [pair.opened_by, pair.closed_by] {
            let quantity = closed.entry(at).or_default();
            *quantity = quantity.checked_add(pair.quantity)?;
        }
    }
    let mut fractions = Fraction::default();
    for (at, quantity) in closed {
        let trade = &trades[at];
        if quantity == trade.quantity || trade.fees.is_zero() {
            sum = sum.checked_sub(trade.fees)?;
            continue;
        }
        let part = part_of_fees(trade.fees, quantity, trade.quantity);
        match part.and_then(|part| fractions.checked_add(&part)) {
            Some(together) => fractions = together,
            // The fraction overflows: the 28 digits of the decimal type have to do.
            None => {
                let part = quantity
                    .checked_div(trade.quantity)?
                    .checked_mul(trade.fees)?;
                sum = sum.checked_sub(part)?;
            }
        }
    }
    let decimal = |value: &i128| Decimal::try_from_i128_with_scale(*value, 0).ok();
    sum.checked_sub(decimal(fractions.numer())?.checked_div(decimal(fractions.denom())?)?)
}

/// An exact quotient. Few are added up: at each end of the time asked for, at most one trade of a
/// symbol is closed in part.
type Fraction = Ratio<i128>;

/// The part of the fees that `part` of `whole` shares bears.
fn part_of_fees(fees: Decimal, part: Decimal, whole: Decimal) -> Option<Fraction> {
    fraction(part)?
        .checked_div(&fraction(whole)?)?
        .checked_mul(&fraction(fees)?)
}

fn fraction(value: Decimal) -> Option<Fraction> {
    let value = value.normalize();
    Some(Fraction::new(value.mantissa(), 10_i128.checked_pow(value.scale())?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::json::{parse_decimal as parse, rounded};

    fn noted<'a>(trades: &[(char, &'a str, &str, &str, &str)]) -> Vec<NotedTrade<'a>> {
        let number = |text: &str| parse(text).unwrap();
        let trades = trades
            .iter()
            .map(|(side, symbol, quantity, price, fees)| NotedTrade {
                symbol,
                is_buy: *side == 'B',
                quantity: number(quantity),
                price: number(price),
                fees: number(fees),
            });
        trades.collect()
    }

    /// Trades as `B`/`S`, symbol, quantity, price, fees.
    fn pairs(trades: &[(char, &str, &str, &str, &str)]) -> Vec<(usize, usize, String)> {
        let trades = noted(trades);
        let shown = |profit: Option<Decimal>| {
            profit.map_or("unknown".into(), |profit| profit.normalize().to_string())
        };
        closed_pairs(&trades)
            .iter()
            .map(|pair| (pair.opened_by, pair.closed_by, shown(realised(&trades, [pair]))))
            .collect()
    }

    #[test]
    fn the_first_bought_is_the_first_sold_and_fees_are_shared() {
        let found = pairs(&[
            ('B', "X", "10", "100", "10"),
            ('B', "X", "10", "120", "0"),
            ('B', "Y", "1", "5", "0"),
            ('S', "X", "15", "130", "3"),
        ]);
        // 10 × 30 − 10 − 2, and 5 × 10 − 0 − 1.
        assert_eq!(found, [(0, 3, "288".into()), (1, 3, "49".into())]);
    }

    #[test]
    fn a_short_sale_is_closed_by_a_purchase_and_a_position_may_turn() {
        let found = pairs(&[
            ('S', "X", "5", "100", "0"),
            ('B', "X", "8", "90", "8"),
            ('S', "X", "3", "95", "0"),
            ('S', "X", "1", "95", "0"),
        ]);
        assert_eq!(found, [(0, 1, "45".into()), (1, 2, "12".into())]);
    }

    /// One of three shares is left. Two thirds of 0.0075 are half a paisa, and so is one third of
    /// 0.015.
    #[test]
    fn parts_of_fees_that_do_not_divide_add_up_to_the_half_paisa() {
        let sold = ('S', "X", "1", "100", "0");
        for (fees, sales, expected) in [
            ("1", 3, "-1"),
            ("0.0075", 2, "-0.005"),
            ("0.015", 1, "-0.005"),
            ("0.06", 2, "-0.04"),
        ] {
            let mut trades = vec![('B', "X", "3", "100", fees)];
            trades.extend(std::iter::repeat_n(sold, sales));
            let trades = noted(&trades);
            let found = closed_pairs(&trades);
            assert_eq!(found.len(), sales);
            assert_eq!(realised(&trades, &found), parse(expected), "{fees}");
        }
    }

    #[test]
    fn nothing_is_closed_by_one_side_alone_and_too_many_digits_are_unknown() {
        assert!(pairs(&[('B', "X", "1", "1", "0"), ('B', "X", "1", "2", "0")]).is_empty());
        let most = "999999999999.999999";
        let found = pairs(&[
            ('B', "X", most, "0", most),
            ('S', "X", "0.000007", most, "0.000003"),
        ]);
        assert_eq!(found.len(), 1);
    }

    proptest! {
        /// Compares with whole numbers: 27,720 is divisible by every quantity here.
        #[test]
        fn sums_equal_those_of_fractions(
            trades in prop::collection::vec(
                (any::<bool>(), 1_i64..=12, 0_i64..100_000, 0_i64..10_000), 0..40),
            chosen in prop::collection::vec(any::<bool>(), 80),
        ) {
            const WHOLE: i128 = 27_720;
            let noted: Vec<NotedTrade<'_>> = trades
                .iter()
                .map(|(is_buy, quantity, price, fees)| NotedTrade {
                    symbol: "X",
                    is_buy: *is_buy,
                    quantity: Decimal::from(*quantity),
                    price: Decimal::new(*price, 2),
                    fees: Decimal::new(*fees, 3),
                })
                .collect();
            let pairs = closed_pairs(&noted);
            let chosen = pairs.into_iter().zip(&chosen).filter(|(_, is)| **is);
            let pairs: Vec<ClosedPair> = chosen.map(|(pair, _)| pair).collect();
            // The unit is a 27,720th of a thousandth of a rupee.
            let mut expected = 0_i128;
            for pair in &pairs {
                let quantity: i128 = pair.quantity.mantissa() / 10_i128.pow(pair.quantity.scale());
                let of = |at: usize| &trades[at];
                let opened = of(pair.opened_by);
                let closed = of(pair.closed_by);
                let (bought, sold) = if opened.0 { (opened, closed) } else { (closed, opened) };
                expected += i128::from(sold.2 - bought.2) * quantity * 10 * WHOLE;
                for trade in [opened, closed] {
                    expected -= i128::from(trade.3) * quantity * (WHOLE / i128::from(trade.1));
                }
            }
            let half = 5 * WHOLE * expected.signum();
            let paise = (expected + half) / (10 * WHOLE);
            let found = realised(&noted, &pairs).unwrap();
            prop_assert_eq!(rounded(found), Decimal::from_i128_with_scale(paise, 2));
        }
    }
}
