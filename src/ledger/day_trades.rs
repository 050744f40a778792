//! The trades of one position on one day: what was bought and sold on one exchange is netted, and
//! what is left enters or leaves the lots.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use crate::base::symbol::Exchange;
use crate::ledger::amount::Amount;
use crate::ledger::corrections::How;
use crate::ledger::positions::{Lot, LotSource, Part, PartKind};
use crate::ledger::row::Side;
use crate::ledger::trades::Trade;

/// A trade of a day, and what netting has left of it.
pub(super) struct Line<'a> {
    /// Index in the trades.
    pub(super) at: u32,
    pub(super) trade: &'a Trade,
    pub(super) charges: Option<Amount>,
    pub(super) left: Decimal,
    /// Of a sale: what was bought on the same day.
    pub(super) parts: Vec<Part>,
}

impl Line<'_> {
    /// A lot of some of the shares that were bought.
    pub(super) fn lot(&self, quantity: Decimal) -> Lot {
        let trade = self.trade;
        let charges = self
            .charges
            .as_ref()
            .map(|all| all.part(quantity, trade.quantity));
        let price = Amount::product(trade.price, quantity);
        Lot {
            acquired_on: trade.date,
            entered: trade.date,
            how: How::Market,
            origin: How::Market,
            quantity,
            cost: charges
                .as_ref()
                .map_or_else(|| price.clone(), |charges| price.plus(charges)),
            charges,
            source: LotSource::Trade(self.at),
            carried: false,
            bonus: None,
        }
    }
}

/// The trades of one position on one day.
pub(super) struct Day<'a> {
    pub(super) lines: Vec<Line<'a>>,
}

impl<'a> Day<'a> {
    pub(super) fn of(trades: &[(u32, &'a Trade)]) -> Self {
        let line = |(at, trade): &(u32, &'a Trade)| Line {
            at: *at,
            trade,
            charges: trade.deductible(),
            left: trade.quantity,
            parts: Vec::new(),
        };
        Self {
            lines: trades.iter().map(line).collect(),
        }
    }

    /// Matches what was bought and what was sold on one exchange, the first by time on each side.
    pub(super) fn net(&mut self, exchange: Exchange) {
        let side = |side: Side| {
            let is_of = |line: &&Line<'a>| {
                let trade = line.trade;
                trade.exchange == exchange && trade.side == side && !trade.auction
            };
            let places = self
                .lines
                .iter()
                .enumerate()
                .filter(|(_, line)| is_of(line));
            places.map(|(place, _)| place).collect::<Vec<usize>>()
        };
        let buys = side(Side::Buy);
        let sales = side(Side::Sell);
        let mut buys = buys.into_iter();
        let mut sales = sales.into_iter();
        let mut pair = buys.next().zip(sales.next());
        while let Some((buy, sale)) = pair {
            let quantity = self.lines[buy].left.min(self.lines[sale].left);
            let lot = self.lines[buy].lot(quantity);
            let sold = &mut self.lines[sale];
            let charges = sold.charges.as_ref();
            let part = Part {
                kind: PartKind::Intraday,
                lot,
                proceeds: Amount::product(sold.trade.price, quantity),
                charges: charges.map(|all| all.part(quantity, sold.trade.quantity)),
                beside_bonus: Vec::new(),
            };
            sold.parts.push(part);
            sold.left -= quantity;
            self.lines[buy].left -= quantity;
            let buy = if self.lines[buy].left.is_zero() {
                buys.next()
            } else {
                Some(buy)
            };
            let sale = if self.lines[sale].left.is_zero() {
                sales.next()
            } else {
                Some(sale)
            };
            pair = buy.zip(sale);
        }
    }

    /// Trades of which one exchange's purchase and the other's sale are both left.
    pub(super) fn delivered_across(&self) -> Vec<u32> {
        let is_left = |line: &&Line<'a>| !line.left.is_zero() && !line.trade.auction;
        let left: Vec<&Line<'a>> = self.lines.iter().filter(is_left).collect();
        let of = |line: &Line<'a>| (line.trade.side, line.trade.exchange);
        let seen: BTreeSet<(Side, Exchange)> = left.iter().map(|line| of(line)).collect();
        let meets = |line: &&&Line<'a>| {
            let (side, exchange) = of(line);
            seen.iter()
                .any(|(other, place)| *other != side && *place != exchange)
        };
        left.iter().filter(meets).map(|line| line.at).collect()
    }
}
