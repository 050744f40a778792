//! Single rows of a portfolio: broker B's two lists merged, costs, pledges, positions.

use sonic_rs::{JsonValueTrait, Value};

use super::user::{decimal, rows, written};
use crate::market::days::{Days, known};

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
    days.service.stop();
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
    days.service.stop();
}

/// Two lots whose mean has no finite decimals: the cost is stored, since the mean times the
/// quantity is a paisa less.
#[test]
fn lots_of_one_share_are_exact_to_the_paisa() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:TCS", "100.05");
    let lots = [("TCS", "183585", "255.267", "NSE:TCS"), ("TCS", "116494", "96.35", "NSE:TCS")];
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
    days.service.stop();
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
    days.service.stop();
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
    for query in ["", "?include_closed=true", "?type=net", "?type=day&include_closed=true"] {
        let json = days.get(&format!("/api/portfolio/positions{query}"));
        for kind in ["day", "net"] {
            let of_kind: Vec<&Value> =
                rows(&json, "positions").iter().filter(|row| row["type"] == kind).collect();
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
        rows(&open, "positions").iter().filter(|row| row["broker"] == broker).count() as u64
    };
    assert_eq!(told["net_positions_count"].as_u64(), Some(of("a")));
    assert_eq!(b["positions_count"].as_u64(), Some(of("b")));
    assert_eq!((of("a"), of("b")), (2, 1));
    days.service.stop();
}
