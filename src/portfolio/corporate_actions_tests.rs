//! Steps that are suspected to be corporate actions and, more important, steps that are not.

use proptest::prelude::*;

use super::*;
use crate::base::Cost;
use crate::base::base_ratio::USUAL_RATIOS;
use crate::portfolio::close::{StoredCloses, date_prices};
use crate::portfolio::matching::paired;
use crate::portfolio::testing::{friday, holding, price};
use jiff::Timestamp;
use std::collections::HashMap;

fn today() -> Date {
    "2026-11-20".parse().unwrap()
}

fn marked(before: &[&Holding], after: &mut [Holding]) {
    let pairs = paired(before, after);
    mark(before, after, &pairs, &[], &friday());
}

/// The suspicion for the step from one quantity, average and last price to another.
fn seen(was: (i64, &str, &str), is: (i64, &str, &str)) -> Option<ActionSign> {
    seen_after(None, was, is)
}

fn seen_after(
    mark_before: Option<Mark>,
    was: (i64, &str, &str),
    is: (i64, &str, &str),
) -> Option<ActionSign> {
    let row = |(quantity, average, last): (i64, &str, &str)| {
        let mut row = holding("KOTAKBANK", quantity, 1);
        row.cost = average.parse().ok().map(Cost::PerShare);
        row.last_price = last.parse().ok();
        row
    };
    let mut before = row(was);
    before.mark = mark_before;
    let mut after = [row(is)];
    marked(&[&before], &mut after);
    after[0].mark.map(|mark| mark.sign)
}

#[test]
fn splits_bonuses_and_consolidations_are_suspected() {
    let inverse = Some(ActionSign::InverseRatios);
    // Split 1:5, all adjusted; the market moved by two percent.
    assert_eq!(seen((100, "1500", "2000"), (500, "300", "408")), inverse);
    // Bonus 1:2: two thirds of the price.
    assert_eq!(seen((100, "900", "1200"), (150, "600", "795")), inverse);
    // Quantity and price have moved; the broker has not corrected the average yet.
    assert_eq!(seen((100, "1500", "2000"), (200, "1500", "1010")), inverse);
    // The broker never sent a cost.
    assert_eq!(seen((100, "", "2000"), (200, "", "1010")), inverse);
    // Consolidation of ten shares into one.
    assert_eq!(seen((1000, "12", "10"), (100, "120", "98")), inverse);
    let arrived = Some(ActionSign::SharesArrived);
    // The shares came days after the price fell.
    assert_eq!(seen((100, "1500", "400"), (500, "300", "410")), arrived);
    // A bonus of 1:10 on 15 shares. The half share is paid out, and a move of the market hides the
    // price's.
    assert_eq!(seen((15, "110", "220"), (16, "103.13", "200")), arrived);
}

#[test]
fn a_price_leap_is_suspected_at_any_quantity() {
    let leap = Some(ActionSign::PriceLeap);
    assert_eq!(seen((10, "1000", "1400"), (10, "1000", "280")), leap, "the quantity waits");
    assert_eq!(seen((10, "1000", "1400"), (12, "900", "280")), leap, "bought on the same day");
    assert_eq!(seen((10, "1000", "1400"), (5, "1000", "280")), leap, "sold");
    assert_eq!(seen((100, "10", "10"), (100, "10", "100")), leap, "a consolidation");
    assert_eq!(seen((100, "1500", "2000"), (100, "1500", "1200")), leap, "of two fifths");
}

#[test]
fn trades_and_market_moves_are_not_suspected() {
    let nothing = None;
    assert_eq!(seen((100, "1500", "2000"), (100, "1500", "1201")), nothing, "a terrible month");
    assert_eq!(
        seen((100, "1500", "2000"), (200, "1750", "2000")),
        nothing,
        "bought as many again"
    );
    assert_eq!(
        seen((100, "1500", "2000"), (200, "1450", "1400")),
        nothing,
        "bought after a fall"
    );
    assert_eq!(
        seen((100, "1000", "50"), (105, "954.76", "50")),
        nothing,
        "averaging down a ruin"
    );
    assert_eq!(seen((100, "1500", "2000"), (50, "1500", "2000")), nothing, "sold half");
    assert_eq!(seen((100, "", "2000"), (137, "", "1460")), nothing, "no usual ratio");
    assert_eq!(seen((0, "", "2000"), (10, "2000", "2000")), nothing, "a first purchase");
    assert_eq!(seen((10, "2000", "2000"), (0, "2000", "2000")), nothing, "all sold");
}

/// Split 1:5, in which the price moves before the quantity does.
#[test]
fn shares_that_follow_a_leap_complete_it() {
    let leapt = Some(Mark {
        on: today().yesterday().unwrap(),
        sign: ActionSign::PriceLeap,
        ratio: None,
    });
    let after = |is| seen_after(leapt, (10, "1000", "280"), is);
    let leap = Some(ActionSign::PriceLeap);
    let arrived = Some(ActionSign::SharesArrived);
    assert_eq!(after((10, "1000", "285")), leap, "the quantity still waits");
    assert_eq!(after((13, "830", "285")), leap, "more were bought meanwhile");
    assert_eq!(after((50, "200", "285")), arrived);
    assert_eq!(after((50, "1000", "285")), Some(ActionSign::InverseRatios), "the average waits");
    let unknown = seen_after(leapt, (10, "", "280"), (50, "", "285"));
    assert_eq!(unknown, arrived, "no cost, and a usual ratio");
    assert_eq!(seen_after(leapt, (10, "", "280"), (23, "", "285")), leap, "no usual one");
    let consolidated = seen_after(leapt, (1000, "12", "100"), (100, "120", "98"));
    assert_eq!(consolidated, arrived);
}

#[test]
fn a_holding_with_a_new_isin_is_matched_by_its_ticker() {
    let mut before = holding("KOTAKBANK", 10, 2_000);
    before.isin = Some("INE237A01028".into());
    let mut after = [holding("KOTAKBANK", 50, 400)];
    after[0].isin = Some("INE237A01036".into());
    marked(&[&before], &mut after);
    assert!(after[0].mark.is_some());
}

#[test]
fn a_mark_lasts_one_date_and_a_price_leap_one_week() {
    let mut before = holding("INFY", 10, 100);
    for (sign, on, stays) in [
        (ActionSign::InverseRatios, "2026-11-20", true),
        (ActionSign::InverseRatios, "2026-11-19", false),
        (ActionSign::SharesArrived, "2026-11-20", true),
        (ActionSign::SharesArrived, "2026-11-19", false),
        (ActionSign::PriceLeap, "2026-11-14", true),
        (ActionSign::PriceLeap, "2026-11-13", false),
    ] {
        before.mark = Some(Mark {
            on: on.parse().unwrap(),
            sign,
            ratio: None,
        });
        let mut after = [holding("INFY", 10, 100)];
        marked(&[&before], &mut after);
        assert_eq!(after[0].mark, before.mark.filter(|_| stays), "{sign:?} {on}");
    }
}

#[test]
fn a_broker_s_discrepancy_flag_is_a_suspicion() {
    let mut rows = [
        holding("INFY", 1, 1),
        holding("TCS", 1, 1),
        holding("SBIN", 1, 1),
    ];
    rows[0].mark = Some(Mark {
        on: today(),
        sign: ActionSign::InverseRatios,
        ratio: None,
    });
    rows[2].discrepancy = true;
    let reasons: Vec<_> = suspicions(&rows)
        .iter()
        .map(|(_, why)| why.as_str())
        .collect();
    assert_eq!(reasons, ["inverse_ratios", "broker_discrepancy"]);
}

proptest! {
    /// A purchase at about the price of the last sync, at any earlier average.
    #[test]
    fn a_purchase_is_never_suspected(
        owned in 1_i64..1_000_000,
        bought in 1_i64..1_000_000,
        average in price(),
        last in price(),
        moved_pct in -4_i64..=4,
        known in any::<bool>(),
    ) {
        let now = last * Decimal::new(100 + moved_pct, 2);
        let mut before = holding("INFY", owned, 1);
        before.cost = known.then_some(Cost::PerShare(average));
        before.last_price = Some(last);
        let mut after = before.clone();
        after.settled_quantity = (owned + bought).into();
        let cost = average * Decimal::from(owned) + now * Decimal::from(bought);
        after.cost = known.then_some(Cost::Total(cost));
        after.last_price = Some(now);
        let mut rows = [after];
        marked(&[&before], &mut rows);
        prop_assert_eq!(rows[0].mark, None);
    }

    /// A sale does not change the average. The price may move within a day's circuit limits.
    #[test]
    fn a_sale_is_never_suspected(
        owned in 2_i64..1_000_000,
        part in 0_i64..1_000,
        average in price(),
        last in price(),
        moved_pct in -4_i64..=4,
    ) {
        let mut before = holding("INFY", owned, 1);
        (before.cost, before.last_price) = (Some(Cost::PerShare(average)), Some(last));
        let mut after = before.clone();
        after.settled_quantity = (owned * part / 1_000).into();
        after.last_price = Some(last * Decimal::new(100 + moved_pct, 2));
        let mut rows = [after];
        marked(&[&before], &mut rows);
        prop_assert_eq!(rows[0].mark, None);
    }

    /// A usual ratio, with quantity, average and price adjusted, in a market within two percent.
    #[test]
    fn a_split_is_always_suspected(
        owned in 1_000_i64..1_000_000,
        usual in 0_usize..USUAL_RATIOS.len(),
        average in price(),
        last in price(),
        moved_pct in -2_i64..=2,
    ) {
        let (new, old) = USUAL_RATIOS[usual];
        let ratio = Decimal::from(new) / Decimal::from(old);
        let mut before = holding("INFY", owned, 1);
        (before.cost, before.last_price) = (Some(Cost::PerShare(average)), Some(last));
        let mut after = before.clone();
        after.settled_quantity = (Decimal::from(owned) * ratio).floor();
        after.cost = Some(Cost::Total(average * Decimal::from(owned)));
        after.last_price = Some(last * Decimal::new(100 + moved_pct, 2) / ratio);
        let mut rows = [after];
        marked(&[&before], &mut rows);
        prop_assert!(rows[0].mark.is_some());
    }

    #[test]
    fn marking_any_holdings_changes_their_marks_alone(
        owned in any::<i64>(), owns in any::<i64>(), was in any::<i64>(), is in any::<i64>(),
        places in 0_u32..28,
    ) {
        let mut before = holding("INFY", owned, was);
        before.cost = Some(Cost::PerShare(Decimal::new(was, places)));
        let mut after = [holding("INFY", owns, is)];
        after[0].last_price = Some(Decimal::MAX);
        let unmarked = after[0].clone();
        marked(&[&before], &mut after);
        after[0].mark = None;
        prop_assert_eq!(&after[0], &unmarked);
    }
}

#[test]
fn a_row_of_a_date_on_which_no_index_moved_is_of_the_session_before() {
    let stood_at = "2026-11-19T15:35:00+05:30".parse::<Timestamp>().unwrap();
    let evening = "2026-11-20T15:35:00+05:30".parse().unwrap();
    for last_close in [None, Some(evening)] {
        let day = MarketDay {
            stood_at: Some(stood_at),
            last_close,
            ..friday()
        };
        // Of nothing that is stored, with a previous close and with a change in percent alone.
        let as_of_ms = 1_795_156_000_000;
        let said = Holding {
            close_price: Some(98.into()),
            as_of_ms,
            ..holding("NEW", 10, 100)
        };
        let percent = Some("-0.96".parse().unwrap());
        let by_percent = Holding {
            close_price: None,
            change_pct: percent,
            ..said.clone()
        };
        let mut rows = [said, by_percent];
        let closes = StoredCloses {
            of_date: &HashMap::new(),
            before: &HashMap::new(),
        };
        assert_eq!(date_prices(&mut rows, &day, closes), [None, None]);
        for row in rows {
            assert!(as_of_ms > stood_at.as_millisecond());
            assert_eq!(row.as_of_ms, stood_at.as_millisecond());
            assert_eq!((row.close_price, row.change_pct), (None, None));
        }
    }
}
