//! Rows of one share in one account, such as its delivered and its margin-funded shares: a broker
//! sends them in any order, and the report of a sync names only what changed.

use sonic_rs::{JsonValueTrait, Value};

use super::user::{rows, written};
use crate::market::days::Days;

/// Rows of TCS at broker A, as quantity and average in paise.
fn holds(days: &Days, lots: &[(i64, i64)]) {
    let lots = lots.iter().map(|(quantity, average)| {
        format!(r#"{{"symbol":"NSE:TCS","quantity":{quantity},"average_paise":{average}}}"#)
    });
    days.holds_at_a(&lots.collect::<Vec<_>>().join(","));
}

/// Numbers of rows added, removed and changed, and the quantities of those changed.
fn told(report: &Value) -> ([u64; 3], Vec<String>) {
    let changes = &report["changes"];
    let counts = ["added_count", "removed_count", "changed_count"]
        .map(|name| changes[name].as_u64().unwrap());
    let changed = rows(changes, "changed").iter().map(|row| {
        let quantity = &row["quantity"];
        if quantity.is_null() {
            return "same".to_owned();
        }
        format!("{} to {}", written(&quantity[0]), written(&quantity[1]))
    });
    (counts, changed.collect())
}

#[test]
fn another_order_of_equal_rows_is_no_change() {
    let days = Days::from("2026-11-16T11:00:00+05:30");
    days.price_anew("NSE:TCS", "300");
    holds(&days, &[(10, 25000), (40, 26000)]);
    days.sync("a");
    type Step = (&'static [(i64, i64)], [u64; 3], &'static [&'static str]);
    let steps: [Step; 8] = [
        (&[(40, 26000), (10, 25000)], [0, 0, 0], &[]),
        // One of two changed, in the other order.
        (&[(12, 25500), (40, 26000)], [0, 0, 1], &["10 to 12"]),
        // A third row, before the others.
        (&[(7, 27000), (40, 26000), (12, 25500)], [1, 0, 0], &[]),
        (&[(12, 25500), (7, 27000), (40, 26000)], [0, 0, 0], &[]),
        (&[(40, 26000), (5, 27000), (12, 25500)], [0, 0, 1], &["7 to 5"]),
        (&[(12, 25500), (40, 26000)], [0, 1, 0], &[]),
        // Both, by their averages.
        (&[(30, 26000), (6, 25500)], [0, 0, 2], &["40 to 30", "12 to 6"]),
        (&[(6, 25500), (30, 26500)], [0, 0, 1], &["same"]),
    ];
    for (lots, counts, changed) in steps {
        holds(&days, lots);
        let report = days.sync("a");
        let changed: Vec<String> = changed.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(told(&report), (counts, changed), "{lots:?}");
        assert_eq!(rows(&report, "suspected_corporate_actions").len(), 0, "{report:?}");
    }
}

#[test]
fn another_order_of_the_lists_of_broker_b_is_no_change() {
    const DEMAT: [(&str, &str, &str); 2] = [
        ("TCS", "INE467B01029", "50"),
        ("INFTEC", "INE009A01021", "5"),
    ];
    const COSTS: [(&str, &str, &str, &str); 3] = [
        ("TCS", "10", "250", "NSE:TCS"),
        ("TCS", "40", "260", "NSE:TCS"),
        ("INFTEC", "5", "800", "NSE:INFY"),
    ];
    let days = Days::from("2026-11-16T11:00:00+05:30");
    days.holds_at_b(&DEMAT, &COSTS);
    days.sync("b");
    let mut turned = (DEMAT, COSTS);
    turned.0.reverse();
    turned.1.reverse();
    days.holds_at_b(&turned.0, &turned.1);
    assert_eq!(told(&days.sync("b")), ([0, 0, 0], Vec::new()));
}
