//! Corrections that a file's lines propose. Nothing is applied by itself: a person takes them.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::base::words;
use crate::ledger::corrections::{Action, Change, Correction, How, OpeningLot, Ratio, Unproved};
use crate::ledger::row::{AccountName, Side};

words! {
    /// Why a line of no price is no purchase on the exchange.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum FreeShares {
        Bonus = "bonus",
        Split = "split",
        /// It does not say.
        Other = "other",
    }
}

/// What a line proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub line: u32,
    pub correction: Correction,
}

/// A line without a price, before the whole file is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeLine {
    pub line: u32,
    pub isin: Isin,
    pub date: Date,
    pub side: Side,
    pub quantity: Decimal,
    pub why: FreeShares,
}

/// Ratios beyond this are none that a company has decided; the quantities mean something else.
const RATIO_SIDE_MAX: u64 = 100;

impl FreeLine {
    /// What the line proposes for `account` where `held` shares were there at the end of the day
    /// before, by the file itself.
    pub(crate) fn proposes(&self, held: Decimal, account: &AccountName) -> Correction {
        match (self.why, self.side) {
            (FreeShares::Split, Side::Buy) => match ratio(held + self.quantity, held) {
                Some(ratio) => self.action(Change::Split {
                    ratio,
                    new_isin: None,
                }),
                None => self.unproved(account),
            },
            (FreeShares::Bonus, Side::Buy) => match ratio(self.quantity, held) {
                Some(ratio) => self.action(Change::Bonus {
                    ratio,
                    allotment_date: None,
                    record_date: None,
                }),
                None => self.opening_lot(account, How::Bonus),
            },
            // Not bought on the exchange, so that its gain is left out until the person says more.
            (FreeShares::Other, Side::Buy) => self.opening_lot(account, How::OffMarket),
            (FreeShares::Other, Side::Sell) => Correction::Transfer {
                account: account.clone(),
                to: None,
                isin: self.isin,
                date: self.date,
                quantity: self.quantity,
            },
            (FreeShares::Bonus | FreeShares::Split, Side::Sell) => self.unproved(account),
        }
    }

    fn action(&self, change: Change) -> Correction {
        Correction::Action(Action {
            account: None,
            isin: self.isin,
            ex_date: self.date,
            change,
        })
    }

    fn opening_lot(&self, account: &AccountName, how: How) -> Correction {
        Correction::OpeningLot(OpeningLot {
            account: account.clone(),
            isin: self.isin,
            date: self.date,
            entered: None,
            quantity: self.quantity,
            cost: Decimal::ZERO,
            how: Some(how),
        })
    }

    /// An action whose ratio the file does not show.
    fn unproved(&self, account: &AccountName) -> Correction {
        Correction::Unproved {
            account: Some(account.clone()),
            isin: self.isin,
            date: self.date,
            what: Unproved::Other,
            note: None,
        }
    }
}

/// `new` for `held`, in lowest terms.
fn ratio(new: Decimal, held: Decimal) -> Option<Ratio> {
    let whole = |number: Decimal| -> Option<u64> {
        let number = number.normalize();
        u64::try_from(number)
            .ok()
            .filter(|whole| *whole > 0 && number.fract().is_zero())
    };
    let new = whole(new)?;
    let held = whole(held)?;
    let common = greatest_common_divisor(new, held);
    let side = |number: u64| {
        let side = number / common;
        u32::try_from(side).ok().filter(|_| side <= RATIO_SIDE_MAX)
    };
    Some(Ratio {
        numerator: side(new)?,
        denominator: side(held)?,
    })
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    let mut larger = one;
    let mut smaller = other;
    while smaller > 0 {
        let rest = larger % smaller;
        larger = smaller;
        smaller = rest;
    }
    larger
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(why: FreeShares, side: Side, quantity: u32) -> FreeLine {
        FreeLine {
            line: 7,
            isin: Isin::parse("INE0EXA01011").unwrap(),
            date: Date::constant(2021, 3, 4),
            side,
            quantity: quantity.into(),
            why,
        }
    }

    fn proposes(line: FreeLine, held: u32) -> Correction {
        line.proposes(held.into(), &AccountName::parse("b").unwrap())
    }

    #[test]
    fn a_ratio_is_that_of_new_shares_to_those_held_in_lowest_terms() {
        let bonus = proposes(line(FreeShares::Bonus, Side::Buy, 30), 20);
        let Correction::Action(Action { change, .. }) = &bonus else {
            panic!("{bonus:?}")
        };
        let ratio = Ratio {
            numerator: 3,
            denominator: 2,
        };
        let expected = Change::Bonus {
            ratio,
            allotment_date: None,
            record_date: None,
        };
        assert_eq!(change, &expected);
        let split = proposes(line(FreeShares::Split, Side::Buy, 40), 10);
        let Correction::Action(Action { change, .. }) = &split else {
            panic!("{split:?}")
        };
        let ratio = Ratio {
            numerator: 5,
            denominator: 1,
        };
        assert_eq!(
            change,
            &Change::Split {
                ratio,
                new_isin: None
            }
        );
    }

    #[test]
    fn shares_whose_ratio_cannot_be_known_propose_no_ratio() {
        let split = proposes(line(FreeShares::Split, Side::Buy, 40), 0);
        assert!(matches!(split, Correction::Unproved { .. }), "{split:?}");
        let odd = proposes(line(FreeShares::Bonus, Side::Buy, 101), 1_000);
        let Correction::OpeningLot(lot) = &odd else {
            panic!("{odd:?}")
        };
        assert_eq!((lot.quantity, lot.how), (101.into(), Some(How::Bonus)));
        let gone = proposes(line(FreeShares::Other, Side::Sell, 5), 5);
        assert!(matches!(gone, Correction::Transfer { to: None, .. }), "{gone:?}");
    }
}
