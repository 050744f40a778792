//! What enters a portfolio after the revaluation has begun or ended gets the close as everything
//! else does, within a minute.

use sonic_rs::{JsonValueTrait, Value};

use super::close::advance_to_health;
use super::user::written;
use crate::market::days::Days;
use crate::support::{bearer, until};

/// Advance of the clock per check, and the time within which the close has to be there.
const STEP_MS: i64 = 500;
const WITHIN_MS: i64 = 60_000;
/// Looks for one advance: the calls that the clock set off take real time.
const LOOKS_PER_STEP: usize = 3;

/// A Monday's close, at which ITC is 400 and BAJAJ-AUTO 10,063 after 10,100. The broker's own rows
/// lag, and have 10,074.
fn monday() -> Days {
    prepared(Days::from("2026-11-16T11:00:00+05:30"), "2026-11-16")
}

fn prepared(days: Days, date: &str) -> Days {
    let order = r#"{"symbol":"NSE:BAJAJ-AUTO","price":"10074","previous_close":"10100"}"#;
    assert_eq!(days.scene.control("POST", "trading", order).status, 200);
    days.price_anew("NSE:ITC", "400");
    days.go_to(&format!("{date}T15:10:00+05:30"));
    days.price("NSE:BAJAJ-AUTO", "10063");
    days.holds_at_a(r#"{"symbol":"NSE:ITC","quantity":10,"average_paise":30000}"#);
    days
}

const BOTH: &str = r#"{"symbol":"NSE:ITC","quantity":10,"average_paise":30000},
    {"symbol":"NSE:BAJAJ-AUTO","quantity":7,"average_paise":900000}"#;

fn lags(days: &Days, route: &str, by_s: u32) {
    days.scene
        .fault(route, &format!(r#"{{"kind":"lag","by_s":{by_s}}}"#));
}

fn row_of(days: &Days, ticker: &str) -> Value {
    let held = days.holdings();
    let found = held.iter().find(|row| row["tradingsymbol"] == ticker);
    found
        .unwrap_or_else(|| panic!("{ticker}: {held:?}"))
        .clone()
}

/// Waits until the row has this price.
#[track_caller]
fn await_price(days: &Days, ticker: &str, price: &str) {
    let began_ms = days.scene.clock.now_ms();
    let mut looks = 0;
    until("the close", || {
        looks += 1;
        if looks % LOOKS_PER_STEP == 0 {
            days.scene.advance_ms(STEP_MS);
        }
        let row = row_of(days, ticker);
        let is_there = row["last_price"].is_number() && written(&row["last_price"]) == price;
        let waited_ms = days.scene.clock.now_ms() - began_ms;
        assert!(is_there || waited_ms <= WITHIN_MS, "after {waited_ms} ms: {row:?}");
        is_there.then_some(())
    });
}

#[test]
fn a_share_that_a_sync_brings_after_the_run_gets_the_close_within_a_minute() {
    let days = monday();
    days.go_to("2026-11-16T16:40:00+05:30");
    days.sync("a");
    days.await_close("2026-11-16");
    days.holds_at_a(BOTH);
    lags(&days, "broker_a.holdings", 2 * 3_600);
    days.sync("a");
    let brought = row_of(&days, "BAJAJ-AUTO");
    if written(&brought["last_price"]) != "10063" {
        // The clock went on by a minute with the sync.
        await_price(&days, "BAJAJ-AUTO", "10063");
    }
    let row = row_of(&days, "BAJAJ-AUTO");
    // 7 x (10,063 - 10,100), and 7 x 10,063 + 10 x 400.
    assert_eq!(written(&row["day_pnl"]), "-259");
    assert_eq!(written(&row["close_price"]), "10100");
    let summary = days.summary();
    assert_eq!(written(&summary["total_current_value"]), "74441");
    let point = days.point("2026-11-16");
    assert_eq!(
        (&point["source"], written(&point["total_current_value"])),
        (&"close".into(), "74441".into())
    );
    assert_eq!(point["carried"].as_u64(), Some(0));
    advance_to_health(&days.scene, &days.service, "paused");
}

/// The run waits for hours for a price that nobody has.
#[test]
fn while_the_run_waits_for_something_else_too() {
    let days = Days::from("2026-11-13T11:00:00+05:30");
    days.scene.halt("NSE:TCS", true);
    days.go_to("2026-11-16T11:00:00+05:30");
    let days = prepared(days, "2026-11-16");
    days.holds_at_a(
        r#"{"symbol":"NSE:ITC","quantity":10,"average_paise":30000},
           {"symbol":"NSE:TCS","quantity":1,"average_paise":300000}"#,
    );
    days.go_to("2026-11-16T16:40:00+05:30");
    days.sync("a");
    until("the run to wait", || {
        days.scene.advance_ms(5_000);
        let health = days.service.health();
        (health["warmers"]["close"] == "ok" && health["close"]["missing"] == 1).then_some(())
    });
    days.holds_at_a(BOTH);
    lags(&days, "broker_a.holdings", 2 * 3_600);
    days.sync("a");
    await_price(&days, "BAJAJ-AUTO", "10063");
}

#[test]
fn on_a_weekend_and_at_the_other_broker() {
    let days = prepared(Days::from("2026-11-20T11:00:00+05:30"), "2026-11-20");
    days.go_to("2026-11-20T16:40:00+05:30");
    days.sync("a");
    days.await_close("2026-11-20");
    // A run that had not ended by then would have waited for twelve hours, and given up.
    advance_to_health(&days.scene, &days.service, "paused");
    let auth = bearer(&login(&days));
    let days = Days { auth, ..days };
    // Friday's token is good for another hour.
    days.go_to("2026-11-21T05:00:00+05:30");
    days.price_anew("NSE:INFY", "1500");
    days.holds_at_b(
        &[
            ("BAAUTO", "INE917I01010", "7"),
            ("INFTEC", "INE009A01021", "3"),
        ],
        &[
            ("BAAUTO", "7", "9000", "NSE:ITC"),
            ("INFTEC", "3", "1000", "NSE:ITC"),
        ],
    );
    days.sync("b");
    // The broker gave ITC's price in place of its own.
    await_price(&days, "BAJAJ-AUTO", "10063");
    let row = row_of(&days, "BAJAJ-AUTO");
    assert!(
        row["as_of"]
            .as_str()
            .unwrap()
            .starts_with("2026-11-20T15:3"),
        "{row:?}"
    );
    let summary = days.summary();
    assert!(summary["without_day_price"].as_u64() == Some(0), "{summary:?}");
    // Saturday's point has the close; Friday's is of what was there on Friday.
    let friday = days.point("2026-11-20");
    assert_eq!(written(&friday["total_current_value"]), "4000");
    assert_eq!(friday["holdings"].as_u64(), Some(1));
    assert_eq!(days.point("2026-11-21")["holdings"].as_u64(), Some(3));
}

fn login(days: &Days) -> String {
    let body = r#"{"email":"days@example.com","password":"a long enough secret"}"#;
    let answer = days.service.post("/api/auth/login", "", body).json();
    answer["access_token"].as_str().unwrap().to_owned()
}

#[test]
fn a_new_user_gets_the_close_too() {
    let days = monday();
    days.go_to("2026-11-16T16:40:00+05:30");
    days.sync("a");
    days.await_close("2026-11-16");
    let auth = bearer(
        &days
            .service
            .register("late@example.com", "a long enough secret"),
    );
    let days = Days { auth, ..days };
    days.holds_at_a(r#"{"symbol":"NSE:BAJAJ-AUTO","quantity":7,"average_paise":900000}"#);
    lags(&days, "broker_a.holdings", 2 * 3_600);
    days.sync("a");
    await_price(&days, "BAJAJ-AUTO", "10063");
    assert_eq!(written(&days.summary()["day_pnl"]), "-259");
}
