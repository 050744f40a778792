//! Broker A's WebSocket against the simulator's: prices from ticks, polls that only confirm them,
//! and the course of both during faults.

use bhav::base::Clock;
use bhav::config::Config;
use bhav::sim::SimSettings;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::support::wait::{at_once, until};
use crate::support::{SNAPSHOT, Scene, Service, TRADING};

pub const ROUTE: &str = "broker_a.ticker";

fn config(scene: &Scene) -> Config {
    let mut config = scene.config();
    config.broker_a.ticker_url = scene.sim.broker_a_ticker_url();
    config
}

pub fn ticker(health: &Value) -> &Value {
    &health["feeds"]["broker_a"]["ticker"]
}

fn polls(health: &Value) -> u64 {
    health["feeds"]["broker_a"]["rounds"].as_u64().unwrap()
}

/// The first health document for which `holds` is true of the ticker.
fn health_where(service: &Service, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    until(what, || Some(service.health()).filter(|health| holds(ticker(health))))
}

pub fn live(service: &Service) -> Value {
    health_where(service, "ticks", |ticker| ticker["live"] == true)
}

pub fn stands(ticker: &Value, state: &str, failure: &str) -> bool {
    ticker["state"] == state && ticker["failure"].as_str() == Some(failure)
}

/// Polls the snapshot until `done`. It must never be stale, and its time must never go back.
/// `fault` names the ticker's fault meanwhile.
#[track_caller]
pub fn fresh_until(service: &Service, fault: &str, what: &str, done: impl Fn(&Value) -> bool) {
    let (mut client, mut newest) = (service.client(), String::new());
    // The ticker's state may be reported before the first call is answered.
    service.snapshot_where("a first snapshot", |_| true);
    until(&format!("{what} under {fault}"), || {
        let shown = client.get(SNAPSHOT).json();
        let seen = || format!("{}\n{}", shown["market"], service.health()["feeds"]);
        assert_eq!(shown["market"]["stale"].as_bool(), Some(false), "{fault}: {}", seen());
        let as_of = as_of(&shown);
        assert!(as_of >= newest, "{fault}: {newest} was shown before {}", seen());
        newest = as_of;
        done(&shown).then_some(())
    });
}

fn as_of(shown: &Value) -> String {
    shown["market"]["as_of_ist"].as_str().unwrap().to_owned()
}

#[test]
fn prices_come_by_ticks_and_polls_only_confirm_them() {
    let scene = Scene::at(TRADING);
    let service = scene.start_with(&config(&scene));
    let began = live(&service);
    assert_eq!(ticker(&began)["state"].as_str(), Some("speaking"));
    let ticks = ticker(&began)["ticks"].as_u64().unwrap();
    let subscribed = ticker(&began)["subscribed"].as_u64().unwrap();
    let start = as_of(&service.get(SNAPSHOT).json());
    // Some seconds of ticks of every index, in which full polling would make a dozen calls or more.
    let later = health_where(&service, "more ticks", |ticker| {
        ticker["ticks"].as_u64().unwrap() >= ticks + 4 * subscribed
    });
    assert!(polls(&later) <= polls(&began) + 2, "{} {}", polls(&began), polls(&later));
    let shown = service.get(SNAPSHOT).json();
    assert!(as_of(&shown) > start);
    assert_eq!(shown["market"]["source"].as_str(), Some("broker_a"));
    assert_eq!(shown["market"]["simulated"].as_bool(), Some(true));
    assert_eq!(later["feeds"]["broker_a"]["state"].as_str(), Some("ok"));
    service.stop();
}

#[test]
fn what_clients_ask_for_is_answered_by_a_call_and_then_ticks() {
    let scene = Scene::at(TRADING);
    let service = scene.start_with(&config(&scene));
    let began = ticker(&live(&service))["subscribed"].as_u64().unwrap();
    // A miss: a call answers although polls are slow.
    let first = service.prices("NSE:INFY").json();
    assert_eq!(first["quotes"][0]["symbol"].as_str(), Some("NSE:INFY"), "{first:?}");
    let now = health_where(&service, "one more subscription", |ticker| {
        ticker["subscribed"].as_u64() == Some(began + 1)
    });
    let time = |json: &Value| json["quotes"][0]["as_of"].as_str().unwrap().to_owned();
    until("a newer price by a tick", || {
        let quotes = service.prices("NSE:INFY").json();
        (time(&quotes) > time(&first)).then_some(())
    });
    let after = service.health();
    assert!(polls(&after) <= polls(&now) + 2);
    assert_eq!(scene.stats()["ticker_subscribed"].as_u64(), Some(began + 1));
    service.stop();
}

#[test]
fn when_ticks_stop_calls_keep_every_snapshot_fresh() {
    let faults = [("hangup", "broken"), ("close_frame", "broken"), ("silent", "silent")];
    at_once(faults, |(fault, failure)| {
        let scene = Scene::at(TRADING);
        let service = scene.start_with(&config(&scene));
        let before = polls(&live(&service));
        scene.fault(ROUTE, &format!(r#"{{"kind":"{fault}"}}"#));
        fresh_until(&service, fault, "the end of the connection", |_| {
            let health = service.health();
            ticker(&health)["failure"].as_str() == Some(failure) && polls(&health) > before + 3
        });
        assert_eq!(scene.control("DELETE", "faults", "").status, 200);
        fresh_until(&service, fault, "ticks again", |_| ticker(&service.health())["live"] == true);
        service.stop();
    });
}

#[test]
fn heartbeats_without_prices_are_not_taken_for_prices() {
    at_once(["heartbeat_only", "lead_stands", "mute_price"], |fault| {
        let scene = Scene::at(TRADING);
        let service = scene.start_with(&config(&scene));
        let before = polls(&live(&service));
        scene.fault(ROUTE, &format!(r#"{{"kind":"{fault}"}}"#));
        fresh_until(&service, fault, "polls at full pace", |_| {
            let health = service.health();
            ticker(&health)["live"] == false && polls(&health) > before + 5
        });
        assert_eq!(ticker(&service.health())["reconnects"].as_u64(), Some(0));
        service.stop();
    });
}

#[test]
fn polls_never_exceed_one_a_second_whatever_the_ticker_does() {
    let scene = Scene::with(TRADING, SimSettings::default());
    let mut config = config(&scene);
    config.broker_a.quote_interval_ms = 1_050;
    let service = scene.start_with(&config);
    live(&service);
    for _ in 0..2 {
        scene.fault(ROUTE, r#"{"kind":"hangup","count":1}"#);
        let live = || ticker(&service.health())["live"] == true;
        fresh_until(&service, "hangup", "a loss", |_| !live());
        fresh_until(&service, "hangup", "ticks again", |_| live());
    }
    let stats = scene.stats();
    assert_eq!(stats["max_quote_calls_in_1s"].as_i64(), Some(1));
    assert!(stats["rejected"].as_object().unwrap().is_empty(), "{stats:?}");
    service.stop();
}

#[test]
fn a_refused_connection_is_no_verdict_on_the_token() {
    let scene = Scene::at(TRADING);
    scene.fault(ROUTE, r#"{"kind":"expired_token"}"#);
    let service = scene.start_with(&config(&scene));
    let health = health_where(&service, "a refusal", |ticker| stands(ticker, "refused", "refused"));
    let before = polls(&health);
    fresh_until(&service, "expired_token", "polls at full pace", |_| {
        polls(&service.health()) > before + 5
    });
    assert_eq!(service.health()["feeds"]["broker_a"]["state"].as_str(), Some("ok"));
    assert_eq!(scene.stats()["requests"][ROUTE].as_i64(), Some(1), "tried once");
    service.stop();
}

#[test]
fn other_answers_than_an_upgrade_are_told_apart() {
    let answers = [
        (r#"{"kind":"rate_limit"}"#, "busy"),
        (r#"{"kind":"html_5xx"}"#, "busy"),
        (r#"{"kind":"redirect","location":"http://127.0.0.1:1/"}"#, "redirected"),
        (r#"{"kind":"error_in_200"}"#, "not_websocket"),
        (r#"{"kind":"refuse"}"#, "unreachable"),
    ];
    at_once(answers, |(fault, failure)| {
        let scene = Scene::at(TRADING);
        scene.fault(ROUTE, fault);
        let service = scene.start_with(&config(&scene));
        health_where(&service, fault, |ticker| stands(ticker, "waiting", failure));
        service.fresh_snapshot();
        service.stop();
    });
}

#[test]
fn messages_that_come_slowly_are_read_whole() {
    let scene = Scene::at(TRADING);
    let service = scene.start_with(&config(&scene));
    let before = live(&service);
    // Half a second for a message, over many waits of a read.
    scene.fault(ROUTE, r#"{"kind":"drip","bytes_per_s":1000}"#);
    let ticks = ticker(&before)["ticks"].as_u64().unwrap();
    let subscribed = ticker(&before)["subscribed"].as_u64().unwrap();
    fresh_until(&service, "a slow line", "ticks", |_| {
        ticker(&service.health())["ticks"].as_u64().unwrap() >= ticks + 5 * subscribed
    });
    let after = service.health();
    assert_eq!(ticker(&after)["reconnects"].as_u64(), Some(0));
    assert!(ticker(&after)["failure"].is_null());
    service.stop();
}

/// More than half a minute for a message; a byte comes sooner than a read gives up.
#[test]
fn messages_that_never_end_are_silence() {
    let scene = Scene::at(TRADING);
    let service = scene.start_with(&config(&scene));
    let subscribed = ticker(&live(&service))["subscribed"].as_u64().unwrap();
    let more = service.prices("NSE:INFY,NSE:TCS,NSE:SBIN").json();
    assert_eq!(more["quotes"].as_array().unwrap().len(), 3);
    let after = health_where(&service, "their ticks", |ticker| {
        ticker["live"] == true && ticker["subscribed"].as_u64() == Some(subscribed + 3)
    });
    scene.fault(ROUTE, r#"{"kind":"drip","bytes_per_s":20}"#);
    fresh_until(&service, "a crawling line", "its end", |_| {
        let health = service.health();
        ticker(&health)["failure"].as_str() == Some("silent") && polls(&health) > polls(&after) + 3
    });
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    fresh_until(&service, "a crawling line", "ticks again", |_| {
        ticker(&service.health())["live"] == true
    });
    service.stop();
}

#[test]
fn damaged_packets_are_counted_and_left_out() {
    let scene = Scene::at(TRADING);
    let service = scene.start_with(&config(&scene));
    let before = live(&service);
    scene.fault(ROUTE, r#"{"kind":"unknown_length"}"#);
    let ticks = ticker(&before)["ticks"].as_u64().unwrap();
    fresh_until(&service, "unknown_length", "polls", |_| {
        polls(&service.health()) > polls(&before) + 3
    });
    let after = service.health();
    assert_eq!(ticker(&after)["reconnects"].as_u64(), Some(0));
    let subscribed = ticker(&after)["subscribed"].as_u64().unwrap();
    // Health is up to a second old on both sides.
    assert!(ticker(&after)["ticks"].as_u64().unwrap() <= ticks + 3 * subscribed);
    service.stop();
}

#[test]
fn bad_framing_ends_the_connection() {
    let scene = Scene::at(TRADING);
    let service = scene.start_with(&config(&scene));
    live(&service);
    scene.fault(ROUTE, r#"{"kind":"short"}"#);
    fresh_until(&service, "short", "the end of the connection", |_| {
        ticker(&service.health())["failure"].as_str() == Some("bad_messages")
    });
    service.stop();
}

#[test]
fn strange_but_harmless_messages_change_nothing() {
    let scene = Scene::at(TRADING);
    let service = scene.start_with(&config(&scene));
    let before = live(&service);
    for kind in ["order_text", "error_text", "ping", "fragmented", "flood"] {
        scene.fault(ROUTE, &format!(r#"{{"kind":"{kind}"}}"#));
    }
    let ticks = ticker(&before)["ticks"].as_u64().unwrap();
    fresh_until(&service, "a flood and more", "floods", |_| {
        ticker(&service.health())["ticks"].as_u64().unwrap() > ticks + 15_000
    });
    let health = service.get("/api/health");
    assert!(!health.text().contains("SIMORDERCANARY"));
    assert_eq!(ticker(&health.json())["reconnects"].as_u64(), Some(0));
    assert_eq!(ticker(&health.json())["live"].as_bool(), Some(true));
    service.stop();
}

#[test]
fn ticks_that_are_implausible_or_late_are_not_shown_and_polls_return_to_full_pace() {
    let faults = [
        r#"{"kind":"zero_price"}"#,
        r#"{"kind":"future_time","by_s":600}"#,
        r#"{"kind":"future_time","by_s":60}"#,
        r#"{"kind":"lag","by_s":30}"#,
        r#"{"kind":"wrong_endian"}"#,
    ];
    at_once(faults, |fault| {
        let scene = Scene::at(TRADING);
        let service = scene.start_with(&config(&scene));
        // A source whose clock is not known yet is trusted.
        let measured = health_where(&service, "seconds of ticks", |ticker| {
            ticker["ticks"].as_u64().unwrap() >= 4 * ticker["subscribed"].as_u64().unwrap().max(1)
        });
        let before = polls(&measured);
        scene.fault(ROUTE, fault);
        fresh_until(&service, fault, "polls at full pace", |shown| {
            let at: jiff::Timestamp = as_of(shown).parse().unwrap();
            let ahead = at.duration_since(scene.clock.now()).as_secs();
            assert!(ahead < 30, "{fault}: {at}");
            assert!(shown["index1_price"].as_f64().unwrap() > 1.0);
            polls(&service.health()) > before + 5
        });
        service.stop();
    });
}

#[test]
fn a_login_opens_it_and_the_end_of_the_token_closes_it() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config_without_tokens();
    config.broker_a.ticker_url = scene.sim.broker_a_ticker_url();
    let service = scene.start_with(&config);
    health_where(&service, "rest", |ticker| ticker["state"] == "off");
    assert_eq!(scene.stats()["ticker_connections"].as_i64(), Some(0));
    let body = format!(r#"{{"request_token":"{}"}}"#, scene.request_token());
    let answer = service.post("/brokera/activate", "", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    live(&service);
    assert_eq!(scene.stats()["ticker_connections"].as_i64(), Some(1));
    // Calls find the token dead, and the ticker stops too.
    assert_eq!(scene.control("POST", "broker_a/expire", "").status, 200);
    service.prices("NSE:INFY");
    health_where(&service, "rest again", |ticker| ticker["state"] == "off");
    until("no connection", || (scene.stats()["ticker_connections"] == 0).then_some(()));
    service.stop();
}

/// Hours of this day only: ticks are needed around six, when tokens end.
const EARLY: &str = r#"
[[session]]
date = "2026-11-20"
name = "Early"
source = "made up"
[[session.part]]
continuous = "05:30-12:00"
"#;

#[test]
fn at_six_it_closes_with_the_token_and_opens_again_with_the_login_of_the_morning() {
    let clock = Clock::manual("2026-11-20T05:59:57+05:30".parse().unwrap());
    let settings = SimSettings { rate_limits: false, ..SimSettings::default() };
    let scene = Scene::by_hand(clock, settings);
    let calendar = scene.state.path().join("calendar.toml");
    std::fs::write(&calendar, EARLY).unwrap();
    let mut config = scene.config_without_tokens();
    config.market.calendar_file = Some(calendar);
    config.broker_a.access_token = Some("simtokena".into());
    config.broker_a.ticker_url = scene.sim.broker_a_ticker_url();
    let service = scene.start_with(&config);
    let open = || scene.stats()["ticker_connections"].as_i64().unwrap();
    let opened = || scene.stats()["requests"][ROUTE].as_i64();
    until("a connection", || open() == 1);
    scene.advance_ms(2_999);
    // Every wait of the ticker's thread has ended several times.
    let timer = Clock::system();
    until("a second", || timer.monotonic_ms() > 1_000);
    assert_eq!((open(), opened()), (1, Some(1)), "a millisecond before");
    scene.advance_ms(1);
    until("its end", || open() == 0);
    // Hours without a token, in which nothing is tried.
    for _ in 0..19 {
        scene.advance_ms(10 * 60_000);
        let timer = Clock::system();
        until("a moment", || timer.monotonic_ms() > 50);
    }
    let rests = health_where(&service, "rest", |ticker| ticker["state"] == "off");
    assert!(ticker(&rests)["failure"].is_null());
    assert_eq!(ticker(&rests)["reconnects"].as_u64(), Some(0));
    assert_eq!((open(), opened()), (0, Some(1)));
    let body = format!(r#"{{"request_token":"{}"}}"#, scene.request_token());
    let answer = service.post("/brokera/activate", "", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    until("a connection", || open() == 1);
    assert_eq!(opened(), Some(2));
    service.stop();
}

#[test]
fn it_rests_while_the_market_does() {
    let scene = Scene::at("2026-11-20T20:00:00+05:30");
    let service = scene.start_with(&config(&scene));
    service.fresh_snapshot();
    let health = service.health();
    assert_eq!(ticker(&health)["state"].as_str(), Some("off"));
    assert!(ticker(&health)["failure"].is_null());
    service.stop();
}

#[test]
fn another_broker_than_the_usual_one_has_no_usual_ticker() {
    let scene = Scene::at(TRADING);
    let service = scene.start();
    service.fresh_snapshot();
    assert!(ticker(&service.health()).is_null());
    service.stop();
}

#[test]
fn a_peer_that_speaks_no_tls_is_told_apart() {
    let scene = Scene::at(TRADING);
    let mut config = config(&scene);
    config.broker_a.ticker_url = config.broker_a.ticker_url.replace("ws://", "wss://");
    let service = scene.start_with(&config);
    health_where(&service, "a failed handshake", |ticker| stands(ticker, "waiting", "tls"));
    service.fresh_snapshot();
    service.stop();
}

/// An idle machine takes less than 300 ms: the ticker at most a quarter of a second, and the
/// service the rest. A busy machine gets more.
#[expect(clippy::print_stdout, reason = "what was measured")]
fn ended_within_reason(took_ms: u64) {
    println!("the service ended within {took_ms} ms");
    assert!(took_ms < 5_000, "{took_ms} ms");
}

#[test]
fn a_peer_that_never_answers_does_not_hold_up_the_end() {
    let scene = Scene::at(TRADING);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config(&scene);
    config.broker_a.ticker_url = format!("ws://{}", silent.local_addr().unwrap());
    let service = scene.start_with(&config);
    health_where(&service, "a connection under way", |ticker| ticker["state"] == "connecting");
    fresh_until(&service, "no answer", "polls at full pace", |_| polls(&service.health()) > 5);
    let timer = Clock::system();
    service.stop();
    // The upgrade alone may take seven seconds.
    ended_within_reason(timer.monotonic_ms());
}

#[test]
fn a_service_that_stops_says_goodbye_and_does_not_wait_for_the_ticker() {
    let scene = Scene::at(TRADING);
    let service = scene.start_with(&config(&scene));
    live(&service);
    let timer = Clock::system();
    service.stop();
    ended_within_reason(timer.monotonic_ms());
    until("no connection", || scene.stats()["ticker_connections"] == 0);
}

#[test]
fn before_and_after_continuous_trading_it_stays_and_prices_are_as_fresh_as_the_phase_says() {
    let phases =
        [("2026-11-20T09:03:00+05:30", "pre_open"), ("2026-11-20T15:20:00+05:30", "closing")];
    at_once(phases, |(at, phase)| {
        let scene = Scene::at(at);
        let service = scene.start_with(&config(&scene));
        let began = health_where(&service, "a subscription", |ticker| {
            ticker["subscribed"].as_u64().unwrap() >= 3
        });
        // Longer than a connection without ticks lasts while prices move.
        fresh_until(&service, phase, "some seconds", |shown| {
            assert_eq!(shown["market"]["phase"].as_str(), Some(phase));
            let passed_ms = service.health()["uptime_s"].as_u64().unwrap() * 1_000;
            passed_ms > 12_000
        });
        let health = service.health();
        assert_eq!(ticker(&health)["reconnects"].as_u64(), Some(0), "{phase}: {began:?}");
        let exchange: jiff::Timestamp = as_of(&service.get(SNAPSHOT).json()).parse().unwrap();
        assert!(exchange <= scene.clock.now(), "{phase}");
        service.stop();
    });
}

#[test]
fn ticks_that_differ_from_calls_are_counted_and_those_of_the_same_world_do_not() {
    let scene = Scene::at(TRADING);
    let mut config = config(&scene);
    config.admin.listen = "127.0.0.1:0".into();
    let service = scene.start_with(&config);
    let before = polls(&live(&service));
    // Each miss is a call in addition to the ticks.
    for symbol in ["NSE:INFY", "NSE:TCS", "NSE:SBIN"] {
        service.prices(symbol);
    }
    until("calls beside ticks", || polls(&service.health()) > before + 2);
    let metrics = service.admin().get("/metrics").text().to_owned();
    assert!(metrics.contains("\nbhav_ticker_disagrees_total 0\n"), "{metrics}");
    assert!(metrics.contains("\nbhav_ticker_up 1\n"), "{metrics}");
    service.stop();
}
