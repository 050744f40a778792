//! The day's list of instruments: broken rows, and lists that are not believed.

use sonic_rs::{JsonValueTrait, Value};

use super::days::Days;
use crate::support::until;

/// Before the broker makes the day's list, and after it. A login ends at 06:00.
const EARLY: &str = "2026-11-16T07:00:00+05:30";
const LATER: &str = "2026-11-16T11:00:00+05:30";
const QUOTED: &str = r#"138371,540,QUOTED,\"INDIAN METALS,0.0,,0.0,0.05,1,EQ,NSE,NSE"#;

fn orders(days: &Days, order: &str) {
    let answer = days.scene.control("POST", "broker_a/instruments", order);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// What health says of the list once `holds`.
#[track_caller]
fn market_when(days: &Days, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    until(what, || {
        days.scene.advance_ms(5_000);
        let market = days.service.health()["market"].clone();
        holds(&market).then_some(market)
    })
}

fn is_of(date: &'static str) -> impl Fn(&Value) -> bool {
    move |market| market["instruments_origin"] == "broker_a" && market["instruments_as_of"] == date
}

fn await_quotes(days: &Days, symbols: &[&str]) {
    until("the prices", || {
        let answer = days.service.prices(&symbols.join(","));
        days.scene.advance_ms(500);
        (answer.status == 200 && answer.quoted() == symbols).then_some(())
    });
}

fn instruments_state(days: &Days) -> String {
    days.service.health()["warmers"]["instruments"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_row_whose_quotation_mark_is_never_closed_is_lost_alone() {
    let days = Days::from(EARLY);
    let whole = market_when(&days, "the list", is_of("2026-11-15"));
    let (count, unread) = (&whole["instruments"], &whole["instruments_unread"]);
    assert_eq!(unread.as_u64(), Some(0));
    let inserted = [0, 3, 7].map(|at| format!("[{at},\"{QUOTED}\"]")).join(",");
    orders(&days, &format!(r#"{{"insert":[{inserted}]}}"#));
    days.go_to(LATER);
    let market = market_when(&days, "the next list", is_of("2026-11-16"));
    assert_eq!(market["instruments"], *count);
    // Three on each exchange.
    assert_eq!(market["instruments_unread"].as_u64(), Some(6));
    assert!(market.get("instruments_failure").is_none(), "{market:?}");
    assert_eq!(instruments_state(&days), "ok");
}

#[test]
fn a_list_that_is_not_believed_leaves_the_last_one_and_is_asked_for_again() {
    for (order, reason) in [
        (r#"{"rows_max":20}"#, "the last had"),
        (r#"{"without":["NSE:INFY"]}"#, "lacks 1 symbols"),
        (r#"{"without":["NSE:INFY","NSE:TCS"]}"#, "lacks 2 symbols"),
    ] {
        let days = Days::from(EARLY);
        let whole = market_when(&days, "the list", is_of("2026-11-15"));
        orders(&days, order);
        days.go_to(LATER);
        let doubted =
            market_when(&days, "a doubt", |market| market.get("instruments_failure").is_some());
        let failure = doubted["instruments_failure"].as_str().unwrap();
        assert!(failure.contains("not believed") && failure.contains(reason), "{failure}");
        assert_eq!(doubted["instruments"], whole["instruments"]);
        assert_eq!(doubted["instruments_as_of"], "2026-11-15");
        assert_eq!(instruments_state(&days), "failing");
        // Every share has its price, those that the list lacks too.
        for symbol in ["NSE:INFY", "NSE:RELIANCE", "NSE:TCS", "NSE:ULTRACEMCO"] {
            await_quotes(&days, &[symbol]);
        }
        orders(&days, "{}");
        let market = market_when(&days, "the whole list", is_of("2026-11-16"));
        assert!(market.get("instruments_failure").is_none());
        assert_eq!(instruments_state(&days), "ok");
    }
}

/// A share that somebody holds, beyond the universe.
#[test]
fn a_list_that_lacks_what_is_held_is_not_believed() {
    let days = Days::from(EARLY);
    market_when(&days, "the list", is_of("2026-11-15"));
    days.holds_at_a(r#"{"symbol":"BSE:RELIANCE","quantity":10,"average_paise":70000}"#);
    days.sync("a");
    orders(&days, r#"{"without":["BSE:RELIANCE"]}"#);
    days.go_to(LATER);
    let doubted =
        market_when(&days, "a doubt", |market| market.get("instruments_failure").is_some());
    let failure = doubted["instruments_failure"].as_str().unwrap();
    assert!(failure.contains("BSE:RELIANCE"), "{failure}");
}

/// In force, a list's silence lowers a symbol's class and does not forbid it.
#[test]
fn a_symbol_that_the_list_in_force_lacks_is_tried() {
    let days = Days::from(EARLY);
    orders(&days, r#"{"without":["BSE:RELIANCE"]}"#);
    market_when(&days, "the list", is_of("2026-11-15"));
    await_quotes(&days, &["BSE:RELIANCE", "NSE:INFY"]);
    days.go_to(LATER);
    days.holds_at_a(r#"{"symbol":"BSE:RELIANCE","quantity":10,"average_paise":70000}"#);
    days.sync("a");
    until("a live price", || {
        days.scene.advance_ms(500);
        let live = days.get("/api/portfolio/holdings?live=true");
        live["holdings"][0]["source"].is_str().then_some(())
    });
}

/// The list of contracts lacks six of the compiled-in shares, which are what it is first judged by.
/// The list of shares is in force all the same.
#[test]
fn a_list_of_derivatives_that_is_not_believed_leaves_the_last_one_and_is_asked_for_again() {
    let days = Days::from(EARLY);
    let lacking = ["INFY", "TCS", "SBIN", "ITC", "LT", "TITAN"];
    let without = lacking.map(|ticker| format!("\"NFO:{ticker}\"")).join(",");
    orders(&days, &format!(r#"{{"without":[{without}]}}"#));
    let doubted =
        market_when(&days, "a doubt", |market| market.get("instruments_failure").is_some());
    let failure = doubted["instruments_failure"].as_str().unwrap();
    assert!(failure.contains("list of derivatives is not believed"), "{failure}");
    assert!(
        failure.contains("lacks 6 of the 51 shares of the last: INFY, ITC, LT"),
        "{failure}"
    );
    assert_eq!(
        (&doubted["instruments_origin"], &doubted["instruments_as_of"]),
        (&Value::from("broker_a"), &Value::from("2026-11-15"))
    );
    assert_eq!(instruments_state(&days), "failing");
    await_quotes(&days, &["NSE:INFY", "NSE:SIM300"]);
    orders(&days, "{}");
    let market =
        market_when(&days, "the whole list", |market| market.get("instruments_failure").is_none());
    assert_eq!(market["instruments"], doubted["instruments"]);
    assert_eq!(instruments_state(&days), "ok");
}
