//! Prices and halts that a control route ordered, as the exchange then shows them.

use sonic_rs::JsonValueTrait;

use crate::base::ManualClock;
use crate::sim::simulator::Sim;
use crate::sim::testing::{BROKER_A, get, send, sim_at};
use crate::sim::world::SimSettings;

fn unlimited() -> SimSettings {
    SimSettings {
        rate_limits: false,
        ..SimSettings::default()
    }
}

/// Last price, previous close and time of a quote, in rupees and IST.
fn quoted(sim: &Sim) -> (String, String, String) {
    let got = get(sim, "/a/quote?i=NSE:INFY", BROKER_A);
    let json = got.json();
    let quote = &json["data"]["NSE:INFY"];
    let number = |value: &sonic_rs::Value| sonic_rs::to_string(value).unwrap();
    let time = number(&quote["timestamp"]);
    (
        number(&quote["last_price"]),
        number(&quote["ohlc"]["close"]),
        time.trim_matches('"').into(),
    )
}

fn order(sim: &Sim, body: &str) -> u16 {
    send(sim.addr(), "POST", "/sim/control/trading", "", body)
        .unwrap()
        .status
}

fn go_to(sim: &Sim, clock: &ManualClock, at: &str) {
    let at: jiff::Timestamp = at.parse().unwrap();
    clock.advance_ms(at.as_millisecond() - clock.now_ms());
    let login = r#"{"access_token":"simtokena"}"#;
    assert_eq!(
        send(sim.addr(), "POST", "/sim/control/broker_a/token", "", login)
            .unwrap()
            .status,
        200
    );
}

#[test]
fn a_price_stands_until_the_next_one_and_is_the_next_date_s_previous_close() {
    let (sim, clock) = sim_at("2026-11-19T11:00:00+05:30", unlimited());
    let price = r#"{"symbol":"NSE:INFY","price":"100.50","previous_close":99}"#;
    assert_eq!(order(&sim, price), 200);
    let at = "2026-11-19 11:00:00".to_owned();
    assert_eq!(quoted(&sim), ("100.5".to_owned(), "99".to_owned(), at));
    go_to(&sim, &clock, "2026-11-20T10:00:00+05:30");
    assert_eq!(quoted(&sim).0, "100.5");
    assert_eq!(order(&sim, r#"{"symbol":"NSE:INFY","price":"120"}"#), 200);
    let (last, previous, _) = quoted(&sim);
    assert_eq!((last.as_str(), previous.as_str()), ("120", "100.5"));
}

#[test]
fn the_range_of_a_first_day_begins_with_its_open_and_the_limits_follow_that() {
    let (sim, clock) = sim_at("2026-11-19T11:00:00+05:30", unlimited());
    let first = r#"{"symbol":"NSE:INFY","price":"480","previous_close":"220","open":"470"}"#;
    assert_eq!(order(&sim, first), 200);
    clock.advance_ms(1_000);
    assert_eq!(order(&sim, r#"{"symbol":"NSE:INFY","price":"465"}"#), 200);
    let got = get(&sim, "/a/quote?i=NSE:INFY", BROKER_A).json();
    let quote = &got["data"]["NSE:INFY"];
    let number = |value: &sonic_rs::Value| sonic_rs::to_string(value).unwrap();
    let range = ["open", "low", "high", "close"].map(|name| number(&quote["ohlc"][name]));
    assert_eq!(range, ["470", "465", "480", "220"]);
    let limits = ["lower_circuit_limit", "upper_circuit_limit"].map(|name| number(&quote[name]));
    assert_eq!(limits, ["423", "517"]);
}

#[test]
fn an_index_has_the_ordered_price_too() {
    let (sim, _) = sim_at("2026-11-19T11:00:00+05:30", unlimited());
    let vix = r#"{"symbol":"NSE:INDIA VIX","price":"22.1","previous_close":"13.8","open":"14"}"#;
    assert_eq!(order(&sim, vix), 200);
    let got = get(&sim, "/a/quote?i=NSE:INDIA%20VIX", BROKER_A).json();
    let quote = &got["data"]["NSE:INDIA VIX"];
    assert_eq!(
        (quote["last_price"].as_f64(), quote["ohlc"]["low"].as_f64()),
        (Some(22.1), Some(14.0))
    );
}

#[test]
fn a_halted_share_keeps_its_last_price_and_its_time() {
    let (sim, clock) = sim_at("2026-11-19T11:00:00+05:30", unlimited());
    let before = quoted(&sim);
    assert_eq!(order(&sim, r#"{"symbol":"NSE:INFY","halted":true}"#), 200);
    go_to(&sim, &clock, "2026-11-20T18:00:00+05:30");
    assert_eq!(quoted(&sim), before);
    assert_eq!(order(&sim, r#"{"symbol":"NSE:INFY","halted":false}"#), 200);
    assert_eq!(quoted(&sim).2, "2026-11-20 15:35:00");
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let (sim, _) = sim_at("2026-11-19T11:00:00+05:30", unlimited());
    for body in [
        r#"{"symbol":"NSE:NOSUCH","price":"1"}"#,
        r#"{"symbol":"NSE:INFY","price":"0"}"#,
        r#"{"symbol":"NSE:INFY","price":"1","previous_close":"-1"}"#,
        r#"{"symbol":"NSE:INFY","price":"1000000001"}"#,
        r#"{"symbol":"NSE:INFY","price":"1","open":"0"}"#,
        r#"{"symbol":"NSE:INFY","cost":"1"}"#,
    ] {
        assert_eq!(order(&sim, body), 400, "{body}");
    }
    let holdings = r#"{"user_id":"X","rows":[{"quantity":1}]}"#;
    let got = send(sim.addr(), "POST", "/sim/control/broker_a/holdings", "", holdings).unwrap();
    assert_eq!(got.status, 400);
    assert_eq!(get(&sim, "/sim/control/trading", "").status, 404);
}
