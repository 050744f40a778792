//! Figures that a broker computed from a price which it does not have.

use sonic_rs::{JsonValueTrait, Value};

use super::user::{rows, written};
use crate::market::days::Days;

const MONDAY: &str = "2026-11-16T11:00:00+05:30";

/// A row of broker A's positions, with numbers as it sends them: quantity, average, last price,
/// profit, bought and sold.
fn at_a(name: &str, [quantity, average, last, pnl, bought, sold]: [&str; 6]) -> String {
    format!(
        r#"{{"tradingsymbol":"{name}","exchange":"NFO","product":"NRML","multiplier":1,
        "quantity":{quantity},"average_price":{average},"last_price":{last},"close_price":0,
        "pnl":{pnl},"m2m":{pnl},"unrealised":{pnl},"realised":0,
        "buy_quantity":{bought},"sell_quantity":{sold}}}"#
    )
}

/// A row of broker B's positions.
fn at_b(code: &str, action: &str, [quantity, average, last]: [&str; 3]) -> String {
    format!(
        r#"{{"stock_code":"{code}","exchange_code":"NFO","product_type":"Futures",
        "action":"{action}","quantity":"{quantity}","average_price":"{average}","ltp":"{last}",
        "expiry_date":"31-Dec-2026","strike_price":null,"right":null,"pnl":null}}"#
    )
}

/// The figures of the row with this name in one of the lists.
fn figures(json: &Value, kind: &str, name: &str) -> [String; 4] {
    let is = |row: &&Value| row["type"] == kind && row["tradingsymbol"] == name;
    let row = rows(json, "positions")
        .iter()
        .find(is)
        .unwrap_or_else(|| panic!("{name}: {json:?}"));
    ["last_price", "pnl", "realised", "unrealised"]
        .map(|figure| sonic_rs::to_string(&row[figure]).unwrap())
}

fn totals(json: &Value, kind: &str) -> (u64, u64, String) {
    let of_kind = &json["summary"][kind];
    let number = |name: &str| of_kind[name].as_u64().unwrap();
    let pnl = sonic_rs::to_string(&of_kind["pnl"]).unwrap();
    (number("count"), number("without_pnl"), pnl)
}

const NONE: [&str; 4] = ["null"; 4];

#[test]
fn a_position_without_a_price_has_no_profit_and_is_counted() {
    let days = Days::from(MONDAY);
    let put = at_a("NIFTY26AUG24000PE", ["-75", "55.25", "0", "4143.75", "0", "75"]);
    let future = at_a("IDEA26DECFUT", ["40000", "8.05", "0", "-322000", "40000", "0"]);
    let infy = at_a("INFY", ["5", "1411", "1412.95", "9.75", "5", "0"]);
    let partly = at_a("ITC26DECFUT", ["4", "100", "null", "-403", "5", "1"]);
    let closed = at_a("TCS26DECFUT", ["0", "0", "0", "801", "5", "5"]);
    let free = at_a("LT26DECFUT", ["5", "0", "12", "60", "5", "0"]);
    days.positions_at(
        "a",
        &[
            put,
            future,
            infy.clone(),
            partly.clone(),
            closed.clone(),
            free,
        ]
        .join(","),
        &[partly, infy, closed].join(","),
    );
    days.holds_at_a("");
    days.sync("a");
    let open = days.get("/api/portfolio/positions");
    for name in ["NIFTY26AUG24000PE", "IDEA26DECFUT", "ITC26DECFUT"] {
        assert_eq!(figures(&open, "net", name), NONE, "{name}");
    }
    assert_eq!(figures(&open, "day", "ITC26DECFUT"), NONE);
    // Its average is not known.
    assert_eq!(figures(&open, "net", "LT26DECFUT"), ["12", "null", "null", "null"]);
    assert_eq!(figures(&open, "net", "INFY"), ["1412.95", "9.75", "0", "9.75"]);
    assert_eq!(totals(&open, "net"), (5, 4, "9.75".into()));
    assert_eq!(totals(&open, "day"), (2, 1, "9.75".into()));
    let all = days.get("/api/portfolio/positions?include_closed=true");
    // No price is in the profit of a closed position.
    assert_eq!(figures(&all, "net", "TCS26DECFUT"), ["null", "801", "801", "0"]);
    assert_eq!(totals(&all, "net"), (6, 4, "810.75".into()));
    assert_eq!(totals(&all, "day"), (3, 1, "810.75".into()));
    let export = days.get("/api/portfolio/export");
    assert_eq!(figures(&export, "net", "IDEA26DECFUT"), NONE);
}

#[test]
fn at_broker_b_too_and_a_list_of_unknown_ones_has_no_sum() {
    let days = Days::from(MONDAY);
    days.holds_at_b(&[], &[]);
    let good = at_b("NIFTY", "Sell", ["75", "55.25", "50"]);
    let unknown = [
        at_b("IDECEL", "Buy", ["40000", "8.05", "0"]),
        at_b("RELIND", "Sell", ["250", "2500", "0.00"]),
        at_b("TCS", "Buy", ["175", "0", "3000"]),
    ]
    .join(",");
    days.positions_at("b", &format!("{unknown},{good}"), "");
    days.sync("b");
    let json = days.get("/api/portfolio/positions?type=net");
    assert_eq!(figures(&json, "net", "NIFTY 31-Dec-2026"), ["50", "393.75", "null", "393.75"]);
    assert_eq!(figures(&json, "net", "IDECEL 31-Dec-2026"), NONE);
    assert_eq!(totals(&json, "net"), (4, 3, "393.75".into()));
    days.positions_at("b", &unknown, "");
    days.sync("b");
    let json = days.get("/api/portfolio/positions?type=net");
    assert_eq!(totals(&json, "net"), (3, 3, "null".into()));
}

/// In holdings, totals, trend and export, at both brokers; a live quote then gives the figure.
#[test]
fn a_holding_without_a_price_has_no_figure_until_a_quote_gives_one() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:INFY", "800");
    days.price_anew("NSE:TCS", "300");
    days.holds_at_a(
        r#"{"symbol":"NSE:INFY","quantity":10,"average_paise":70000},
           {"symbol":"NSE:TCS","quantity":40,"average_paise":25000,"unpriced":true}"#,
    );
    let report = days.sync("a");
    // The broker's -10,000 for TCS is not compared with ours.
    let reconciliation = &report["reconciliation"];
    assert_eq!(written(&reconciliation["broker_pnl"]), "1000");
    assert_eq!(written(&reconciliation["difference"]), "0");
    let tcs = &days.holdings()[1];
    for name in [
        "last_price",
        "current_value",
        "pnl",
        "pnl_pct",
        "day_pnl",
        "broker_pnl",
        "as_of",
    ] {
        assert!(tcs[name].is_null(), "{name}: {tcs:?}");
    }
    let summary = days.summary();
    assert_eq!(written(&summary["total_pnl"]), "1000");
    assert_eq!(written(&summary["total_invested"]), "7000");
    assert_eq!(summary["without_price"].as_u64(), Some(1));
    assert_eq!(days.point("2026-11-16")["left_out"].as_u64(), Some(1));
    let export = days.get("/api/portfolio/export");
    assert!(rows(&export, "holdings")[1]["broker_pnl"].is_null());
    let live = crate::support::until("a quote of TCS", || {
        days.scene.advance_ms(500);
        let live = days.get("/api/portfolio/holdings?live=true");
        live["holdings"][1]["last_price"]
            .is_number()
            .then_some(live)
    });
    let tcs = &live["holdings"][1];
    assert_eq!(written(&tcs["last_price"]), "300");
    // 40 x (300 - 250).
    assert_eq!(written(&tcs["pnl"]), "2000");
    assert!(tcs["broker_pnl"].is_null());
    assert_eq!(written(&live["summary"]["total_pnl"]), "3000");
}

#[test]
fn a_holding_at_broker_b_without_a_price_has_no_move_of_the_day() {
    let days = Days::from(MONDAY);
    let rows = r#"{"user_id":"PF0001","demat":[],"portfolio":[{"stock_code":"TCS",
        "quantity":"40","average_price":"250","symbol":"NSE:TCS","unpriced":true}]}"#;
    assert_eq!(days.scene.control("POST", "broker_b/holdings", rows).status, 200);
    days.sync("b");
    let tcs = &days.holdings()[0];
    for name in [
        "last_price",
        "current_value",
        "pnl",
        "day_pnl",
        "day_change_pct",
    ] {
        assert!(tcs[name].is_null(), "{name}: {tcs:?}");
    }
    let summary = days.summary();
    assert!(summary["day_pnl"].is_null());
    assert_eq!(summary["without_price"].as_u64(), Some(1));
}
