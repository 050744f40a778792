//! Amounts of rows and totals. Totals are the sums of their rows.

use proptest::prelude::*;

use super::*;
use crate::base::json::rounded;
use crate::base::{Account, ActionSign, Broker, Mark, MarketDay};
use crate::portfolio::testing::{any_holding, holding};
use crate::portfolio::{Accounts, Merged, PointSource, merged, point};

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn the_limits_have_the_documented_values() {
    assert_eq!(QUANTITY_MAX, decimal("1000000000000"));
    assert_eq!(PRICE_MAX, decimal("1000000000"));
}

fn per_share(price: &str) -> Option<Cost> {
    Some(Cost::PerShare(decimal(price)))
}

fn of(rows: &[Holding]) -> Vec<Valued<'_>> {
    valued(rows).unwrap()
}

#[test]
fn a_row_s_value_is_quantity_times_price_with_t1_shares() {
    let mut row = holding("AARON", 0, 1);
    row.t1_quantity = Decimal::ONE;
    row.cost = per_share("161");
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
fn a_cost_counts_only_if_it_covers_all_owned_shares() {
    let mut row = holding("AARON", 3, 1);
    row.cost = Some(Cost::Total(decimal("100")));
    row.last_price = Some(decimal("50"));
    let amounts = valuation(&row).unwrap();
    assert_eq!((amounts.invested, amounts.pnl), (Some(decimal("100")), Some(decimal("50"))));
    row.cost = Some(Cost::Part {
        quantity: Decimal::ONE,
        cost: decimal("100"),
    });
    let amounts = valuation(&row).unwrap();
    assert_eq!((amounts.invested, amounts.pnl, amounts.pnl_pct), (None, None, None));
    assert_eq!(amounts.current_value, Some(decimal("150")));
}

#[test]
fn rows_with_unknown_amounts_are_left_out_and_counted() {
    let known = holding("INFY", 10, 100);
    let mut free = holding("TCS", 2, 1);
    (free.cost, free.last_price) = (None, Some(decimal("50.5")));
    let mut unpriced = holding("SBIN", 3, 700);
    (unpriced.last_price, unpriced.close_price) = (None, None);
    let mut neither = unpriced.clone();
    neither.cost = None;
    let rows = [known, free, unpriced, neither];
    let day = price_date(&rows[0]);
    let sum = summary(&of(&rows), day).unwrap();
    assert_eq!((sum.without_cost, sum.without_price, sum.left_out), (2, 2, 3));
    assert_eq!(sum.value_without_cost, decimal("101"));
    assert_eq!(sum.total_invested, decimal("1000"));
    assert_eq!((sum.total_current_value, sum.total_pnl), (decimal("1101"), Decimal::ZERO));
    assert_eq!((sum.without_close, sum.total_pnl_pct), (2, Some(Decimal::ZERO)));
    assert_eq!(sum.day_pnl, Some(decimal("99")));
    // The two with a price are worth 1,101 and were worth 1,002.
    assert_eq!(rounded(sum.day_pnl_pct.unwrap()), decimal("9.88"));
}

#[test]
fn a_price_of_another_day_is_left_out_of_day_pnl_and_counted() {
    let at = |time: &str| time.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let mut rows = [holding("INFY", 10, 100), holding("TCS", 2, 100)];
    rows[0].as_of_ms = at("2026-11-20T00:00:00+05:30");
    rows[1].as_of_ms = at("2026-11-19T23:59:59+05:30");
    rows.iter_mut()
        .for_each(|row| row.close_price = Some(decimal("99")));
    let copied = rows.clone();
    let sum =
        |day: Option<&str>| summary(&of(&copied), day.map(|day| day.parse().unwrap())).unwrap();
    // 10 of 990, 2 of 198.
    for day in ["2026-11-20", "2026-11-19"] {
        assert_eq!(sum(Some(day)).day_pnl_pct.map(rounded), Some(decimal("1.01")), "{day}");
    }
    assert_eq!(sum(None).day_pnl_pct, None);
    let on = |day| {
        let sum = sum(day);
        (sum.day_pnl, sum.without_day_price, sum.without_close)
    };
    assert_eq!(on(Some("2026-11-20")), (Some(decimal("10")), 1, 0));
    assert_eq!(on(Some("2026-11-19")), (Some(decimal("2")), 1, 0));
    assert_eq!(on(Some("2026-11-21")), (None, 2, 0));
    assert_eq!(on(None), (None, 0, 2), "the calendar does not know");
    rows[1].close_price = None;
    let sum_of = |rows: &[Holding], day: &str| {
        let sum = summary(&of(rows), Some(day.parse().unwrap())).unwrap();
        (sum.day_pnl, sum.without_day_price, sum.without_close)
    };
    assert_eq!(sum_of(&rows, "2026-11-19"), (None, 1, 1), "each for its own reason");
    let sum = sum(None);
    let from = sum.priced_from_ms;
    let to = sum.priced_to_ms;
    assert_eq!((from, to), (Some(rows[1].as_of_ms), Some(rows[0].as_of_ms)));
}

#[test]
fn a_row_s_previous_close_may_be_another_row_s_or_the_broker_s_percentage() {
    let mut own = holding("INFY", 10, 100);
    own.close_price = Some(decimal("98.35"));
    let mut other = Holding {
        account: Account::at(Broker::B),
        close_price: None,
        ..holding("INFY", 3, 100)
    };
    other.change_pct = Some(decimal("1.7"));
    let moved = |rows: &[Holding]| of(rows).last().unwrap().valuation;
    let amounts = moved(&[own.clone(), other.clone()]);
    assert_eq!(amounts.day_pnl, Some(decimal("4.95")), "by the close, to the paisa");
    assert_eq!(amounts.previous_close, own.close_price);
    // 300 is 1.7 % more than 294.99.
    for stranger in [
        Holding {
            exchange: "BSE".into(),
            ..own.clone()
        },
        Holding {
            isin: Some("INTCS".into()),
            ..own.clone()
        },
        Holding {
            isin: None,
            ..own.clone()
        },
        Holding {
            as_of_ms: own.as_of_ms - 86_400_000,
            ..own.clone()
        },
    ] {
        let amounts = moved(&[stranger, other.clone()]);
        assert_eq!(rounded(amounts.day_pnl.unwrap()), decimal("5.01"));
        assert_eq!(amounts.previous_close, None);
        let rows = [other.clone()];
        let day = price_date(&other);
        let change = day_change(&of(&rows), day).unwrap().unwrap();
        assert_eq!(rounded(change.pct.unwrap()), decimal("1.7"), "the broker's own");
        assert_eq!(rounded(change.amount), decimal("5.01"));
    }
    other.change_pct = None;
    assert_eq!(moved(&[other.clone()]).day_pnl, None);
    other.change_pct = Some(decimal("-100"));
    assert_eq!(moved(&[other]).day_pnl, None, "nothing was there before");
}

#[test]
fn a_cost_of_zero_has_no_percentage() {
    assert_eq!(summary([], None).unwrap(), Summary::default());
    assert_eq!(Summary::default().total_pnl_pct, None);
    let mut gift = holding("INFY", 1, 0);
    gift.last_price = Some(decimal("100"));
    let amounts = valuation(&gift).unwrap();
    assert_eq!((amounts.pnl, amounts.pnl_pct), (Some(decimal("100")), None));
    assert_eq!(summary(&of(&[gift]), None).unwrap().total_pnl_pct, None);
}

#[test]
fn holdings_pledged_or_funded_in_full_are_counted() {
    let mut rows = [
        holding("INFY", 0, 1),
        holding("TCS", 0, 1),
        holding("SBIN", 5, 1),
    ];
    rows[0].pledged_quantity = Decimal::TEN;
    rows[1].mtf_quantity = Decimal::TEN;
    rows[2].pledged_quantity = Decimal::TWO;
    let sum = summary(&of(&rows), None).unwrap();
    assert_eq!((sum.pledged_only, sum.mtf_only), (1, 1));
}

#[test]
fn rows_that_pass_the_check_cannot_overflow() {
    let mut row = holding("INFY", 1, 1);
    row.settled_quantity = Decimal::MAX;
    row.t1_quantity = Decimal::MAX;
    assert_eq!(valuation(&row), Err(Overflow));
    row.t1_quantity = Decimal::ZERO;
    row.last_price = Some(decimal("2"));
    assert_eq!(valuation(&row), Err(Overflow));
    let synced = |row: &Holding| Synced {
        holdings: vec![row.clone()],
        ..Synced::default()
    };
    assert_eq!(check(&synced(&row)), Err(Overflow));
    row.settled_quantity = QUANTITY_MAX;
    row.last_price = Some(PRICE_MAX);
    assert_eq!(check(&synced(&row)), Ok(()));
    row.cost = Some(Cost::PerShare(-PRICE_MAX - Decimal::ONE));
    assert_eq!(check(&synced(&row)), Err(Overflow));
    let most = PRICE_MAX * QUANTITY_MAX;
    row.cost = Some(Cost::Total(most));
    assert_eq!(check(&synced(&row)), Ok(()));
    row.cost = Some(Cost::Total(most + Decimal::ONE));
    assert_eq!(check(&synced(&row)), Err(Overflow));
    // A broker sends at most some thousands of rows.
    row.cost = Some(Cost::PerShare(-PRICE_MAX));
    row.t1_quantity = QUANTITY_MAX;
    let largest = of(std::slice::from_ref(&row)).remove(0);
    assert!(summary(std::iter::repeat_n(&largest, 100_000), None).is_ok());
}

fn instant(time: &str) -> jiff::Timestamp {
    time.parse().unwrap()
}

/// Friday, before its close.
fn open_day() -> MarketDay {
    let date: Date = "2026-11-20".parse().unwrap();
    MarketDay {
        today: date,
        session: date,
        day: Some(date),
        last_close: None,
        close_before_open: None,
        session_before: date.yesterday().ok(),
        stood_at: None,
    }
}

/// A row priced in the first hour of Friday, and one of the last second before.
fn rows_of_two_days() -> [Holding; 2] {
    let mut today = holding("INFY", 10, 100);
    today.as_of_ms = instant("2026-11-20T00:30:00+05:30").as_millisecond();
    let mut older = holding("TCS", 1, 3_000);
    older.as_of_ms = instant("2026-11-19T23:59:59+05:30").as_millisecond();
    [today, older]
}

fn both_accounts() -> Accounts {
    Broker::ALL.into_iter().map(Account::at).collect()
}

#[test]
fn a_point_counts_left_out_carried_and_suspect_holdings() {
    let open = open_day();
    let [mut today, mut older] = rows_of_two_days();
    let mark = |on: &str, sign| {
        Some(Mark {
            on: on.parse().unwrap(),
            sign,
            ratio: None,
        })
    };
    older.mark = mark("2026-11-19", ActionSign::InverseRatios);
    let none = |_: &Holding| false;
    let both = both_accounts();
    let calm = point(&open, PointSource::Sync, both, [&today, &older], none).unwrap();
    assert_eq!((calm.carried, calm.left_out, calm.suspect), (1, 0, false));
    assert_eq!(calm.total_invested, decimal("4000"));
    for (on, sign, expected) in [
        ("2026-11-20", ActionSign::InverseRatios, true),
        ("2026-11-20", ActionSign::PriceLeap, true),
        ("2026-11-19", ActionSign::PriceLeap, true),
        ("2026-11-20", ActionSign::SharesArrived, false),
    ] {
        today.mark = mark(on, sign);
        let point = point(&open, PointSource::Sync, both, [&today], none).unwrap();
        assert_eq!(point.suspect, expected, "{on} {sign:?}");
    }
    older.discrepancy = true;
    let doubted = point(&open, PointSource::Sync, both, [&older], none).unwrap();
    let made = doubted.made_of.unwrap();
    assert_eq!((doubted.suspect, made.discrepancies, made.holdings), (false, 1, 1));
}

#[test]
fn on_days_without_a_session_only_closing_prices_are_not_carried() {
    let open = open_day();
    let [mut today, older] = rows_of_two_days();
    let both = both_accounts();
    // On the Saturday after, a price from Friday's session is carried unless it is Friday's close.
    let close = instant("2026-11-20T15:35:00+05:30");
    let tomorrow = open.today.tomorrow().unwrap();
    let saturday = MarketDay {
        today: tomorrow,
        last_close: Some(close),
        ..open
    };
    let carried = |row: &Holding, has_close| {
        point(&saturday, PointSource::Sync, both, [row], |_| has_close)
            .unwrap()
            .carried
            == 1
    };
    assert!(carried(&today, false) && !carried(&today, true));
    assert!(carried(&older, false) && carried(&older, true), "a close of the day before");
    today.as_of_ms = close.as_millisecond();
    assert!(!carried(&today, false), "the broker's word after the close");
    // On Monday before the open every price is carried.
    let monday: Date = "2026-11-23".parse().unwrap();
    let early = MarketDay {
        today: monday,
        session: monday,
        ..saturday
    };
    assert_eq!(
        point(&early, PointSource::Sync, both, [&today], |_| true)
            .unwrap()
            .carried,
        1
    );
}

proptest! {
    #[test]
    fn totals_of_two_parts_sum_to_the_totals_of_all_rows(
        rows in prop::collection::vec(any_holding(), 0..60),
        cut in 0_usize..60,
    ) {
        let day = price_date(&holding("INFY", 1, 1));
        let rows = of(&rows);
        let whole = summary(&rows, day).unwrap();
        let (left, right) = rows.split_at(cut.min(rows.len()));
        let left = summary(left, day).unwrap();
        let right = summary(right, day).unwrap();
        let sums = |sum: &Summary| {
            [
                sum.total_invested,
                sum.total_current_value,
                sum.total_pnl,
                sum.day_pnl.unwrap_or_default(),
                sum.value_without_cost,
                sum.left_out.into(),
            ]
        };
        let parts = sums(&left).into_iter().zip(sums(&right)).map(|(left, right)| left + right);
        prop_assert_eq!(sums(&whole).to_vec(), parts.collect::<Vec<_>>());
        let value_with_cost = whole.total_current_value - whole.value_without_cost;
        prop_assert_eq!(whole.total_pnl, value_with_cost - whole.total_invested);
    }

    /// Exact to the last digit, whichever amounts are unknown.
    #[test]
    fn each_total_is_the_sum_of_its_rows(rows in prop::collection::vec(any_holding(), 0..60)) {
        let rows = of(&rows);
        let sum = summary(&rows, None).unwrap();
        let total = |amount: fn(&Valuation) -> Option<Decimal>| -> Decimal {
            rows.iter().filter_map(|row| amount(&row.valuation)).sum()
        };
        prop_assert_eq!(sum.total_current_value, total(|row| row.current_value));
        prop_assert_eq!(sum.total_pnl, total(|row| row.pnl));
        prop_assert_eq!(sum.total_invested, total(|row| row.pnl.and(row.invested)));
        let expected = total(|row| row.pnl.is_none().then_some(row.current_value).flatten());
        prop_assert_eq!(sum.value_without_cost, expected);
        let left_out = rows.iter().filter(|row| row.valuation.pnl.is_none()).count();
        prop_assert_eq!(sum.left_out as usize, left_out);
    }

    #[test]
    fn merging_by_isin_keeps_quantities_and_amounts(
        rows in prop::collection::vec(any_holding(), 0..40),
    ) {
        let valued = of(&rows);
        let groups: Vec<Merged<'_>> = merged(&valued).unwrap();
        for Merged { parts, quantity, valuation, average_price, .. } in &groups {
            prop_assert!(parts.len() > 1);
            let parts = || parts.iter().map(|part| part.valuation);
            prop_assert_eq!(*quantity, parts().map(|part| part.quantity).sum::<Decimal>());
            let value: Option<Decimal> = parts().map(|part| part.current_value).sum();
            prop_assert_eq!(valuation.current_value, value);
            let invested: Option<Decimal> = parts().map(|part| part.invested).sum();
            prop_assert_eq!(valuation.invested, invested);
            if let (Some(average), Some(invested)) = (average_price, invested) {
                // The average is a quotient of 28 digits. Rounding both sides to paise could
                // separate them if the amount has half a paisa.
                prop_assert!((average * quantity - invested).abs() < Decimal::new(1, 9));
            }
        }
        let twins = |row: &Holding| rows.iter().filter(|other| other.isin == row.isin).count();
        let alone = rows.iter().filter(|row| twins(row) == 1).count();
        let together: usize = groups.iter().map(|group| group.parts.len()).sum();
        prop_assert_eq!(alone + together, rows.len());
    }
}
