//! What a user's noted trades came to: buys and sells of one symbol matched first in, first out.
//!
//! Pure and exact. Each match of a part of one trade with a part of a later one on the other side
//! is a closed pair, so a sale of 10 shares that were bought as 4 and 6 closes two. A sale before
//! any purchase opens a short position, which a later purchase closes.

use std::collections::{HashMap, VecDeque};

use rust_decimal::Decimal;

/// A trade as its user noted it.
#[derive(Debug, Clone, Copy)]
pub struct NotedTrade<'a> {
    pub symbol: &'a str,
    pub is_buy: bool,
    /// Above zero.
    pub quantity: Decimal,
    pub price: Decimal,
    pub fees: Decimal,
}

/// Two parts of trades that close each other, by their place among the trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedPair {
    pub opened_by: usize,
    pub closed_by: usize,
    /// Profit after the parts' shares of the fees; `None` if it has more digits than the decimal
    /// type.
    pub realised: Option<Decimal>,
}

/// What is left of a trade.
struct Lot {
    at: usize,
    quantity: Decimal,
    fees: Decimal,
}

/// The pairs of `trades`, which come oldest first, in the order in which they were closed.
pub fn closed_pairs(trades: &[NotedTrade<'_>]) -> Vec<ClosedPair> {
    let mut open: HashMap<&str, VecDeque<Lot>> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, trade) in trades.iter().enumerate() {
        let lots = open.entry(trade.symbol).or_default();
        let mut own = Lot { at, quantity: trade.quantity, fees: trade.fees };
        while own.quantity > Decimal::ZERO
            && let Some(lot) = lots.front_mut()
            && trades[lot.at].is_buy != trade.is_buy
        {
            let matched = own.quantity.min(lot.quantity);
            let fees = own.take(matched).zip(lot.take(matched));
            let fees = fees.and_then(|(own, other)| own.checked_add(other));
            let realised = fees.and_then(|fees| profit(&trades[lot.at], trade, matched, fees));
            pairs.push(ClosedPair { opened_by: lot.at, closed_by: at, realised });
            if lot.quantity.is_zero() {
                lots.pop_front();
            }
        }
        if own.quantity > Decimal::ZERO {
            lots.push_back(own);
        }
    }
    pairs
}

impl Lot {
    /// Takes a part out, and returns its share of the fees. The last part gets what is left of
    /// them, so that the shares add up to the paisa.
    fn take(&mut self, quantity: Decimal) -> Option<Decimal> {
        let share = match quantity == self.quantity {
            true => Some(self.fees),
            false => {
                quantity.checked_div(self.quantity).and_then(|part| part.checked_mul(self.fees))
            }
        };
        self.quantity -= quantity;
        self.fees -= share.unwrap_or_default();
        share
    }
}

fn profit(
    opened: &NotedTrade<'_>,
    closed: &NotedTrade<'_>,
    quantity: Decimal,
    fees: Decimal,
) -> Option<Decimal> {
    let (bought, sold) = if opened.is_buy { (opened, closed) } else { (closed, opened) };
    let gain = sold.price.checked_sub(bought.price)?.checked_mul(quantity)?;
    gain.checked_sub(fees)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::decimal::parse;

    /// `B`/`S`, symbol, quantity, price, fees.
    fn pairs(trades: &[(char, &str, &str, &str, &str)]) -> Vec<(usize, usize, String)> {
        let number = |text: &str| parse(text).unwrap();
        let trades: Vec<_> = trades
            .iter()
            .map(|(side, symbol, quantity, price, fees)| NotedTrade {
                symbol,
                is_buy: *side == 'B',
                quantity: number(quantity),
                price: number(price),
                fees: number(fees),
            })
            .collect();
        let shown = |realised: Option<Decimal>| {
            realised.map_or("unknown".into(), |profit| profit.normalize().to_string())
        };
        closed_pairs(&trades)
            .iter()
            .map(|pair| (pair.opened_by, pair.closed_by, shown(pair.realised)))
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

    #[test]
    fn shares_of_fees_that_do_not_divide_add_up() {
        let sold = ('S', "X", "1", "100", "0");
        let found = pairs(&[('B', "X", "3", "100", "1"), sold, sold, sold]);
        let sum: Decimal = found.iter().map(|(_, _, profit)| parse(profit).unwrap()).sum();
        assert_eq!((found.len(), sum), (3, Decimal::NEGATIVE_ONE));
    }

    #[test]
    fn nothing_is_closed_by_one_side_alone_and_too_many_digits_are_unknown() {
        assert!(pairs(&[('B', "X", "1", "1", "0"), ('B', "X", "1", "2", "0")]).is_empty());
        let most = "999999999999.999999";
        let found = pairs(&[('B', "X", most, "0", "0"), ('S', "X", most, most, "0")]);
        assert_eq!(found.len(), 1);
    }
}
