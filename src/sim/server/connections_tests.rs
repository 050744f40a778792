//! The socket as a hostile or unlucky client sees it, and every fault as it shows on the wire.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::CONNECTIONS_MAX;
use crate::base::Clock;
use crate::sim::simulator::Sim;
use crate::sim::testing::{BROKER_A, BROWSER, get, send, set_fault, sim};
use crate::sim::world::SimSettings;

const QUOTE: &str = "/a/quote/ohlc?i=NSE:INFY";

fn clear(sim: &Sim) -> i64 {
    let got = send(sim.addr(), "DELETE", "/sim/control/faults", "", "").unwrap();
    got.json()["cleared"].as_i64().unwrap()
}

#[test]
fn a_connection_serves_many_requests_also_in_one_piece() {
    let (sim, _) = sim();
    let mut stream = TcpStream::connect(sim.addr()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let one = format!("GET {QUOTE} HTTP/1.1\r\nHost: x\r\n{BROKER_A}\r\n");
    let last = one.replace("Host: x", "Host: x\r\nConnection: close");
    stream
        .write_all(format!("{one}{one}{last}").as_bytes())
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), 3);
    assert_eq!(text.matches("X-Bhav-Simulator: seed=1\r\n").count(), 3);
    assert_eq!(text.matches("Connection: close\r\n").count(), 1);
}

#[test]
fn a_broken_request_is_answered_400_with_the_mark_and_closed() {
    let (sim, _) = sim();
    let mut stream = TcpStream::connect(sim.addr()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nContent-Length: x\r\nHost: x\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text}");
    assert!(text.contains("X-Bhav-Simulator: seed=1\r\n"));
    assert_eq!(get(&sim, "/nowhere", "").status, 404);
}

#[test]
fn one_connection_too_many_is_closed_at_once_and_a_free_place_is_used_again() {
    let (sim, _) = sim();
    let mut held: Vec<TcpStream> = (0..CONNECTIONS_MAX)
        .map(|_| {
            // A whole exchange proves that the server has taken the connection.
            let mut stream = TcpStream::connect(sim.addr()).unwrap();
            stream
                .write_all(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
                .unwrap();
            assert!(stream.read(&mut [0; 512]).unwrap() > 0);
            stream
        })
        .collect();
    assert!(send(sim.addr(), "GET", "/x", "", "").is_err(), "over the cap");
    held.pop();
    let timer = Clock::system();
    while send(sim.addr(), "GET", "/x", "", "").is_err() {
        assert!(timer.monotonic_ms() < 20_000, "the place stays taken");
    }
    let stats = get(&sim, "/sim/control/stats", "").json();
    assert!(stats["refused_connections"].as_i64() >= Some(1));
    // Stopping ends the connections that are held, and returns.
    sim.stop();
    for mut stream in held {
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(
            ended.is_ok() || ended.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
}

#[test]
fn refuse_resets_the_connection() {
    let (sim, _) = sim();
    set_fault(&sim, "broker_a.ohlc", r#"{"kind":"refuse"}"#);
    let error = send(sim.addr(), "GET", QUOTE, BROKER_A, "").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(get(&sim, "/a/quote/ltp?i=NSE:INFY", BROKER_A).status, 200, "another route");
    assert_eq!(clear(&sim), 1);
    assert_eq!(get(&sim, QUOTE, BROKER_A).status, 200);
}

#[test]
fn delay_and_drip_take_their_time() {
    let (sim, _) = sim();
    let timer = Clock::system();
    let took = || {
        let from = timer.monotonic_ms();
        assert_eq!(get(&sim, QUOTE, BROKER_A).status, 200);
        timer.monotonic_ms() - from
    };
    set_fault(&sim, "broker_a", r#"{"kind":"delay","delay_ms":300,"count":1}"#);
    assert!(took() >= 300);
    set_fault(&sim, "broker_a", r#"{"kind":"drip","bytes_per_s":1000}"#);
    // The reply has more than 250 bytes with its head.
    assert!(took() >= 250);
}

#[test]
fn truncate_breaks_the_promise_of_the_length() {
    let (sim, _) = sim();
    set_fault(&sim, "*", r#"{"kind":"truncate"}"#);
    let got = get(&sim, QUOTE, BROKER_A);
    let promised: usize = got.header("Content-Length").unwrap().parse().unwrap();
    assert_eq!(got.body.len(), promised / 2);
}

#[test]
fn faults_answer_in_each_upstreams_own_words() {
    let (sim, _) = sim();
    let spark = "/p/v7/finance/spark?symbols=INFY.NS";
    let details = "/b/customerdetails";
    let json_type = "Content-Type: application/json\r\n";
    for (fault, target, headers, status, words) in [
        (r#"{"kind":"rate_limit"}"#, QUOTE, BROKER_A, 429, "NetworkException"),
        (r#"{"kind":"rate_limit"}"#, spark, BROWSER, 429, "Edge: Too Many Requests"),
        (
            r#"{"kind":"rate_limit"}"#,
            details,
            json_type,
            429,
            "Limit exceed: API call per minute",
        ),
        (r#"{"kind":"error_in_200"}"#, QUOTE, BROKER_A, 200, r#""status":"error""#),
        (r#"{"kind":"error_in_200"}"#, spark, BROWSER, 200, r#""result":null"#),
        (r#"{"kind":"error_in_200"}"#, details, json_type, 200, r#""Success":null"#),
        (r#"{"kind":"html_5xx"}"#, QUOTE, BROKER_A, 502, "Will be right back"),
        (r#"{"kind":"html_5xx","status":503}"#, spark, BROWSER, 503, "<html>"),
        (r#"{"kind":"expired_token"}"#, QUOTE, BROKER_A, 403, "TokenException"),
        (
            r#"{"kind":"expired_token"}"#,
            details,
            json_type,
            200,
            "Resource not available.",
        ),
        (r#"{"kind":"expired_token"}"#, spark, BROWSER, 200, "regularMarketPrice"),
        (r#"{"kind":"no_permission"}"#, QUOTE, BROKER_A, 403, "PermissionException"),
    ] {
        set_fault(&sim, "*", fault);
        let got = get(&sim, target, headers);
        assert_eq!(got.status, status, "{fault} {target}");
        assert!(got.text().contains(words), "{fault} {target}: {}", got.text());
        assert_eq!(got.header("X-Bhav-Simulator"), Some("seed=1"), "{fault}");
        assert_eq!(clear(&sim), 1);
    }
}

#[test]
fn a_redirect_says_where_to() {
    let (sim, _) = sim();
    for (fault, status, location) in [
        (
            r#"{"kind":"redirect","location":"http://elsewhere.test/x"}"#,
            302,
            "http://elsewhere.test/x",
        ),
        (r#"{"kind":"redirect","location":"/here","status":308}"#, 308, "/here"),
    ] {
        set_fault(&sim, "*", fault);
        let got = get(&sim, QUOTE, BROKER_A);
        assert_eq!((got.status, got.header("Location")), (status, Some(location)));
        assert!(got.body.is_empty());
        assert_eq!(clear(&sim), 1);
    }
}

#[test]
fn a_fault_ends_after_its_count() {
    let (sim, _) = sim();
    set_fault(&sim, "broker_a.ohlc", r#"{"kind":"rate_limit","count":2}"#);
    let shown = get(&sim, "/sim/control/faults", "").json();
    assert_eq!(shown["faults"][0]["remaining"].as_i64(), Some(2));
    let statuses = [(); 3].map(|()| get(&sim, QUOTE, BROKER_A).status);
    assert_eq!(statuses, [429, 429, 200]);
    let stats = get(&sim, "/sim/control/stats", "").json();
    assert_eq!(stats["faults"].as_array().unwrap().len(), 0);
    assert_eq!(stats["requests"]["broker_a.ohlc"].as_i64(), Some(3));
    assert!(
        stats["rejected"]["broker_a.ohlc"].is_null(),
        "a fault is not the caller's doing"
    );
}

#[test]
fn content_faults_keep_the_envelope() {
    let (sim, clock) = sim();
    let spark = "/p/v7/finance/spark?symbols=INFY.NS";
    set_fault(&sim, "*", r#"{"kind":"wrong_types"}"#);
    let json = get(&sim, QUOTE, BROKER_A).json();
    assert_eq!(json["status"].as_str(), Some("success"));
    assert!(json["data"]["NSE:INFY"]["last_price"].is_str());
    clear(&sim);
    set_fault(&sim, "*", r#"{"kind":"missing_fields"}"#);
    let json = get(&sim, QUOTE, BROKER_A).json();
    let infy = &json["data"]["NSE:INFY"];
    assert!(infy.get("last_price").is_none() && infy.get("instrument_token").is_some());
    clear(&sim);
    set_fault(&sim, "*", r#"{"kind":"zero_price"}"#);
    let json = get(&sim, QUOTE, BROKER_A).json();
    assert_eq!(json["data"]["NSE:INFY"]["last_price"].as_i64(), Some(0));
    assert!(json["data"]["NSE:INFY"]["ohlc"]["close"].as_f64() > Some(0.0));
    let json = get(&sim, spark, BROWSER).json();
    let response = &json["spark"]["result"][0]["response"][0];
    assert_eq!(response["meta"]["regularMarketPrice"].as_i64(), Some(0));
    assert_eq!(response["indicators"]["quote"][0]["close"][0].as_i64(), Some(0));
    clear(&sim);
    set_fault(&sim, "broker_a.quote", r#"{"kind":"mute_price"}"#);
    let quote = || get(&sim, "/a/quote?i=NSE:INFY&i=NSE:NIFTY+50", BROKER_A);
    let before = quote();
    clock.advance_ms(600_000);
    assert_eq!(quote().text(), before.text(), "muted");
    clear(&sim);
    let after = quote().json();
    let infy = &after["data"]["NSE:INFY"];
    assert_eq!(infy["timestamp"].as_str(), Some("2026-11-20 11:52:17"));
}

#[test]
fn faults_of_time_leave_the_exchange_as_it_is() {
    let (sim, clock) = sim();
    let exchange = |at: &str| {
        let target = format!("/sim/control/exchange?at={at}%2B05:30&i=NSE:INFY&i=NSE:NOSUCH");
        let json = get(&sim, &target, "").json();
        assert!(json["ticks"].get("NSE:NOSUCH").is_none(), "{json}");
        json["ticks"]["NSE:INFY"].clone()
    };
    let quote = || get(&sim, "/a/quote?i=NSE:INFY", BROKER_A).json()["data"]["NSE:INFY"].clone();
    let [now, before] = ["2026-11-20T11:42:17", "2026-11-20T11:40:17"].map(exchange);
    assert_eq!(now["as_of"].as_str(), Some("2026-11-20T11:42:17+05:30"));
    assert_eq!(quote()["last_price"].to_string(), now["last_price"].to_string());
    assert_eq!(quote()["ohlc"]["close"].to_string(), now["previous_close"].to_string());
    set_fault(&sim, "*", r#"{"kind":"lag","by_s":120}"#);
    assert_eq!(quote()["timestamp"].as_str(), Some("2026-11-20 11:40:17"));
    assert_eq!(quote()["last_price"].to_string(), before["last_price"].to_string());
    clock.advance_ms(1_000);
    assert_eq!(quote()["timestamp"].as_str(), Some("2026-11-20 11:40:18"), "it moves on");
    clear(&sim);
    set_fault(&sim, "*", r#"{"kind":"future_time","by_s":60}"#);
    assert_eq!(quote()["timestamp"].as_str(), Some("2026-11-20 11:43:18"));
    let spark = "/p/v7/finance/spark?symbols=INFY.NS";
    let meta = &get(&sim, spark, BROWSER).json()["spark"]["result"][0]["response"][0]["meta"];
    let late = clock.now().as_second() - 900 + 60;
    assert_eq!(meta["regularMarketTime"].as_i64(), Some(late));
    clear(&sim);
    set_fault(&sim, "*", r#"{"kind":"nulls"}"#);
    assert!(quote()["last_price"].is_null() && quote()["ohlc"]["close"].is_null());
    for bad in [r#"{"kind":"lag"}"#, r#"{"kind":"refuse","by_s":3}"#] {
        let body = format!(r#"{{"route":"*","fault":{bad}}}"#);
        let got = send(sim.addr(), "POST", "/sim/control/faults", "", &body).unwrap();
        assert_eq!(got.status, 400, "{bad}");
    }
}

#[test]
fn a_split_scales_both_listings_and_keeps_the_change() {
    let (sim, _) = sim();
    let quotes = || {
        let json = get(&sim, "/a/quote?i=NSE:SBIN&i=BSE:SBIN&i=NSE:INFY", BROKER_A).json();
        ["NSE:SBIN", "BSE:SBIN", "NSE:INFY"].map(|key| {
            let quote = &json["data"][key];
            let number = |value: &sonic_rs::Value| value.as_f64().unwrap();
            let close = number(&quote["ohlc"]["close"]);
            (number(&quote["last_price"]), close, quote["volume"].as_i64().unwrap())
        })
    };
    let before = quotes();
    for adjusted in ["true", "false"] {
        let order = format!(r#"{{"symbol":"NSE:SBIN","new":4,"old":1,"adjusted":{adjusted}}}"#);
        let got = send(sim.addr(), "POST", "/sim/control/split", "", &order).unwrap();
        assert_eq!(got.text(), r#"{"split":["NSE:SBIN","BSE:SBIN"]}"#);
        let after = quotes();
        for (before, after) in before.iter().zip(&after).take(2) {
            assert!((after.0 * 4.0 - before.0).abs() < 0.5, "{before:?} {after:?}");
            // Whatever vendors do to candles, an exchange's previous close is in new shares.
            assert!((after.1 * 4.0 - before.1).abs() < 0.5, "{before:?} {after:?}");
            assert!((after.2 - before.2 * 4).abs() <= 4, "{before:?} {after:?}");
        }
        assert_eq!(after[2], before[2], "another company");
    }
    for (body, words) in [
        (r#"{"symbol":"NSE:NOSUCH","new":2,"old":1}"#, "no share"),
        (r#"{"symbol":"NSE:NIFTY 50","new":2,"old":1}"#, "no share"),
        (r#"{"symbol":"NSE:SBIN","new":0,"old":1}"#, "1 to 100"),
        (r#"{"symbol":"NSE:SBIN","new":1,"old":101}"#, "1 to 100"),
        (r#"{"symbol":"NSE:SBIN","new":2}"#, "old"),
    ] {
        let got = send(sim.addr(), "POST", "/sim/control/split", "", body).unwrap();
        assert_eq!(got.status, 400, "{body}");
        assert!(got.text().contains(words), "{body}: {}", got.text());
    }
    assert_eq!(get(&sim, "/sim/control/split", "").status, 404);
}

#[test]
fn control_says_what_is_wrong_with_an_order() {
    let (sim, _) = sim();
    for (body, words) in [
        ("", "body"),
        ("{}", "body"),
        (r#"{"route":"broker_a.quote","fault":{"kind":"explode"}}"#, "unknown variant"),
        (r#"{"route":"broker_c","fault":{"kind":"refuse"}}"#, "unknown route"),
        (r#"{"route":"*","fault":{"kind":"delay"}}"#, "delay_ms"),
        (
            r#"{"route":"*","fault":{"kind":"refuse","delay_ms":5}}"#,
            "does not go with refuse",
        ),
        (r#"{"route":"*","fault":{"kind":"drip","bytes_per_s":0}}"#, "bytes_per_s"),
        (r#"{"route":"*","fault":{"kind":"html_5xx","status":404}}"#, "500 to 599"),
        (r#"{"route":"*","fault":{"kind":"redirect"}}"#, "location"),
        (r#"{"route":"*","fault":{"kind":"redirect","location":"/a b"}}"#, "location"),
        (
            r#"{"route":"*","fault":{"kind":"refuse","location":"/"}}"#,
            "does not go with refuse",
        ),
        (
            r#"{"route":"*","fault":{"kind":"redirect","location":"/","status":200}}"#,
            "300 to 399",
        ),
        (r#"{"route":"*","fault":{"kind":"refuse","count":0}}"#, "count"),
        (r#"{"route":"*","fault":{"kind":"refuse"},"x":1}"#, "x"),
        (r#"{"route":"public","fault":{"kind":"no_permission"}}"#, "broker_a only"),
        (r#"{"route":"public.spark","fault":{"kind":"expired_token"}}"#, "brokers only"),
    ] {
        let got = send(sim.addr(), "POST", "/sim/control/faults", "", body).unwrap();
        assert_eq!(got.status, 400, "{body}");
        let json = got.json();
        let reason = json["error"].as_str().unwrap();
        assert!(reason.contains(words), "{body}: {reason}");
    }
    assert_eq!(clear(&sim), 0);
    assert_eq!(
        send(sim.addr(), "POST", "/sim/control/stats", "", "")
            .unwrap()
            .status,
        404
    );
    assert_eq!(get(&sim, "/sim/control/nothing", "").status, 404);
}

#[test]
fn a_client_that_gives_up_during_a_delay_frees_its_place() {
    let (sim, _) = sim();
    set_fault(&sim, "broker_a", r#"{"kind":"delay","delay_ms":600000}"#);
    let hung = format!("GET {QUOTE} HTTP/1.1\r\nHost: x\r\n{BROKER_A}\r\n");
    for _ in 0..CONNECTIONS_MAX {
        let mut stream = TcpStream::connect(sim.addr()).unwrap();
        stream.write_all(hung.as_bytes()).unwrap();
    }
    let timer = Clock::system();
    while send(sim.addr(), "GET", "/x", "", "").is_err() {
        assert!(timer.monotonic_ms() < 20_000, "the places stay taken");
    }
}

#[test]
fn a_usual_client_library_gets_along_with_it() {
    let (sim, _) = sim();
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(20)))
        .build()
        .into();
    let got = agent
        .get(format!("{}/instruments", sim.broker_a_url()))
        .header("X-Kite-Version", "3")
        .call();
    let text = got.unwrap().body_mut().read_to_string().unwrap();
    assert!(text.starts_with("instrument_token,exchange_token"), "decompressed");
    let got = agent
        .get(format!("{}/customerdetails", sim.broker_b_url()))
        .header("Content-Type", "application/json")
        .force_send_body()
        .send(r#"{"SessionToken":"12345678","AppKey":"sim+key=b&1"}"#);
    let text = got.unwrap().body_mut().read_to_string().unwrap();
    assert!(text.contains("session_token"), "{text}");
}

#[test]
fn a_busy_address_is_an_error() {
    let (sim, clock) = sim();
    let settings = SimSettings {
        listen: sim.addr().to_string(),
        ..SimSettings::default()
    };
    let error = crate::sim::simulator::start(settings, clock.clone())
        .err()
        .unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}
