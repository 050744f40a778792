//! What is suspected and, more important, what is not.

use proptest::prelude::*;

use super::*;
use crate::portfolio::testing::{holding, price};

fn today() -> Date {
    "2026-11-20".parse().unwrap()
}

/// `quantity`, average and last price, before and after.
fn suspected(was: (i64, &str, &str), is: (i64, &str, &str)) -> bool {
    let row = |(quantity, average, last): (i64, &str, &str)| {
        let mut row = holding("KOTAKBANK", quantity, 1);
        row.average_price = average.parse().ok();
        row.last_price = last.parse().ok();
        row
    };
    let mut after = [row(is)];
    mark(&[&row(was)], &mut after, today());
    after[0].corporate_action
}

#[test]
fn splits_bonuses_and_consolidations_are_seen() {
    // Split 1:5, all adjusted; the market moved by two percent.
    assert!(suspected((100, "1500", "2000"), (500, "300", "408")));
    // Bonus 1:2: two thirds of the price.
    assert!(suspected((100, "900", "1200"), (150, "600", "795")));
    // The shares came days after the price fell.
    assert!(suspected((100, "1500", "400"), (500, "300", "410")));
    // Quantity and price moved, the average waits.
    assert!(suspected((100, "1500", "2000"), (200, "1500", "1010")));
    // The cost was never known.
    assert!(suspected((100, "", "2000"), (200, "", "1010")));
    // Ten old shares for a new one.
    assert!(suspected((1000, "12", "10"), (100, "120", "98")));
    // A bonus of 1:10 on 15 shares; the half share is paid out.
    assert!(suspected((15, "110", "220"), (16, "103.13", "200")));
}

#[test]
fn trades_and_moves_of_the_market_are_not() {
    assert!(!suspected((100, "1500", "2000"), (100, "1500", "1000")), "a crash");
    assert!(!suspected((100, "1500", "2000"), (200, "1750", "2000")), "bought as many again");
    assert!(!suspected((100, "1500", "2000"), (200, "1250", "1000")), "bought after a crash");
    assert!(!suspected((100, "1000", "50"), (105, "954.76", "50")), "averaging down a ruin");
    assert!(!suspected((100, "1500", "2000"), (50, "1500", "2000")), "sold half");
    assert!(!suspected((100, "1500", "1000"), (50, "1500", "2000")), "sold half, doubled in price");
    assert!(!suspected((100, "", "2000"), (137, "", "1460")), "no usual ratio");
    assert!(!suspected((0, "", "2000"), (10, "2000", "2000")), "a first purchase");
    assert!(!suspected((10, "2000", "2000"), (0, "2000", "2000")), "all sold");
}

#[test]
fn a_new_isin_under_the_same_ticker_counts() {
    let mut before = holding("KOTAKBANK", 10, 2_000);
    before.isin = Some("INE237A01028".into());
    let mut after = [holding("KOTAKBANK", 50, 400)];
    after[0].isin = Some("INE237A01036".into());
    mark(&[&before], &mut after, today());
    assert!(after[0].corporate_action);
}

#[test]
fn a_mark_lasts_for_its_date() {
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let mut before = holding("INFY", 10, 100);
    before.corporate_action = true;
    for (as_of, expected) in
        [("2026-11-20T09:30:00+05:30", true), ("2026-11-19T15:00:00+05:30", false)]
    {
        before.as_of_ms = at(as_of);
        let mut after = [holding("INFY", 10, 100)];
        mark(&[&before], &mut after, today());
        assert_eq!(after[0].corporate_action, expected, "{as_of}");
    }
}

#[test]
fn the_brokers_own_word_is_told_too() {
    let mut rows = [holding("INFY", 1, 1), holding("TCS", 1, 1), holding("SBIN", 1, 1)];
    rows[0].corporate_action = true;
    rows[2].discrepancy = true;
    let told: Vec<_> = suspicions(&rows).iter().map(|s| s.why.as_str()).collect();
    assert_eq!(told, ["inverse_ratios", "broker_discrepancy"]);
}

proptest! {
    /// Bought at about the price of the last sync, whatever the average was.
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
        (before.average_price, before.last_price) = (known.then_some(average), Some(last));
        let mut after = before.clone();
        after.settled_quantity = (owned + bought).into();
        let cost = average * Decimal::from(owned) + now * Decimal::from(bought);
        after.average_price = known.then_some(cost / Decimal::from(owned + bought));
        after.last_price = Some(now);
        let mut rows = [after];
        mark(&[&before], &mut rows, today());
        prop_assert!(!rows[0].corporate_action);
    }

    /// A sale leaves the average; the price goes where it likes, within a day's circuit.
    #[test]
    fn a_sale_is_never_suspected(
        owned in 2_i64..1_000_000,
        part in 0_i64..1_000,
        average in price(),
        last in price(),
        moved_pct in -4_i64..=4,
    ) {
        let mut before = holding("INFY", owned, 1);
        (before.average_price, before.last_price) = (Some(average), Some(last));
        let mut after = before.clone();
        after.settled_quantity = (owned * part / 1_000).into();
        after.last_price = Some(last * Decimal::new(100 + moved_pct, 2));
        let mut rows = [after];
        mark(&[&before], &mut rows, today());
        prop_assert!(!rows[0].corporate_action);
    }

    /// A usual ratio, everything adjusted, a market within two percent.
    #[test]
    fn a_split_is_always_suspected(
        owned in 1_000_i64..1_000_000,
        usual in 0_usize..USUAL_RATIOS.len(),
        average in price(),
        last in price(),
        moved_pct in -2_i64..=2,
    ) {
        let ratio = USUAL_RATIOS[usual];
        let mut before = holding("INFY", owned, 1);
        (before.average_price, before.last_price) = (Some(average), Some(last));
        let mut after = before.clone();
        after.settled_quantity = (Decimal::from(owned) * ratio).floor();
        after.average_price = Some(average * Decimal::from(owned) / after.settled_quantity);
        after.last_price = Some(last * Decimal::new(100 + moved_pct, 2) / ratio);
        let mut rows = [after];
        mark(&[&before], &mut rows, today());
        prop_assert!(rows[0].corporate_action);
    }

    #[test]
    fn nothing_panics(
        owned in any::<i64>(), owns in any::<i64>(), was in any::<i64>(), is in any::<i64>(),
        places in 0_u32..28,
    ) {
        let mut before = holding("INFY", owned, was);
        before.average_price = Some(Decimal::new(was, places));
        let mut after = [holding("INFY", owns, is)];
        after[0].last_price = Some(Decimal::MAX);
        mark(&[&before], &mut after, today());
    }
}
