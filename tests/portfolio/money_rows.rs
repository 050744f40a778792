//! Single rows of a portfolio: broker B's two lists merged, costs, pledges, positions.

use sonic_rs::{JsonValueTrait, Value};

use super::user::{decimal, rows, written};
use crate::market::days::{Days, known};
use crate::support::bearer;

const MONDAY: &str = "2026-11-16T11:00:00+05:30";
const TCS: &str = "INE467B01029";

#[test]
fn one_code_under_two_isins_is_one_holding_in_any_order() {
    const OLD: (&str, &str, &str) = ("KOTMAH", "INE237A01028", "0");
    const NEW: (&str, &str, &str) = ("kotmah", "INE237A01036", "50");
    let days = Days::from(MONDAY);
    days.price_anew("NSE:KOTAKBANK", "2000");
    for demat in [[OLD, NEW], [NEW, OLD]] {
        days.holds_at_b(&demat, &[("KotMah", "50", "1800", "NSE:KOTAKBANK")]);
        assert_eq!(days.sync("b")["holdings_count"].as_u64(), Some(1));
        let held = days.holdings();
        assert_eq!(held.len(), 1, "{held:?}");
        let row = &held[0];
        assert_eq!((&row["tradingsymbol"], &row["isin"]), (&"KOTAKBANK".into(), &NEW.1.into()));
        assert_eq!(
            (written(&row["quantity"]), written(&row["pnl"])),
            ("50".into(), "10000".into())
        );
        assert_eq!(written(&row["disputed_quantity"]), "0");
        assert_eq!(written(&days.summary()["total_current_value"]), "100000");
    }
}

/// The holding's cost is unknown, and the known part is shown.
#[test]
fn a_known_average_is_not_applied_to_shares_of_unknown_cost() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:TCS", "300");
    days.holds_at_b(&[("TCS", TCS, "40")], &[("TCS", "30", "250", "NSE:TCS")]);
    days.sync("b");
    let row = &days.holdings()[0];
    assert_eq!(
        (written(&row["quantity"]), written(&row["disputed_quantity"])),
        ("40".into(), "10".into())
    );
    for name in ["average_price", "invested", "pnl", "pnl_pct"] {
        assert!(row[name].is_null(), "{name}: {row:?}");
    }
    assert_eq!(written(&row["known_cost"]["quantity"]), "30");
    assert_eq!(written(&row["known_cost"]["cost"]), "7500");
    let summary = days.summary();
    assert_eq!(summary["without_cost"].as_u64(), Some(1));
    assert_eq!(written(&summary["total_current_value"]), "12000");
    assert_eq!(written(&summary["value_without_cost"]), "12000");
}

/// Two lots whose mean has no finite decimals: the cost is stored, since the mean times the
/// quantity is a paisa less.
#[test]
fn lots_of_one_share_are_exact_to_the_paisa() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:TCS", "100.05");
    let lots = [
        ("TCS", "183585", "255.267", "NSE:TCS"),
        ("TCS", "116494", "96.35", "NSE:TCS"),
    ];
    days.holds_at_b(&[("TCS", TCS, "300079")], &lots);
    days.sync("b");
    let row = &days.holdings()[0];
    // 183585 x 255.267 + 116494 x 96.35 = 58,087,389.095; 300079 x 100.05 = 30,022,903.95
    assert_eq!(written(&row["invested"]), "58087389.1");
    assert_eq!(written(&row["pnl"]), "-28064485.15");
    let summary = days.get("/api/portfolio/pnl")["summary"].clone();
    assert_eq!(written(&summary["total_pnl"]), "-28064485.15");
    let export = days.get("/api/portfolio/export");
    assert_eq!(written(&rows(&export, "holdings")[0]["cost"]), "58087389.095");
    assert_eq!(written(&rows(&export, "pnl_snapshots")[0]["total_pnl"]), "-28064485.145");
}

#[test]
fn shares_that_are_pledged_or_funded_alone_are_counted() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:INFY", "800");
    days.holds_at_a(
        r#"{"symbol":"NSE:INFY","quantity":10,"average_paise":70000},
           {"symbol":"NSE:TCS","pledged":7,"average_paise":25000},
           {"symbol":"NSE:ITC","funded":9,"average_paise":25000}"#,
    );
    days.sync("a");
    let summary = days.summary();
    assert_eq!(summary["pledged_only"].as_u64(), Some(1));
    assert_eq!(summary["mtf_only"].as_u64(), Some(1));
    assert_eq!(written(&summary["total_current_value"]), "8000");
}

/// A member as it stands in the document.
fn text(value: &Value) -> String {
    sonic_rs::to_string(value).unwrap()
}

/// INFY rose by 12 from 800, TCS fell by 3 from 300; ITC is pledged, and no list has SIMUNK.
fn moved() -> Days {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:INFY", "800");
    days.price_anew("NSE:TCS", "300");
    days.price_anew("NSE:ITC", "400");
    days.holds_at_a(
        r#"{"symbol":"NSE:INFY","quantity":100,"average_paise":70000},
           {"symbol":"NSE:TCS","quantity":10,"average_paise":25000},
           {"symbol":"NSE:ITC","pledged":7,"average_paise":25000}"#,
    );
    days.holds_at_b(
        &[("TCS", TCS, "500"), ("SIMUNK", "INE0SIM01019", "50")],
        &[
            ("TCS", "500", "250.00", "NSE:TCS"),
            ("SIMUNK", "50", "100.00", "NSE:ITC"),
        ],
    );
    days.scene.advance_ms(1_000);
    days.price("NSE:INFY", "812");
    days.price("NSE:TCS", "297");
    days.sync("b");
    days.sync("a");
    days
}

/// Each holding's change of the day and that of all, with names, brokers and sectors, as one
/// computes them with a pencil.
#[test]
fn todays_change_and_the_parts_of_the_whole_are_exact() {
    let days = moved();
    let summary = days.summary();
    let held = days.holdings();
    let row = |broker: &str, name: &str| {
        let is = |row: &&Value| row["broker"] == broker && row["tradingsymbol"] == name;
        held.iter()
            .find(is)
            .unwrap_or_else(|| panic!("{broker} {name}: {held:?}"))
    };
    for (broker, symbol, name, day_pnl, day_pct, share) in [
        // 100 x 12; 1200 of 80,000; 81,200 of 252,670.
        ("a", "INFY", "Infosys", "1200", "1.5", "32.14"),
        // 10 x -3; -30 of 3,000; 2,970 of the whole.
        ("a", "TCS", "Tata Consultancy Services", "-30", "-1", "1.18"),
        ("a", "ITC", "ITC", "0", "null", "0"),
        // 500 x -3 by the close in broker A's row.
        ("b", "TCS", "Tata Consultancy Services", "-1500", "-1", "58.77"),
        ("b", "SIMUNK", "null", "0", "0", "7.92"),
    ] {
        let row = row(broker, symbol);
        let found = ["day_pnl", "day_change_pct", "share_pct"].map(|of| text(&row[of]));
        assert_eq!(found, [day_pnl, day_pct, share], "{broker} {symbol}");
        assert_eq!(row["name"].as_str().unwrap_or("null"), name);
    }
    // 1200 - 30 - 1500 of 253,000.
    assert_eq!(written(&summary["day_pnl"]), "-330");
    assert_eq!(written(&summary["day_pnl_pct"]), "-0.13");
    let merged = &rows(&summary, "merged")[0];
    assert_eq!(merged["name"], row("a", "TCS")["name"]);
    let of_both = ["day_pnl", "day_change_pct"].map(|of| written(&merged[of]));
    assert_eq!(of_both, ["-1530", "-1"]);
    let slices = |of: &str| -> Vec<[String; 3]> {
        let slices = rows(&summary["allocation"], of).iter();
        slices
            .map(|slice| ["of", "current_value", "share_pct"].map(|name| text(&slice[name])))
            .collect()
    };
    let expected = [["\"b\"", "168500", "66.69"], ["\"a\"", "84170", "33.31"]];
    assert_eq!(slices("brokers"), expected);
    let expected = [
        ["\"Information Technology\"", "232670", "92.08"],
        ["\"Fast Moving Consumer Goods\"", "0", "0"],
        // No list has its code, so nobody knows its sector.
        ["null", "20000", "7.92"],
    ];
    assert_eq!(slices("sectors"), expected);
    assert_eq!(summary["allocation"]["sectors_as_of"], "2026-09-30");
}

#[test]
fn a_week_is_compared_with_the_one_before_it() {
    let mut days = Days::from(MONDAY);
    days.price_anew("NSE:INFY", "800");
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":100,"average_paise":70000}"#);
    days.sync("a");
    let week = |days: &Days| days.get("/api/portfolio/pnl?days=1")["week"].clone();
    assert!(week(&days).is_null(), "there is one point");
    days.go_to("2026-11-20T16:10:00+05:30");
    days.await_close("2026-11-20");
    assert!(week(&days).is_null(), "the oldest is of four days before");
    days.price("NSE:INFY", "812.50");
    days.go_to("2026-11-23T16:10:00+05:30");
    days.await_close("2026-11-23");
    // A login ends after seven days.
    let login = r#"{"email":"days@example.com","password":"a long enough secret"}"#;
    let again = days.service.post("/api/auth/login", "", login).json();
    days.auth = bearer(again["access_token"].as_str().unwrap());
    let told = week(&days);
    let of = ["from", "to", "pnl_change", "changed"].map(|name| text(&told[name]));
    assert_eq!(of, ["\"2026-11-16\"", "\"2026-11-23\"", "1250", "false"]);
    assert_eq!(rows(&days.get("/api/portfolio/pnl?days=1"), "trend").len(), 1);
    // Half of them are sold: their gain is in the profit no more.
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":50,"average_paise":70000}"#);
    days.go_to("2026-11-25T11:00:00+05:30");
    days.sync("a");
    let told = week(&days);
    // 50 x 112.50 less 100 x 100.
    let of = ["from", "to", "pnl_change", "changed"].map(|name| text(&told[name]));
    assert_eq!(of, ["\"2026-11-16\"", "\"2026-11-25\"", "-4375", "true"]);
}

#[test]
fn positions_have_a_summary_of_each_list() {
    let days = Days::from(MONDAY);
    let nothing = days.get("/api/portfolio/positions");
    for kind in ["day", "net"] {
        let of_kind = &nothing["summary"][kind];
        assert_eq!((of_kind["count"].as_u64(), written(&of_kind["pnl"])), (Some(0), "0".into()));
    }
    let told = days.sync("a");
    let b = days.sync("b");
    for query in [
        "",
        "?include_closed=true",
        "?type=net",
        "?type=day&include_closed=true",
    ] {
        let json = days.get(&format!("/api/portfolio/positions{query}"));
        for kind in ["day", "net"] {
            let of_kind: Vec<&Value> = rows(&json, "positions")
                .iter()
                .filter(|row| row["type"] == kind)
                .collect();
            if of_kind.is_empty() {
                // Shown although not asked for.
                assert!(query.contains("type="), "{json:?}");
                continue;
            }
            let summary = &json["summary"][kind];
            assert_eq!(summary["count"].as_u64(), Some(of_kind.len() as u64), "{query} {kind}");
            let pnl: rust_decimal::Decimal =
                of_kind.iter().filter_map(|row| known(row, "pnl")).sum();
            assert_eq!(decimal(summary, "pnl"), pnl, "{query} {kind}");
        }
    }
    let open = days.get("/api/portfolio/positions?type=net");
    let of = |broker: &str| {
        rows(&open, "positions")
            .iter()
            .filter(|row| row["broker"] == broker)
            .count() as u64
    };
    assert_eq!(told["net_positions_count"].as_u64(), Some(of("a")));
    assert_eq!(b["positions_count"].as_u64(), Some(of("b")));
    assert_eq!((of("a"), of("b")), (2, 1));
}
