//! The order in which the corrections of a ledger are applied: by date, by their kind within a day,
//! and by what they say. Neither names nor the order in which they were entered decide.

use std::cmp::Ordering;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::ledger::amount::Amount;
use crate::ledger::corrections::{Change, Correction};

/// A correction that changes lots, on its date.
pub(super) struct Event {
    pub(super) date: Date,
    /// The place of its kind in a day.
    pub(super) place: u8,
    /// Index in the corrections.
    pub(super) correction: u32,
}

/// Places of the kinds of actions in a day are up to this one.
pub(super) const ACTION_PLACE_MAX: u8 = 3;

/// The corrections that change lots, in the order of time. Of one day and kind they go by date of
/// purchase, price and quantity.
pub(super) fn events(corrections: &[(String, Correction)]) -> Vec<Event> {
    let mut events: Vec<Event> = corrections
        .iter()
        .enumerate()
        .filter_map(|(at, (_, correction))| {
            let (date, place) = event(correction)?;
            Some(Event {
                date,
                place,
                correction: at as u32,
            })
        })
        .collect();
    events.sort_by(|left, right| {
        let of = |event: &Event| &corrections[event.correction as usize];
        (left.date, left.place)
            .cmp(&(right.date, right.place))
            .then_with(|| cmp_corrections(&of(left).1, &of(right).1))
            .then_with(|| of(left).0.cmp(&of(right).0))
    });
    events
}

fn event(correction: &Correction) -> Option<(Date, u8)> {
    match correction {
        Correction::Action(action) => {
            let place = match action.change {
                Change::Split { .. } => 0,
                Change::Merger { .. } => 1,
                Change::Demerger { .. } => 2,
                Change::Bonus { .. } => ACTION_PLACE_MAX,
            };
            Some((action.ex_date, place))
        }
        Correction::Rights { date, .. } => Some((*date, 4)),
        Correction::OpeningLot(lot) => Some((lot.entered.unwrap_or(lot.date), 5)),
        Correction::Transfer { date, .. } => Some((*date, 6)),
        Correction::Buyback { date, .. } => Some((*date, 7)),
        _ => None,
    }
}

fn cmp_corrections(left: &Correction, right: &Correction) -> Ordering {
    match (left, right) {
        (Correction::OpeningLot(left), Correction::OpeningLot(right)) => {
            let price =
                |cost: Decimal, quantity: Decimal| Amount::from(cost).over(&Amount::from(quantity));
            left.date
                .cmp(&right.date)
                .then_with(|| {
                    price(left.cost, left.quantity).cmp(&price(right.cost, right.quantity))
                })
                .then_with(|| left.quantity.cmp(&right.quantity))
        }
        (
            Correction::Rights {
                quantity: left,
                price: left_price,
                ..
            }
            | Correction::Buyback {
                quantity: left,
                price: left_price,
                ..
            },
            Correction::Rights {
                quantity: right,
                price: right_price,
                ..
            }
            | Correction::Buyback {
                quantity: right,
                price: right_price,
                ..
            },
        ) => (left_price, left).cmp(&(right_price, right)),
        (
            Correction::Transfer {
                account: left_from,
                to: left_to,
                quantity: left,
                ..
            },
            Correction::Transfer {
                account: right_from,
                to: right_to,
                quantity: right,
                ..
            },
        ) => (left_from, left, left_to).cmp(&(right_from, right, right_to)),
        (Correction::Action(left), Correction::Action(right)) => (
            left.isin,
            &left.change,
            &left.account,
        )
            .cmp(&(right.isin, &right.change, &right.account)),
        _ => Ordering::Equal,
    }
}
