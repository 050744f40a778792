//! Broker A as a client sees it: required headers, omissions and formats.

use std::io::Read;

use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::checksum_of;
use crate::sim::broker_a::packets::{Mode, packet};
use crate::sim::exchange::day::{Day, Sessions};
use crate::sim::exchange::universe::Universe;
use crate::sim::testing::{BROKER_A, FRIDAY, get, send, sim, sim_at};
use crate::sim::world::{SimBrokerA, SimSettings};

const FORM: &str = "X-Kite-Version: 3\r\nContent-Type: application/x-www-form-urlencoded\r\n";

#[test]
fn the_checksum_is_the_documented_one() {
    assert_eq!(
        checksum_of("api_key", b"request_token", "api_secret"),
        "ff6a6d3d60c9d974df906ba6f787ac38300cfa68b41801b486ea1007e52e8942"
    );
}

#[test]
fn quotes_are_keyed_by_what_was_asked_and_unknown_ones_are_left_out() {
    let (sim, _) = sim();
    let target = "/a/quote/ohlc?i=NSE%3AM%26M&i=NSE:NIFTY+50&i=BSE:SENSEX&i=NSE:NOSUCH&i=NSE:M&M";
    let got = get(&sim, target, BROKER_A);
    assert_eq!((got.status, got.header("X-Bhav-Simulator")), (200, Some("seed=1")));
    let json = got.json();
    assert_eq!(json["status"].as_str(), Some("success"));
    let mut keys: Vec<_> = json["data"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, _)| key)
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, ["BSE:SENSEX", "NSE:M&M", "NSE:NIFTY 50"]);
    let nifty = &json["data"]["NSE:NIFTY 50"];
    assert_eq!(nifty["instrument_token"].as_i64(), Some(256_265));
    for price in ["open", "high", "low", "close"] {
        assert!(nifty["ohlc"][price].as_f64().unwrap() > 10_000.0, "{price}");
    }
}

#[test]
fn the_full_quote_has_every_documented_member() {
    let (sim, _) = sim();
    let json = get(&sim, "/a/quote?i=NSE:INFY&i=NSE:NIFTY%2050", BROKER_A).json();
    let infy = &json["data"]["NSE:INFY"];
    for name in [
        "instrument_token",
        "timestamp",
        "last_trade_time",
        "last_price",
        "last_quantity",
        "volume",
        "average_price",
        "buy_quantity",
        "sell_quantity",
        "oi",
        "oi_day_high",
        "oi_day_low",
        "net_change",
        "lower_circuit_limit",
        "upper_circuit_limit",
        "ohlc",
        "depth",
    ] {
        assert!(infy.get(name).is_some(), "{name}");
    }
    assert_eq!(infy["timestamp"].as_str(), Some("2026-11-20 11:42:17"));
    assert_eq!(infy["depth"]["buy"].as_array().unwrap().len(), 5);
    let nifty = &json["data"]["NSE:NIFTY 50"];
    assert!(nifty.get("depth").is_none() && nifty.get("volume").is_none());
    assert!(nifty["last_trade_time"].is_null());
}

#[test]
fn the_full_packet_has_the_depth_of_the_quote() {
    let (sim, clock) = sim();
    // A path without a prefix, as the vendor's client sends it.
    let json = get(&sim, "/quote?i=NSE:INFY", BROKER_A).json();
    let depth = &json["data"]["NSE:INFY"]["depth"];
    let universe = Universe::new(1, 0);
    let infy = universe.by_key("NSE:INFY").unwrap();
    let tick = Day::new(1, Sessions::weekdays()).tick(infy, clock.now());
    let packet = packet(1, infy, &tick, tick.as_of.as_second(), Mode::Full);
    let (levels, rest) = packet[64..].as_chunks::<12>();
    assert_eq!((levels.len(), rest), (10, &[][..]));
    for (at, level) in levels.iter().enumerate() {
        let quoted = &depth[if at < 5 { "buy" } else { "sell" }][at % 5];
        let number = |from: usize| u32::from_be_bytes(level[from..from + 4].try_into().unwrap());
        assert_eq!(quoted["quantity"].as_u64(), Some(number(0).into()), "{at}");
        let paise = quoted["price"]
            .as_f64()
            .map(|price| (price * 100.0).round() as u32);
        assert_eq!(paise, Some(number(4)), "{at}");
        assert_eq!(quoted["orders"].as_u64(), Some((number(8) >> 16).into()), "{at}");
    }
}

#[test]
fn headers_are_insisted_on() {
    let (sim, _) = sim();
    for (headers, status, kind) in [
        ("Authorization: token simkeya:simtokena\r\n", 400, "InputException"),
        ("X-Kite-Version: 3\r\n", 403, "TokenException"),
        (
            "X-Kite-Version: 3\r\nAuthorization: token simkeya:other\r\n",
            403,
            "TokenException",
        ),
        (
            "X-Kite-Version: 3\r\nAuthorization: token other:simtokena\r\n",
            403,
            "TokenException",
        ),
        (
            "X-Kite-Version: 3\r\nAuthorization: Bearer simkeya:simtokena\r\n",
            403,
            "TokenException",
        ),
    ] {
        let got = get(&sim, "/a/quote/ltp?i=NSE:INFY", headers);
        assert_eq!(got.status, status, "{headers}");
        let json = got.json();
        assert_eq!(json["error_type"].as_str(), Some(kind));
        assert_eq!(json["status"].as_str(), Some("error"));
    }
    assert_eq!(get(&sim, "/a/quote/ltp", BROKER_A).status, 400);
}

#[test]
fn a_plan_without_market_data_has_the_portfolio_only() {
    let broker_a = SimBrokerA {
        market_data: false,
        ..SimBrokerA::default()
    };
    let (sim, _) = sim_at(
        FRIDAY,
        SimSettings {
            broker_a,
            ..SimSettings::default()
        },
    );
    let got = get(&sim, "/a/quote?i=NSE:INFY", BROKER_A);
    assert_eq!(got.status, 403);
    assert_eq!(got.json()["error_type"].as_str(), Some("PermissionException"));
    assert_eq!(get(&sim, "/a/portfolio/holdings", BROKER_A).status, 200);
}

#[test]
fn the_caps_are_500_and_1000() {
    let (sim, _) = sim();
    let list = |n: usize| vec!["i=NSE:SIM001"; n].join("&");
    for (path, n, status) in [
        ("", 500, 200),
        ("", 501, 400),
        ("/ohlc", 1000, 200),
        ("/ohlc", 1001, 400),
        ("/ltp", 1001, 400),
    ] {
        let got = get(&sim, &format!("/a/quote{path}?{}", list(n)), BROKER_A);
        assert_eq!(got.status, status, "{n} at /quote{path}");
    }
}

#[test]
fn quote_calls_share_one_a_second() {
    let (sim, clock) = sim_at(FRIDAY, SimSettings::default());
    let ask = |path: &str| get(&sim, &format!("/a/quote{path}?i=NSE:INFY"), BROKER_A);
    assert_eq!(ask("").status, 200);
    let refused = ask("/ltp");
    assert_eq!(refused.status, 429);
    assert_eq!(refused.json()["error_type"].as_str(), Some("NetworkException"));
    assert_eq!(refused.json()["message"].as_str(), Some("Too many requests"));
    clock.advance_ms(999);
    assert_eq!(ask("/ohlc").status, 429);
    clock.advance_ms(1);
    assert_eq!(ask("/ohlc").status, 200);
    assert_eq!(get(&sim, "/a/user/profile", BROKER_A).status, 200, "another budget");
    let stats = get(&sim, "/sim/control/stats", "").json();
    assert_eq!(stats["requests"]["broker_a.quote"].as_i64(), Some(1));
    assert_eq!(stats["requests"]["broker_a.ohlc"].as_i64(), Some(2));
    assert_eq!(stats["rejected"]["broker_a.ohlc"].as_i64(), Some(1));
    assert_eq!(stats["max_quote_calls_in_1s"].as_i64(), Some(3));
    assert_eq!(stats["now"].as_str(), Some("2026-11-20T11:42:18+05:30"));
}

#[test]
fn a_login_takes_the_right_checksum_once_and_kills_the_token_before() {
    let (sim, _) = sim();
    let issued = send(sim.addr(), "POST", "/sim/control/broker_a/request_token", "", "").unwrap();
    let request_token = issued.json()["request_token"].as_str().unwrap().to_owned();
    let log_in = |checksum: &str| {
        let body = format!("api_key=simkeya&request_token={request_token}&checksum={checksum}");
        send(sim.addr(), "POST", "/a/session/token", FORM, &body).unwrap()
    };
    let wrong = log_in(&checksum_of("simkeya", request_token.as_bytes(), "wrong"));
    assert_eq!(
        (wrong.status, wrong.json()["error_type"].as_str()),
        (403, Some("TokenException"))
    );
    let right = checksum_of("simkeya", request_token.as_bytes(), "simsecreta");
    let session = log_in(&right).json();
    assert_eq!(session["data"]["login_time"].as_str(), Some("2026-11-20 11:42:17"));
    assert_eq!(session["data"]["user_id"].as_str(), Some("SA0001"));
    let token = session["data"]["access_token"].as_str().unwrap();
    assert_eq!(log_in(&right).status, 403, "a request token works once");
    assert_eq!(get(&sim, "/a/user/profile", BROKER_A).status, 403, "the former token");
    let headers = format!("X-Kite-Version: 3\r\nAuthorization: token simkeya:{token}\r\n");
    let profile = get(&sim, "/a/user/profile", &headers).json();
    assert_eq!(profile["data"]["user_id"].as_str(), Some("SA0001"));
    assert!(profile["data"].get("access_token").is_none());
    let target = format!("/a/session/token?api_key=simkeya&access_token={token}");
    assert_eq!(
        send(sim.addr(), "DELETE", &target, FORM, "")
            .unwrap()
            .status,
        200
    );
    assert_eq!(get(&sim, "/a/user/profile", &headers).status, 403);
}

#[test]
fn a_login_at_another_app_leaves_the_token_alone_and_serves_that_app_only() {
    let (sim, _) = sim();
    let log_in = |api_key: &str| {
        let issued = send(sim.addr(), "POST", "/sim/control/broker_a/request_token", "", "");
        let issued = issued.unwrap().json();
        let code = issued["request_token"].as_str().unwrap();
        let checksum = checksum_of(api_key, code.as_bytes(), "simsecreta");
        let body = format!("api_key={api_key}&request_token={code}&checksum={checksum}");
        let opened = send(sim.addr(), "POST", "/a/session/token", FORM, &body)
            .unwrap()
            .json();
        assert_eq!(opened["data"]["user_id"].as_str(), Some("SA0001"));
        opened["data"]["access_token"].as_str().unwrap().to_owned()
    };
    let status = |api_key: &str, token: &str| {
        let headers = format!("X-Kite-Version: 3\r\nAuthorization: token {api_key}:{token}\r\n");
        get(&sim, "/a/user/profile", &headers).status
    };
    let other = log_in("simkeya-1");
    assert_eq!((status("simkeya", "simtokena"), status("simkeya-1", &other)), (200, 200));
    assert_eq!((status("simkeya-1", "simtokena"), status("simkeya", &other)), (403, 403));
    let newer = log_in("simkeya-1");
    assert_eq!((status("simkeya-1", &other), status("simkeya-1", &newer)), (403, 200));
    assert_eq!(status("simkeya", "simtokena"), 200);
}

#[test]
fn the_token_dies_at_six_in_the_morning() {
    let (sim, clock) = sim();
    let status = || get(&sim, "/a/user/profile", BROKER_A).status;
    clock.advance_ms((18 * 3600 + 17 * 60 + 42) * 1000);
    assert_eq!(status(), 200, "one second before");
    clock.advance_ms(1000);
    assert_eq!(status(), 403);
    let body = r#"{"access_token":"simtokena"}"#;
    send(sim.addr(), "POST", "/sim/control/broker_a/token", "", body).unwrap();
    assert_eq!(status(), 200);
    send(sim.addr(), "POST", "/sim/control/broker_a/expire", "", "").unwrap();
    assert_eq!(status(), 403);
}

#[test]
fn the_instruments_dump_is_compressed_csv() {
    let (sim, _) = sim();
    let unpacked = || {
        let got = get(&sim, "/a/instruments/NSE", "X-Kite-Version: 3\r\n");
        assert_eq!(got.header("Content-Encoding"), Some("gzip"));
        assert_eq!(got.header("Content-Type"), Some("text/csv"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(got.body.as_slice())
            .read_to_string(&mut text)
            .unwrap();
        text
    };
    let text = unpacked();
    assert!(text.contains("\n408065,1594,INFY,INFOSYS,0.0,,0.0,0.05,1,EQ,NSE,NSE\n"));
    assert!(text.contains("\n256265,1001,NIFTY 50,NIFTY 50,0.0,,0.0,0.01,0,EQ,INDICES,NSE\n"));
    let rows = |text: &str| {
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .from_reader(text.as_bytes());
        let lengths: Vec<_> = reader.records().map(|row| row.unwrap().len()).collect();
        lengths
    };
    let whole = rows(&text);
    assert!(whole.len() > 420 && whole.iter().all(|length| *length == 12));
    let fault = r#"{"route":"broker_a.instruments","fault":{"kind":"broken_row"}}"#;
    send(sim.addr(), "POST", "/sim/control/faults", "", fault).unwrap();
    assert_eq!(rows(&unpacked()), [&whole[..], &[11]].concat(), "one row is broken");
    assert_eq!(get(&sim, "/a/instruments/XYZ", BROKER_A).status, 400);
}

#[test]
fn added_shares_are_listed_and_have_quotes_and_nobody_else_knows_them() {
    let settings = SimSettings {
        more_shares: 10,
        rate_limits: false,
        ..SimSettings::default()
    };
    let (larger, _) = sim_at(FRIDAY, settings);
    let list = get(&larger, "/a/instruments/NSE", BROKER_A);
    let mut text = String::new();
    flate2::read::GzDecoder::new(list.body.as_slice())
        .read_to_string(&mut text)
        .unwrap();
    assert!(text.contains(",SIM355,SIMULATED SHARE 355,0.0,,0.0,0.05,1,EQ,NSE,NSE\n"));
    assert!(!text.contains(",SIM356,"));
    let quote = |sim, symbol| {
        let got = get(sim, &format!("/a/quote?i=NSE:{symbol}"), BROKER_A);
        assert_eq!(got.header("X-Bhav-Simulator"), Some("seed=1"));
        got.json()["data"][format!("NSE:{symbol}").as_str()]["last_price"].as_f64()
    };
    assert!(quote(&larger, "SIM355").unwrap() > 10.0);
    assert_eq!(quote(&larger, "SIM356"), None);
    let (usual, _) = sim();
    assert_eq!(quote(&usual, "SIM355"), None);
    assert_eq!(quote(&usual, "INFY"), quote(&larger, "INFY"));
}

#[test]
fn candles_span_two_years_and_agree_with_the_quote() {
    let (sim, _) = sim();
    let candles = |interval: &str, from: &str, to: &str| {
        let target = format!("/a/instruments/historical/408065/{interval}?from={from}&to={to}");
        get(&sim, &target, BROKER_A)
    };
    let day = candles("day", "2024-11-20+00:00:00", "2026-11-20+23:59:59").json();
    let rows = day["data"]["candles"].as_array().unwrap();
    assert_eq!(rows.len(), 523, "weekdays of two years");
    let first = rows[0].as_array().unwrap();
    assert_eq!(first[0].as_str(), Some("2024-11-20T00:00:00+0530"));
    assert_eq!(first.len(), 6);
    let quote = get(&sim, "/a/quote/ohlc?i=NSE:INFY", BROKER_A).json();
    let quote = &quote["data"]["NSE:INFY"];
    let yesterday = &rows[rows.len() - 2];
    let today = &rows[rows.len() - 1];
    assert_eq!(yesterday[4].as_f64(), quote["ohlc"]["close"].as_f64());
    assert_eq!(today[4].as_f64(), quote["last_price"].as_f64());
    assert_eq!(today[2].as_f64(), quote["ohlc"]["high"].as_f64());
    let over = candles("day", "2020-11-20+00:00:00", "2026-11-20+23:59:59");
    assert_eq!(over.json()["message"].as_str(), Some("interval exceeds max limit: 2000 days"));
    assert_eq!(candles("minute", "2026-11-20", "2026-11-20").status, 400);
}

/// What is held stays the same from day to day, so what is bought today is sold today too, at
/// prices that a later call says again.
#[test]
fn trades_of_today_leave_what_is_held_as_it_is() {
    let (sim, clock) = sim();
    let trades = get(&sim, "/a/trades", BROKER_A).json();
    let rows = trades["data"].as_array().unwrap();
    let of = |member: &str| -> Vec<String> {
        rows.iter()
            .map(|row| row[member].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(of("transaction_type"), ["BUY", "SELL"]);
    assert_eq!(of("fill_timestamp"), ["2026-11-20 09:15:20", "2026-11-20 09:15:40"]);
    assert_ne!(of("trade_id")[0], of("trade_id")[1]);
    assert_eq!(rows[0]["quantity"], rows[1]["quantity"]);
    assert!(rows[0].get("isin").is_none());
    clock.advance_ms(3_600_000);
    assert_eq!(get(&sim, "/a/trades", BROKER_A).json(), trades);
    let order = r#"{"user_id":"SA0001","net":[{"trade_id":"1"}]}"#;
    let set = send(sim.addr(), "POST", "/sim/control/broker_a/trades", "", order).unwrap();
    assert_eq!(set.status, 200, "{}", set.text());
    let own = get(&sim, "/a/trades", BROKER_A).json();
    assert_eq!(own["data"][0]["trade_id"].as_str(), Some("1"));
    let (fresh, _) = sim_at("2026-11-21T11:00:00+05:30", SimSettings::default());
    let saturday = get(&fresh, "/a/trades", BROKER_A).json();
    assert_eq!(saturday["data"].as_array().map(sonic_rs::Array::len), Some(0));
}

#[test]
fn the_portfolio_keeps_its_identities() {
    let (sim, _) = sim();
    let holdings = get(&sim, "/a/portfolio/holdings", BROKER_A).json();
    let rows = holdings["data"].as_array().unwrap();
    assert_eq!(rows.len(), 12);
    for row in rows {
        let number = |name: &str| row[name].as_f64().unwrap();
        let pnl = (number("last_price") - number("average_price")) * number("quantity");
        assert!((pnl - number("pnl")).abs() < 0.001, "{row}");
        assert!(row["isin"].as_str().unwrap().starts_with("INE"));
    }
    assert!(
        rows.iter()
            .any(|row| row["quantity"] == 0 && row["t1_quantity"].as_i64() > Some(0))
    );
    let positions = get(&sim, "/a/portfolio/positions", BROKER_A).json();
    for row in positions["data"]["net"].as_array().unwrap() {
        let number = |name: &str| row[name].as_f64().unwrap();
        let pnl = number("value") + number("quantity") * number("last_price");
        assert!((pnl - number("pnl")).abs() < 0.001, "{row}");
    }
}
