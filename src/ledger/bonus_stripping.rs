//! Section 94(8): shares bought shortly before a bonus and sold at a loss while shares of the bonus
//! are kept. The law ignores such a loss and makes it the cost of the bonus shares.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::Date;

use crate::base::Isin;
use crate::ledger::amount::Amount;
use crate::ledger::corrections::{Change, Correction};
use crate::ledger::positions::{Lot, Position, Sale};
use crate::ledger::row::AccountName;
use crate::ledger::securities::Security;

/// Sales from this date on: the rule was of fund units alone before.
const FROM: Date = Date::constant(2022, 4, 1);
const MONTHS_BEFORE: i32 = 3;
const MONTHS_AFTER: i32 = 9;

/// A bonus, with the dates around which a sale may strip it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bonus {
    /// Index in the corrections.
    pub correction: u32,
    record_date: Date,
}

impl Bonus {
    pub(crate) fn of(at: u32, correction: &Correction) -> Option<(Isin, Self)> {
        let Correction::Action(action) = correction else {
            return None;
        };
        let Change::Bonus { record_date, .. } = action.change else {
            return None;
        };
        let record_date = record_date.unwrap_or(action.ex_date);
        Some((
            action.isin,
            Self {
                correction: at,
                record_date,
            },
        ))
    }

    /// Whether the dates of a lot and of its sale are those of the section.
    pub(crate) fn may_strip(&self, lot: &Lot, sold: Date) -> bool {
        let earliest = self.record_date.saturating_sub(MONTHS_BEFORE.months());
        let latest = self.record_date.saturating_add(MONTHS_AFTER.months());
        lot.bonus != Some(self.correction)
            && (earliest..=self.record_date).contains(&lot.acquired_on)
            && sold > self.record_date
            && sold <= latest
            && sold >= FROM
    }
}

/// Losses beside a bonus of which the seller still held shares, by person and security.
pub(crate) fn ignored_losses(
    positions: &[Position],
    sales: &[Sale],
    owner: &dyn Fn(&AccountName) -> String,
) -> BTreeMap<(String, Security), Amount> {
    let mut losses: BTreeMap<(String, Security), Amount> = BTreeMap::new();
    for sale in sales {
        let position = &positions[sale.position as usize];
        for part in sale
            .parts
            .iter()
            .filter(|part| !part.beside_bonus.is_empty())
        {
            let seller = owner(&position.account);
            let charges = part.charges.clone().unwrap_or_default();
            let gain = part.proceeds.minus(&charges).minus(&part.lot.cost);
            let holds = part
                .beside_bonus
                .iter()
                .any(|(_, account)| owner(account) == seller);
            if holds && gain.is_negative() {
                let sum = losses
                    .entry((seller, position.security.clone()))
                    .or_default();
                *sum = sum.plus(&gain.negated());
            }
        }
    }
    losses
}
