//! How many shares a corporate action gives for lots: whole ones, counted over all lots together.

use rust_decimal::Decimal;

use crate::ledger::amount::Amount;
use crate::ledger::corrections::Ratio;

/// Most shares that an action gives, so that the sums of a nonsensical ledger still fit.
const SHARES_MAX: i128 = 1_000_000_000_000_000_000;

/// What a split makes of `held`. A plain change of ISIN leaves the fraction of a share as well.
pub(crate) fn split(held: Decimal, ratio: Ratio) -> Decimal {
    if ratio.is_even() {
        held
    } else {
        whole(held, ratio)
    }
}

/// `held` × the ratio, without the fraction of a share.
pub(crate) fn whole(held: Decimal, ratio: Ratio) -> Decimal {
    let numerator = held.mantissa().checked_mul(i128::from(ratio.numerator));
    let denominator = 10_i128.pow(held.scale()) * i128::from(ratio.denominator);
    let whole = numerator.map_or(SHARES_MAX, |numerator| numerator.div_euclid(denominator));
    Decimal::from_i128_with_scale(whole.min(SHARES_MAX), 0)
}

/// What an action gives for lots of these quantities and costs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// For each lot, in order.
    pub lots: Vec<(Decimal, Amount)>,
    /// Of lots that are all fractions.
    pub cost_of_fractions: Amount,
}

/// The new quantity of each lot, so that the sums from the first lot on are whole. Cost stays with
/// its lot; that of a lot which gives no share of its own goes to the lot that completes one.
pub(crate) fn given(lots: &[(Decimal, Amount)], ratio: Ratio) -> Given {
    let mut held = Decimal::ZERO;
    let mut before = Decimal::ZERO;
    let mut waiting = Amount::ZERO;
    let mut given: Vec<(Decimal, Amount)> = Vec::with_capacity(lots.len());
    for (quantity, cost) in lots {
        held += quantity;
        let until_here = whole(held, ratio);
        let quantity = until_here - before;
        before = until_here;
        if quantity.is_zero() {
            waiting = waiting.plus(cost);
            given.push((quantity, Amount::ZERO));
        } else {
            given.push((quantity, cost.plus(&waiting)));
            waiting = Amount::ZERO;
        }
    }
    if let Some((_, cost)) = given
        .iter_mut()
        .rev()
        .find(|(quantity, _)| !quantity.is_zero())
    {
        *cost = cost.plus(&waiting);
        waiting = Amount::ZERO;
    }
    Given {
        lots: given,
        cost_of_fractions: waiting,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(lots: &[(i64, i64)], numerator: u32, denominator: u32) -> Vec<(String, Amount)> {
        let lots: Vec<(Decimal, Amount)> = lots
            .iter()
            .map(|(quantity, cost)| (Decimal::from(*quantity), Decimal::from(*cost).into()))
            .collect();
        let given = given(
            &lots,
            Ratio {
                numerator,
                denominator,
            },
        );
        given
            .lots
            .into_iter()
            .map(|(quantity, cost)| (quantity.to_string(), cost))
            .collect()
    }

    fn expected(lots: &[(&str, i64)]) -> Vec<(String, Amount)> {
        lots.iter()
            .map(|(quantity, cost)| ((*quantity).to_owned(), Decimal::from(*cost).into()))
            .collect()
    }

    #[test]
    fn whole_shares_are_counted_over_all_lots() {
        for (lots, ratio, wanted) in [
            (&[(10, 100), (10, 200)][..], (42, 25), &[("16", 100), ("17", 200)][..]),
            (&[(1, 10), (1, 10), (1, 10)], (1, 2), &[("0", 0), ("1", 20), ("0", 0)]),
            (&[(3, 5), (3, 5), (3, 5)], (1, 2), &[("1", 5), ("2", 5), ("1", 5)]),
            (&[(7, 70)], (5, 1), &[("35", 70)]),
            (&[(5, 50), (5, 100)], (1, 10), &[("0", 0), ("1", 150)]),
            (&[(5, 50), (4, 100)], (1, 10), &[("0", 0), ("0", 0)]),
            (&[(10, 50), (4, 100)], (1, 10), &[("1", 150), ("0", 0)]),
            (&[], (1, 10), &[]),
        ] {
            let found = shown(lots, ratio.0, ratio.1);
            let mut wanted = expected(wanted);
            if lots == [(1, 10), (1, 10), (1, 10)] {
                // The third lot completes no share, so its cost goes back to the second.
                wanted[1].1 = Decimal::from(30).into();
            }
            assert_eq!(found, wanted, "{lots:?} {ratio:?}");
        }
    }

    #[test]
    fn actions_without_end_stay_within_what_fits() {
        let ratio = Ratio {
            numerator: 1_000_000,
            denominator: 1,
        };
        let mut held: Decimal = "1000000000000.123456789".parse().unwrap();
        for _ in 0..9 {
            held = whole(held, ratio);
        }
        assert_eq!(held, Decimal::from(1_000_000_000_000_000_000_i64));
    }

    #[test]
    fn a_change_of_isin_alone_keeps_fractions() {
        let held: Decimal = "10.75".parse().unwrap();
        let ratio = |numerator, denominator| Ratio {
            numerator,
            denominator,
        };
        assert_eq!(split(held, ratio(1, 1)), held);
        assert_eq!(split(held, ratio(3, 3)), held);
        assert_eq!(split(held, ratio(2, 1)), Decimal::from(21));
        assert_eq!(whole(held, ratio(1, 1)), Decimal::from(10), "what is given is whole");
    }

    proptest! {
        #[test]
        fn units_and_cost_are_conserved(
            lots in prop::collection::vec((1_i64..500, 0_i64..10_000), 0..8),
            numerator in 1_u32..50,
            denominator in 1_u32..50,
        ) {
            let ratio = Ratio { numerator, denominator };
            let lots: Vec<(Decimal, Amount)> = lots
                .iter()
                .map(|(quantity, cost)| (Decimal::from(*quantity), Decimal::from(*cost).into()))
                .collect();
            let given = given(&lots, ratio);
            let held: Decimal = lots.iter().map(|(quantity, _)| quantity).sum();
            let new: Decimal = given.lots.iter().map(|(quantity, _)| quantity).sum();
            let exact = held * Decimal::from(numerator) / Decimal::from(denominator);
            prop_assert_eq!(new, exact.floor());
            let cost = |lots: &[(Decimal, Amount)]| {
                lots.iter().fold(Amount::ZERO, |sum, (_, cost)| sum.plus(cost))
            };
            prop_assert_eq!(cost(&lots), cost(&given.lots).plus(&given.cost_of_fractions));
        }
    }
}
