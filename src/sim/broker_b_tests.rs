//! Broker B as a client sees it: session exchange, signature, and the kinds of "no data".

use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::checksum_of;
use crate::base::Clock;
use crate::sim::simulator::Sim;
use crate::sim::testing::{FRIDAY, Got, get, send, set_fault, sim, sim_at};
use crate::sim::world::{SimBrokerB, SimSettings};

const JSON: &str = "Content-Type: application/json\r\n";
const KEY: &str = "sim+key=b&1";

fn session(sim: &Sim) -> String {
    let body = format!(r#"{{"SessionToken":"12345678","AppKey":"{KEY}"}}"#);
    let got = send(sim.addr(), "GET", "/b/customerdetails", JSON, &body)
        .unwrap()
        .json();
    assert_eq!(got["Success"]["idirect_userid"].as_str(), Some("SB000001"), "{got}");
    got["Success"]["session_token"].as_str().unwrap().to_owned()
}

fn stamp(clock: &Clock, moved_s: i64) -> String {
    let at = jiff::Timestamp::from_second(clock.now().as_second() + moved_s).unwrap();
    format!("{}.000Z", at.strftime("%Y-%m-%dT%H:%M:%S"))
}

/// Sends a read with `body` and a signature with `secret` over `signed`.
fn read(
    sim: &Sim,
    path: &str,
    token: &str,
    stamp: &str,
    secret: &str,
    bodies: (&str, &str),
) -> Got {
    let (signed, body) = bodies;
    let checksum = checksum_of(stamp, signed.as_bytes(), secret);
    let headers = format!(
        "{JSON}X-Checksum: token {checksum}\r\nX-Timestamp: {stamp}\r\nX-AppKey: {KEY}\r\n\
         X-SessionToken: {token}\r\n"
    );
    send(sim.addr(), "GET", path, &headers, body).unwrap()
}

#[test]
fn the_checksum_is_the_documented_one() {
    assert_eq!(
        checksum_of("2026-10-01T10:23:56.000Z", b"{}", "EXAMPLE_SECRET"),
        "c6cd10b3ed73c49fb1ee40dc3137cc1026a2876526001a1617b4335152a937ae"
    );
}

#[test]
fn the_session_exchange_is_a_get_with_a_body() {
    let (sim, _) = sim();
    let token = session(&sim);
    assert!(!token.contains(':'), "base64, not the decoded pair");
    let post = send(sim.addr(), "POST", "/b/customerdetails", JSON, "{}").unwrap();
    assert_eq!(post.status, 405);
    for (body, words) in [
        (r#"{"SessionToken":"1","AppKey":"sim+key=b&1"}"#, "Invalid session."),
        (
            r#"{"SessionToken":"12345678","AppKey":"sim key"}"#,
            "Public Key does not exist.",
        ),
    ] {
        let got = send(sim.addr(), "GET", "/b/customerdetails", JSON, body).unwrap();
        assert_eq!(got.status, 200, "the HTTP status says nothing");
        let json = got.json();
        assert_eq!(json["Error"].as_str(), Some(words));
        assert_eq!(json["Status"].as_i64(), Some(500));
        assert!(json["Success"].is_null());
    }
    let issued = send(sim.addr(), "POST", "/sim/control/broker_b/api_session", "", "").unwrap();
    let issued = issued.json();
    assert_eq!(issued["api_session"].as_str().unwrap().len(), 8);
}

#[test]
fn a_signed_read_is_answered_and_any_flaw_in_the_signature_refused() {
    let (sim, clock) = sim();
    let token = session(&sim);
    let now = stamp(&clock, 0);
    let demat = |token: &str, stamp: &str, secret: &str, bodies| {
        read(&sim, "/b/dematholdings", token, stamp, secret, bodies)
    };
    for near in [-60, 0, 60] {
        let got = demat(&token, &stamp(&clock, near), "simsecretb", ("{}", "{}")).json();
        let rows = got["Success"].as_array().unwrap();
        assert!(rows.len() > 5);
        let quantity = rows[0]["quantity"].as_str().expect("numbers are text");
        assert!(quantity.parse::<i64>().unwrap() > 0);
        assert!(rows[0]["stock_ISIN"].as_str().unwrap().starts_with("INE"));
    }
    let with_ms = now.replace(".000Z", ".123Z");
    for (stamp, secret, bodies) in [
        (now.as_str(), "other", ("{}", "{}")),
        (&now, "simsecretb", ("{}", "{ }")),
        (&now, "simsecretb", ("{}", "")),
        (&stamp(&clock, 61), "simsecretb", ("{}", "{}")),
        (&stamp(&clock, -61), "simsecretb", ("{}", "{}")),
        (&with_ms, "simsecretb", ("{}", "{}")),
    ] {
        let got = demat(&token, stamp, secret, bodies);
        assert_eq!(got.status, 401, "{stamp} {secret} {bodies:?}");
        let json = got.json();
        assert_eq!(json["Error"].as_str(), Some("Authentication Fail :: Invalid Checksum."));
        assert!(json.get("Success").is_none());
    }
    let decoded = demat("SB000001:12345678", &now, "simsecretb", ("{}", "{}"));
    assert_eq!(decoded.status, 401);
    assert!(decoded.text().contains("Invalid length for a Base-64"));
    let unknown = demat("QUJD", &now, "simsecretb", ("{}", "{}")).json();
    assert_eq!(unknown["Error"].as_str(), Some("Resource not available."));
}

#[test]
fn the_session_ends_at_midnight() {
    let (sim, clock) = sim();
    let token = session(&sim);
    let error = |clock: &Clock| {
        let now = stamp(clock, 0);
        let got = read(&sim, "/b/dematholdings", &token, &now, "simsecretb", ("{}", "{}"));
        got.json()["Error"].as_str().map(str::to_owned)
    };
    clock.advance_ms((12 * 3600 + 17 * 60 + 42) * 1000);
    assert_eq!(error(&clock), None, "one second before");
    clock.advance_ms(1000);
    assert_eq!(error(&clock).as_deref(), Some("Resource not available."));
}

#[test]
fn trades_are_asked_for_by_a_range_of_a_year_at_most() {
    let (sim, clock) = sim();
    let token = session(&sim);
    let trades = |from: &str, to: &str, exchange: &str| {
        let now = stamp(&clock, 0);
        let body = format!(
            r#"{{"from_date":"{from}T00:00:00.000Z","to_date":"{to}T23:59:59.000Z",
                "exchange_code":"{exchange}"}}"#
        );
        read(&sim, "/b/trades", &token, &now, "simsecretb", (&body, &body)).json()
    };
    let year = trades("2024-04-01", "2025-03-31", "NSE");
    let rows = year["Success"].as_array().unwrap();
    assert!(rows.len() > 10, "{}", rows.len());
    for row in rows {
        let date = row["trade_date"].as_str().unwrap();
        assert!(date.ends_with("-2024") || date.ends_with("-2025"), "{date}");
        assert!(row["quantity"].as_str().unwrap().parse::<u32>().unwrap() > 0);
        assert!(["Buy", "Sell"].contains(&row["action"].as_str().unwrap()));
        assert!(row.get("stock_ISIN").is_none() && row.get("trade_id").is_none());
    }
    let none = trades("2010-01-01", "2010-03-31", "NSE");
    assert_eq!(none["Success"].as_array().map(sonic_rs::Array::len), Some(0));
    let other = trades("2024-04-01", "2025-03-31", "BSE");
    assert_eq!(other["Success"].as_array().map(sonic_rs::Array::len), Some(0));
    let long = trades("2024-04-01", "2025-04-03", "NSE");
    assert_eq!(long["Error"].as_str(), Some("Date range should be of one year at most"));
    let order = r#"{"user_id":"SB000001","net":[{"trade_date":"05-Feb-2025","quantity":"1"},
                    {"trade_date":"05-Feb-2024","quantity":"2"}]}"#;
    let set = send(sim.addr(), "POST", "/sim/control/broker_b/trades", "", order).unwrap();
    assert_eq!(set.status, 200, "{}", set.text());
    let own = trades("2024-04-01", "2025-03-31", "NSE");
    assert_eq!(own["Success"][0]["quantity"].as_str(), Some("1"));
    assert_eq!(own["Success"].as_array().map(sonic_rs::Array::len), Some(1));
}

#[test]
fn holdings_need_an_exchange_and_nothing_comes_in_three_shapes() {
    let (held, clock) = sim();
    let body = r#"{"exchange_code":"NSE"}"#;
    let portfolio = |sim: &Sim, path: &str, body: &str| {
        let now = stamp(&clock, 0);
        read(sim, path, &session(sim), &now, "simsecretb", (body, body)).json()
    };
    let rows = portfolio(&held, "/b/portfolioholdings", body);
    let rows = rows["Success"].as_array().unwrap();
    assert_eq!(rows.len(), 12);
    assert!(rows[0]["current_market_price"].is_str() && rows[0]["action"].is_null());
    assert!(portfolio(&held, "/b/portfolioholdings", "{}")["Success"].is_null());
    let broker_b = SimBrokerB {
        empty_account: true,
        ..SimBrokerB::default()
    };
    let (empty, _) = sim_at(
        FRIDAY,
        SimSettings {
            broker_b,
            ..SimSettings::default()
        },
    );
    let demat = portfolio(&empty, "/b/dematholdings", "{}");
    assert!(demat["Success"].is_null());
    assert_eq!(demat["Error"].as_str(), Some("No Data Found"));
    let list = portfolio(&empty, "/b/portfolioholdings", body);
    assert_eq!(list["Success"].as_array().map(sonic_rs::Array::len), Some(0));
    assert_eq!(portfolio(&empty, "/b/portfoliopositions", "{}")["Success"].as_str(), Some(""));
}

#[test]
fn a_hundred_calls_a_minute_are_let_through() {
    let (sim, clock) = sim_at(FRIDAY, SimSettings::default());
    let token = session(&sim);
    let status = || {
        let now = stamp(&clock, 0);
        read(&sim, "/b/dematholdings", &token, &now, "simsecretb", ("{}", "{}")).status
    };
    for call in 1..100 {
        assert_eq!(status(), 200, "call {call}");
    }
    assert_eq!(status(), 429);
    clock.advance_ms(60_000);
    assert_eq!(status(), 200);
}

#[test]
fn the_security_master_is_a_zip_with_odd_headers() {
    let (sim, _) = sim();
    let got = get(&sim, "/b-master/SecurityMaster.zip", "");
    assert!(got.body.starts_with(b"PK\x03\x04"));
    let text = String::from_utf8_lossy(&got.body);
    assert!(text.contains("NSEScripMaster.txt\"Token\", \"ShortName\", \"Series\""));
    assert!(text.contains("\"2885\",\"RELIND\",\"EQ\",\"RELIANCE INDUSTRIES\""));
    assert!(text.contains("\"NIFTY 50\",\"NIFTY\",\"0\""));
    // The end record: two members.
    let end = &got.body[got.body.len() - 22..];
    assert_eq!((&end[..4], end[8], end[10]), (b"PK\x05\x06".as_slice(), 2, 2));
    set_fault(&sim, "broker_b.master", r#"{"kind":"html_5xx"}"#);
    assert_eq!(get(&sim, "/b-master/SecurityMaster.zip", "").status, 502);
}
