//! Amounts of rows and totals, and that the parts make the whole.

use proptest::prelude::*;

use super::*;
use crate::base::decimal::rounded;
use crate::portfolio::testing::{any_holding, holding};
use crate::portfolio::{Merged, merged};

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn the_limits_are_what_they_say() {
    assert_eq!(QUANTITY_MAX, decimal("1000000000000"));
    assert_eq!(PRICE_MAX, decimal("1000000000"));
}

#[test]
fn a_row_is_worth_quantity_by_price_t1_included() {
    let mut row = holding("AARON", 0, 1);
    row.t1_quantity = Decimal::ONE;
    row.average_price = Some(decimal("161"));
    row.last_price = Some(decimal("352.95"));
    row.close_price = Some(decimal("352.35"));
    let amounts = valuation(&row).unwrap();
    assert_eq!(amounts.invested, Some(decimal("161")));
    assert_eq!(amounts.current_value, Some(decimal("352.95")));
    assert_eq!(amounts.pnl, Some(decimal("191.95")));
    assert_eq!(rounded(amounts.pnl_pct.unwrap()), decimal("119.22"));
    assert_eq!(amounts.day_pnl, Some(decimal("0.60")));
}

#[test]
fn what_is_not_known_is_left_out_and_counted() {
    let known = holding("INFY", 10, 100);
    let mut free = holding("TCS", 2, 1);
    (free.average_price, free.last_price) = (None, Some(decimal("50.5")));
    let mut mute = holding("SBIN", 3, 700);
    (mute.last_price, mute.close_price) = (None, None);
    let mut neither = mute.clone();
    neither.average_price = None;
    let rows: Vec<_> = [&known, &free, &mute, &neither].map(|row| valuation(row).unwrap()).into();
    let sum = summary(&rows).unwrap();
    assert_eq!((sum.without_cost, sum.without_price, sum.left_out), (2, 2, 3));
    assert_eq!(sum.value_without_cost, decimal("101"));
    assert_eq!(sum.total_invested, decimal("1000"));
    assert_eq!((sum.total_current_value, sum.total_pnl), (decimal("1000"), Decimal::ZERO));
    assert_eq!((sum.without_close, sum.total_pnl_pct), (2, Some(Decimal::ZERO)));
}

#[test]
fn nothing_has_a_percentage_of_zero_and_a_gift_has_none() {
    assert_eq!(
        summary([]).unwrap(),
        Summary { total_pnl_pct: Some(Decimal::ZERO), ..Summary::default() }
    );
    let mut gift = holding("INFY", 1, 0);
    gift.last_price = Some(decimal("100"));
    let amounts = valuation(&gift).unwrap();
    assert_eq!((amounts.pnl, amounts.pnl_pct), (Some(decimal("100")), None));
    assert_eq!(summary([&amounts]).unwrap().total_pnl_pct, None);
}

#[test]
fn an_overflow_is_an_error_and_cannot_pass_the_check() {
    let mut row = holding("INFY", 1, 1);
    row.settled_quantity = Decimal::MAX;
    row.t1_quantity = Decimal::MAX;
    assert_eq!(valuation(&row), Err(Overflow));
    row.t1_quantity = Decimal::ZERO;
    row.last_price = Some(decimal("2"));
    assert_eq!(valuation(&row), Err(Overflow));
    let synced = |row: &Holding| Synced { holdings: vec![row.clone()], ..Synced::default() };
    assert_eq!(check(&synced(&row)), Err(Overflow));
    row.settled_quantity = QUANTITY_MAX;
    row.last_price = Some(PRICE_MAX);
    assert_eq!(check(&synced(&row)), Ok(()));
    row.average_price = Some(-PRICE_MAX - Decimal::ONE);
    assert_eq!(check(&synced(&row)), Err(Overflow));
    // A broker sends at most some thousands of rows.
    row.average_price = Some(-PRICE_MAX);
    row.t1_quantity = QUANTITY_MAX;
    let largest = valuation(&row).unwrap();
    assert!(summary(std::iter::repeat_n(&largest, 100_000)).is_ok());
}

#[test]
fn a_point_says_what_it_stands_on() {
    let date: Date = "2026-11-20".parse().unwrap();
    let at = |time: &str| time.parse::<Timestamp>().unwrap().as_millisecond();
    let mut today = holding("INFY", 10, 100);
    today.as_of_ms = at("2026-11-20T00:30:00+05:30");
    let mut older = holding("TCS", 1, 3_000);
    older.as_of_ms = at("2026-11-19T23:59:59+05:30");
    older.corporate_action = true;
    let calm = point(date, [&today, &older]).unwrap();
    assert_eq!((calm.carried, calm.left_out, calm.suspect), (1, 0, false));
    assert_eq!(calm.total_invested, decimal("4000"));
    today.corporate_action = true;
    assert!(point(date, [&today]).unwrap().suspect);
    older.discrepancy = true;
    assert!(point(date, [&older]).unwrap().suspect);
}

fn valued(rows: &[Holding]) -> Vec<Valued<'_>> {
    let valued = |holding| Valued { holding, valuation: valuation(holding).unwrap() };
    rows.iter().map(valued).collect()
}

proptest! {
    #[test]
    fn the_parts_make_the_whole(rows in prop::collection::vec(any_holding(), 0..60), cut in 0_usize..60) {
        let valuations: Vec<_> = rows.iter().map(|row| valuation(row).unwrap()).collect();
        let whole = summary(&valuations).unwrap();
        let (left, right) = valuations.split_at(cut.min(rows.len()));
        let (left, right) = (summary(left).unwrap(), summary(right).unwrap());
        prop_assert_eq!(whole.total_invested, left.total_invested + right.total_invested);
        prop_assert_eq!(whole.total_current_value, left.total_current_value + right.total_current_value);
        prop_assert_eq!(whole.total_pnl, left.total_pnl + right.total_pnl);
        prop_assert_eq!(whole.total_pnl, whole.total_current_value - whole.total_invested);
        prop_assert_eq!(whole.day_pnl, left.day_pnl + right.day_pnl);
        prop_assert_eq!(whole.left_out, left.left_out + right.left_out);
        prop_assert_eq!(whole.value_without_cost, left.value_without_cost + right.value_without_cost);
    }

    #[test]
    fn merging_by_isin_loses_nothing(rows in prop::collection::vec(any_holding(), 0..40)) {
        let valued = valued(&rows);
        let groups: Vec<Merged<'_>> = merged(&valued).unwrap();
        for group in &groups {
            prop_assert!(group.parts.len() > 1);
            let quantity: Decimal = group.parts.iter().map(|part| part.valuation.quantity).sum();
            prop_assert_eq!(group.quantity, quantity);
            let value: Option<Decimal> = group.parts.iter().map(|part| part.valuation.current_value).sum();
            prop_assert_eq!(group.valuation.current_value, value);
            let invested: Option<Decimal> = group.parts.iter().map(|part| part.valuation.invested).sum();
            prop_assert_eq!(group.valuation.invested, invested);
            if let (Some(average), Some(invested)) = (group.average_price, invested) {
                prop_assert_eq!(rounded(average * quantity), rounded(invested));
            }
        }
        let alone = rows.iter().filter(|row| rows.iter().filter(|other| other.isin == row.isin).count() == 1);
        let together: usize = groups.iter().map(|group| group.parts.len()).sum();
        prop_assert_eq!(alone.count() + together, rows.len());
    }
}
