//! Holdings of which nothing is left, and holdings below zero.

use sonic_rs::{JsonValueTrait, Value};

use super::user::{rows, written};
use crate::market::days::Days;

fn text(value: &Value) -> String {
    sonic_rs::to_string(value).unwrap()
}

#[test]
fn shares_to_come_that_make_up_for_those_sold_are_no_holding() {
    let days = Days::from("2026-11-16T11:00:00+05:30");
    days.price_anew("NSE:TCS", "300");
    days.holds_at_a(
        r#"{"symbol":"NSE:INFY","quantity":-10,"undelivered":10,"average_paise":70000},
           {"symbol":"NSE:ITC","quantity":3,"undelivered":-3,"average_paise":40000},
           {"symbol":"NSE:TCS","quantity":10,"average_paise":25000}"#,
    );
    assert_eq!(days.sync("a")["holdings_count"].as_u64(), Some(1));
    assert_eq!(days.holdings().len(), 1);
    assert_eq!(written(&days.summary()["total_current_value"]), "3000");
    assert_eq!(days.point("2026-11-16")["holdings"].as_u64(), Some(1));
}

/// INFY is short: 5 x -800. Of what is owned, 10,000, TCS is 9,000 and ITC 1,000.
#[test]
fn shares_of_the_whole_are_of_what_is_owned() {
    let days = Days::from("2026-11-16T11:00:00+05:30");
    for (symbol, price) in [("NSE:INFY", "800"), ("NSE:TCS", "300"), ("NSE:ITC", "400")] {
        days.price_anew(symbol, price);
    }
    days.holds_at_a(
        r#"{"symbol":"NSE:INFY","quantity":-5,"average_paise":70000},
           {"symbol":"NSE:TCS","quantity":30,"average_paise":25000},
           {"symbol":"NSE:ITC","undelivered":1,"quantity":1,"average_paise":25000},
           {"symbol":"NSE:ITC","quantity":1,"average_paise":25000,"unpriced":true}"#,
    );
    days.sync("a");
    let held = days.holdings();
    let shares: Vec<String> = held.iter().map(|row| text(&row["share_pct"])).collect();
    // 9,000 and 800 of 9,800.
    assert_eq!(shares, ["null", "91.84", "8.16", "null"]);
    let summary = days.summary();
    assert_eq!(written(&summary["total_current_value"]), "5800");
    let slices = |of: &str| -> Vec<[String; 3]> {
        let slices = rows(&summary["allocation"], of).iter();
        slices
            .map(|slice| ["of", "current_value", "share_pct"].map(|name| text(&slice[name])))
            .collect()
    };
    assert_eq!(slices("brokers"), [["\"a\"", "5800", "100"]]);
    let expected = [
        ["\"Information Technology\"", "5000", "91.84"],
        ["\"Fast Moving Consumer Goods\"", "800", "8.16"],
    ];
    assert_eq!(slices("sectors"), expected);
    // Nothing is owned at all.
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":-5,"average_paise":70000}"#);
    days.sync("a");
    assert!(days.holdings()[0]["share_pct"].is_null());
    assert_eq!(written(&days.summary()["total_current_value"]), "-4000");
}
