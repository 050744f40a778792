//! Contracts of derivatives: first in, first out on either side, since selling first is normal.

use std::collections::{BTreeMap, VecDeque};

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::ledger::amount::Amount;
use crate::ledger::corrections::How;
use crate::ledger::positions::{Lot, LotSource, Part, PartKind, Sale};
use crate::ledger::row::Side;
use crate::ledger::trades::Trade;

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
/// The months of weekly contracts: `NIFTY2491225100CE` is of September 2024.
const WEEKLY_MONTHS: &[u8; 12] = b"123456789OND";

/// What is open of a trade in a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenContract {
    /// Index in `Ledger::positions`.
    pub position: u32,
    /// Index in `Trades::all`.
    pub trade: u32,
    pub opened: Date,
    pub side: Side,
    pub quantity: Decimal,
    /// Price × quantity.
    pub value: Amount,
    pub charges: Option<Amount>,
    /// The last day on which it can be closed, if that is known.
    pub expiry: Option<Date>,
}

impl OpenContract {
    fn of(position: u32, at: u32, trade: &Trade) -> Self {
        Self {
            position,
            trade: at,
            opened: trade.date,
            side: trade.side,
            quantity: trade.quantity,
            value: Amount::product(trade.price, trade.quantity),
            charges: trade.deductible(),
            expiry: trade.expiry.or_else(|| month_end(&trade.symbol)),
        }
    }

    /// The part of `quantity`, which leaves it.
    fn split_off(&mut self, quantity: Decimal) -> Self {
        let part = |amount: &Amount| amount.part(quantity, self.quantity);
        let taken = Self {
            quantity,
            value: part(&self.value),
            charges: self.charges.as_ref().map(part),
            ..self.clone()
        };
        self.quantity -= quantity;
        self.value = self.value.minus(&taken.value);
        let charges = self.charges.take().zip(taken.charges.as_ref());
        self.charges = charges.map(|(all, part)| all.minus(part));
        taken
    }
}

/// The open contracts of all accounts.
#[derive(Default)]
pub(crate) struct Contracts(BTreeMap<u32, VecDeque<OpenContract>>);

impl Contracts {
    /// What a trade closes. The rest of it is open.
    pub(crate) fn trade(&mut self, position: u32, at: u32, trade: &Trade) -> Option<Sale> {
        let open = self.0.entry(position).or_default();
        let mut closing = OpenContract::of(position, at, trade);
        let mut parts = Vec::new();
        while !closing.quantity.is_zero()
            && let Some(opening) = open.front_mut()
            && opening.side != closing.side
        {
            let quantity = opening.quantity.min(closing.quantity);
            let opened = opening.split_off(quantity);
            let closed = closing.split_off(quantity);
            if opening.quantity.is_zero() {
                open.pop_front();
            }
            parts.push(part(opened, closed));
        }
        if !closing.quantity.is_zero() {
            open.push_back(closing);
        }
        let first = parts.first()?;
        let charges = first.charges.clone();
        let charges = parts[1..]
            .iter()
            .fold(charges, |sum, part| match (sum, &part.charges) {
                (Some(sum), Some(charges)) => Some(sum.plus(charges)),
                (sum, charges) => sum.or_else(|| charges.clone()),
            });
        Some(Sale {
            position,
            sold: trade.date,
            quantity: parts.iter().map(|part| part.lot.quantity).sum(),
            proceeds: parts
                .iter()
                .fold(Amount::ZERO, |sum, part| sum.plus(&part.proceeds)),
            charges,
            trade: Some(at),
            uncovered: Decimal::ZERO,
            parts,
        })
    }

    /// What is open, by position and in the order in which it was opened.
    pub(crate) fn end(self) -> Vec<OpenContract> {
        self.0.into_values().flatten().collect()
    }
}

fn part(opened: OpenContract, closed: OpenContract) -> Part {
    let opened_on = opened.opened;
    let opening_trade = opened.trade;
    let (bought, sold) = if opened.side == Side::Buy {
        (opened, closed)
    } else {
        (closed, opened)
    };
    let charges = bought.charges.as_ref();
    let lot = Lot {
        acquired_on: opened_on,
        entered: opened_on,
        how: How::Market,
        origin: How::Market,
        quantity: bought.quantity,
        cost: charges.map_or_else(|| bought.value.clone(), |all| bought.value.plus(all)),
        charges: bought.charges,
        source: LotSource::Trade(opening_trade),
        carried: false,
        bonus: None,
    };
    Part {
        kind: PartKind::Contract,
        lot,
        proceeds: sold.value,
        charges: sold.charges,
        beside_bonus: Vec::new(),
    }
}

/// The end of the month that a contract's name says.
fn month_end(symbol: &str) -> Option<Date> {
    let bytes = symbol.as_bytes();
    let named = (1..bytes.len().saturating_sub(4)).find_map(|at| {
        let year = two_digits(bytes.get(at..at + 2)?)?;
        let name = symbol.get(at + 2..at + 5)?;
        let month = MONTHS.iter().position(|month| *month == name)?;
        last_of_month(year, month)
    });
    named.or_else(|| {
        let first_digit = bytes
            .iter()
            .position(u8::is_ascii_digit)
            .filter(|at| *at > 0)?;
        let year = two_digits(bytes.get(first_digit..first_digit + 2)?)?;
        let letter = bytes.get(first_digit + 2)?;
        let month = WEEKLY_MONTHS.iter().position(|month| month == letter)?;
        let day = two_digits(bytes.get(first_digit + 3..first_digit + 5)?)?;
        let end = last_of_month(year, month)?;
        (1..=end.day().into()).contains(&day).then_some(end)
    })
}

fn two_digits(digits: &[u8]) -> Option<i16> {
    let all = digits.len() == 2 && digits.iter().all(u8::is_ascii_digit);
    all.then(|| i16::from(digits[0] - b'0') * 10 + i16::from(digits[1] - b'0'))
}

fn last_of_month(year: i16, month_from_0: usize) -> Option<Date> {
    let month = i8::try_from(month_from_0 + 1).ok()?;
    Date::new(2000 + year, month, 1)
        .ok()
        .map(Date::last_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::lots::{Ledger, replay};
    use crate::ledger::testing::{date, trades_of};

    fn ledger(lines: &[&str]) -> Ledger {
        replay(&trades_of(lines, &[]), &[], date("2026-11-28"))
    }

    /// Opening and closing date, quantity, proceeds and cost of each part.
    fn parts(ledger: &Ledger) -> Vec<String> {
        let of = ledger.sales.iter().flat_map(|sale| {
            sale.parts.iter().map(|part| {
                let figures = [&part.proceeds, &part.lot.cost].map(|of| of.rounded().unwrap());
                let lot = &part.lot;
                format!("{} {} {} {figures:?}", lot.acquired_on, sale.sold, lot.quantity)
            })
        });
        of.collect()
    }

    #[test]
    fn a_contract_may_be_sold_first() {
        let found = ledger(&[
            "a 2024-09-11 buy 25 NIFTY24SEP25100CE 118.40 FO #1",
            "a 2024-09-13 sell 25 NIFTY24SEP25100CE 161.20 FO #2",
            "a 2024-09-11 sell 50 NIFTY24SEP24700PE 88.15 FO #3 brokerage=20",
            "a 2024-09-16 buy 75 NIFTY24SEP24700PE 80 FO #4 brokerage=30",
        ]);
        assert_eq!(
            parts(&found),
            [
                "2024-09-11 2024-09-13 25 [4030.00, 2960.00]",
                "2024-09-11 2024-09-16 50 [4407.50, 4020.00]",
            ]
        );
        let open = &found.contracts[0];
        assert_eq!(
            (open.side, open.quantity, open.expiry),
            (Side::Buy, 25.into(), Some(date("2024-09-30")))
        );
        assert_eq!(open.charges, Some(Amount::from(Decimal::TEN)));
        assert!(
            found
                .positions
                .iter()
                .all(|position| position.uncovered.is_zero())
        );
    }

    #[test]
    fn the_month_is_read_from_the_name() {
        for (symbol, expected) in [
            ("NIFTY24SEP25100CE", Some("2024-09-30")),
            ("NIFTYNXT5024FEB70000PE", Some("2024-02-29")),
            ("3MINDIA25DECFUT", Some("2025-12-31")),
            ("NIFTY2491225100CE", Some("2024-09-30")),
            ("NIFTY24O0325100CE", Some("2024-10-31")),
            ("NIFTY", None),
            ("24SEP", None),
            ("X2400125100CE", None),
            ("", None),
        ] {
            assert_eq!(month_end(symbol), expected.map(date), "{symbol}");
        }
    }
}
