//! `GET /api/market/candles`: stored candles, as clients get them.

use std::fmt::Write as _;

use super::stage::{FIVE, SIGNALS, Stage};
use crate::support::scrape::Scrape;
use crate::support::{Answer, Service, bearer};
use bhav::base::{Candle, Symbol};
use bhav::store::Epoch;
use jiff::civil::{Date, date};
use rust_decimal::Decimal;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

const CANDLES: &str = "/api/market/candles";
const FRIDAY: Date = date(2026, 11, 20);
const ON_FRIDAY: &str = "2026-11-20";
const MONDAY: Date = date(2026, 11, 23);
const ON_MONDAY: &str = "2026-11-23";

/// The expected rows of the route: every digit of a price, and no more.
fn written(candles: &[Candle]) -> String {
    let price = |price_e4: i64| Decimal::new(price_e4, 4).normalize();
    let mut out = String::new();
    for candle in candles {
        let comma = if out.is_empty() { "" } else { "," };
        let Candle { date, volume, .. } = candle;
        let (open, high) = (price(candle.open_e4), price(candle.high_e4));
        let (low, close) = (price(candle.low_e4), price(candle.close_e4));
        write!(out, r#"{comma}{{"date":"{date}","open":{open},"high":{high},"#).unwrap();
        write!(out, r#""low":{low},"close":{close},"volume":{volume}}}"#).unwrap();
    }
    out
}

/// Waits until the newest candle is of `date`.
fn await_candles(stage: &Stage, service: &Service, query: &str, date: &str) -> Answer {
    stage.step_until("candles up to the date", || {
        let answer = service.get(&format!("{CANDLES}?{query}"));
        let newest = format!("\"date\":\"{date}\"");
        (answer.status == 200 && answer.text().contains(&newest)).then_some(answer)
    })
}

#[test]
fn the_newest_stored_candles_are_served_to_the_last_digit() {
    let stage = Stage::on(ON_FRIDAY);
    let service = stage.start();
    for (symbol, query) in [("NSE:INFY", "NSE:INFY"), ("NSE:M&M", "NSE%3AM%26M")] {
        let all = await_candles(&stage, &service, &format!("symbol={query}&days=600"), ON_FRIDAY);
        let stored = stage.candles(symbol, FRIDAY);
        let head = |count: usize| {
            let about = r#""state":"ready","source":"broker_a","simulated":true"#;
            format!(r#"{{"symbol":"{symbol}",{about},"count":{count},"candles":["#)
        };
        assert_eq!(all.text(), format!("{}{}]}}", head(stored.len()), written(&stored)));
        for days in [1, 3, 250] {
            let answer = service.get(&format!("{CANDLES}?symbol={query}&days={days}"));
            let newest = written(&stored[stored.len() - days..]);
            assert_eq!(answer.text(), format!("{}{newest}]}}", head(days)));
        }
        let usual = service.get(&format!("{CANDLES}?symbol={query}"));
        assert_eq!(usual.json()["count"].as_u64(), Some(250));
    }
}

/// Candles for charts come after those of which signals are made. Indices are not traded: their
/// candles have no volume.
#[test]
fn candles_of_indices_and_of_what_is_held_follow_those_of_signals() {
    let stage = Stage::on(ON_FRIDAY);
    let mut config = stage.config();
    config.market.candles_beyond_max = 20;
    let service = stage.started(&config);
    let auth = bearer(&service.register("held@example.com", "a long enough secret"));
    let code = stage.scene.request_token();
    let keys = r#""api_key":"simkeya-1","api_secret":"simsecreta""#;
    let body = format!(r#"{{{keys},"request_token":"{code}"}}"#);
    service
        .post("/api/portfolio/sync", &auth, &body)
        .with_status(200);
    for query in [
        "NSE:NIFTY%2050",
        "NSE:NIFTY%20BANK",
        "BSE:SENSEX",
        "NSE:NIFTY%20IT",
    ] {
        let answer = await_candles(&stage, &service, &format!("symbol={query}"), ON_FRIDAY);
        assert_eq!(answer.json()["count"].as_u64(), Some(250), "{query}");
        assert_eq!(answer.json()["candles"][0]["volume"].as_u64(), Some(0), "{query}");
    }
    assert_eq!(service.health()["signals"]["symbols"].as_u64(), Some(5), "of the universe");
    let holdings = service
        .client()
        .request("GET", "/api/portfolio/holdings", &auth)
        .json();
    let rows = holdings["holdings"].as_array().unwrap().iter();
    let names = rows.map(|row| format!("NSE:{}", row["tradingsymbol"].as_str().unwrap()));
    let mut beyond: Vec<String> = names
        .filter(|name| !FIVE.contains(&name.as_str()))
        .collect();
    beyond.sort();
    // It was held when the signals were made.
    await_candles(&stage, &service, &format!("symbol={}", beyond[0]), ON_FRIDAY);
}

#[test]
fn an_unchanged_history_is_a_304_and_the_next_evening_changes_it() {
    let stage = Stage::on(ON_FRIDAY);
    let service = stage.start();
    let target = format!("{CANDLES}?symbol=NSE:INFY&days=5");
    let first = await_candles(&stage, &service, "symbol=NSE:INFY&days=5", ON_FRIDAY);
    assert_eq!(first.header("cache-control"), Some("public, no-cache"));
    let tag = first.header("etag").unwrap().to_owned();
    assert!(tag.starts_with('"'), "not strong: {tag}");
    let mut client = service.client();
    let mut ask = |target: &str, line: &str| client.request("GET", target, line);
    let none = format!("If-None-Match: {tag}\r\n");
    let unchanged = ask(&target, &none);
    assert_eq!((unchanged.status, &*unchanged.body), (304, &b""[..]));
    assert_eq!(unchanged.header("etag"), Some(&*tag));
    assert_eq!(ask(&target, &format!("If-Match: {tag}\r\n")).status, 200);
    ask(&target, "If-Match: \"x\"\r\n").expect_problem(412, "precondition_failed");
    assert_eq!(ask(&format!("{CANDLES}?symbol=NSE:INFY&days=6"), &none).status, 200);
    stage.go_to(MONDAY);
    let later = await_candles(&stage, &service, "symbol=NSE:INFY&days=5", ON_MONDAY);
    assert_ne!(later.header("etag"), Some(&*tag));
}

#[test]
fn candles_that_must_be_fetched_again_are_marked() {
    let stage = Stage::on(ON_FRIDAY);
    let service = stage.start();
    for symbol in ["NSE:INFY", "NSE:TCS"] {
        await_candles(&stage, &service, &format!("symbol={symbol}"), ON_FRIDAY);
    }
    service.stop();
    let symbol = Symbol::parse("NSE:INFY").unwrap();
    stage
        .store()
        .want_refetch(Epoch::ALONE, &symbol, None)
        .unwrap();
    stage.scene.refuse_all();
    let service = stage.start();
    let marked = service.get(&format!("{CANDLES}?symbol=NSE:INFY"));
    assert_eq!(marked.json()["suspect"], true, "{}", marked.text());
    let other = service.get(&format!("{CANDLES}?symbol=NSE:TCS"));
    assert!(other.status == 200 && !other.text().contains("suspect"), "{}", other.text());
}

/// Broker A's histories are refused for their holes, until the public provider is asked.
#[test]
fn shares_whose_histories_have_nine_bad_candles_are_counted_until_they_have_candles() {
    let stage = Stage::on(ON_FRIDAY);
    stage
        .scene
        .fault("broker_a.historical", r#"{"kind":"nan_candles"}"#);
    let service = stage.start();
    let target = format!("{CANDLES}?symbol=NSE:INFY");
    stage.health_where("the refused ones to be counted", &service, |json| {
        json["signals"]["failed"].as_u64() == Some(5)
    });
    let waits = service.get(&target);
    assert_eq!((waits.status, &waits.json()["state"]), (200, &"loading".into()));
    await_candles(&stage, &service, "symbol=NSE:INFY", ON_FRIDAY);
    stage.health_where("none that fails", &service, |json| {
        json["signals"]["failed"].as_u64() == Some(0)
    });
}

/// A demerger, splits, a bonus and a consolidation that the vendor does not apply backwards.
#[test]
fn candles_of_a_silenced_symbol_are_marked_whatever_the_gap() {
    for (new, old) in [(10, 7), (10, 1), (6, 5), (4, 3), (2, 3)] {
        let stage = Stage::on("2026-11-19");
        stage.publish("2026-11-19");
        stage.go_to(FRIDAY);
        let order = format!(r#"{{"symbol":"NSE:INFY","new":{new},"old":{old},"adjusted":false}}"#);
        assert_eq!(stage.scene.control("POST", "split", &order).status, 200);
        let service = stage.start();
        let list = stage.await_signals(&service, ON_FRIDAY);
        assert!(!list.text().contains("NSE:INFY"), "{new}:{old} {}", list.text());
        stage.health_where("one silenced", &service, |json| {
            json["signals"]["silenced"].as_u64() == Some(1)
        });
        // Whether they are to be fetched again, or were.
        for symbol in ["NSE:INFY", "NSE:TCS"] {
            let answer = service.get(&format!("{CANDLES}?symbol={symbol}"));
            let is_marked = answer.text().contains(r#""suspect":true"#);
            assert_eq!(is_marked, symbol == "NSE:INFY", "{new}:{old} {symbol}");
        }
    }
}

#[test]
fn candles_that_end_sessions_ago_are_marked() {
    let stage = Stage::on(ON_FRIDAY);
    let service = stage.start();
    await_candles(&stage, &service, "symbol=NSE:INFY", ON_FRIDAY);
    service.stop();
    stage.scene.refuse_all();
    for (now, is_marked) in [
        // Monday's candle may still come. Tuesday is a holiday.
        ("2026-11-23T18:00:00+05:30", false),
        ("2026-11-25T11:00:00+05:30", false),
        ("2026-11-25T18:00:00+05:30", true),
    ] {
        let at: jiff::Timestamp = now.parse().unwrap();
        stage
            .scene
            .advance_ms(at.as_millisecond() - stage.scene.clock.now_ms());
        let service = stage.start();
        let answer = service.get(&format!("{CANDLES}?symbol=NSE:INFY"));
        assert_eq!(answer.text().contains(r#""suspect":true"#), is_marked, "{now}");
        service.stop();
    }
}

#[test]
fn symbols_without_candles_and_bad_queries_are_refused() {
    let stage = Stage::on(ON_FRIDAY);
    stage.scene.refuse_all();
    let service = stage.start();
    let unlisted = service.get(&format!("{CANDLES}?symbol=BSE:NOSUCH"));
    unlisted.expect_problem(404, "candles_not_found");
    for (query, field) in [
        ("", "symbol"),
        ("symbol=INFY", "symbol"),
        ("symbol=nse:infy", "symbol"),
        ("symbol=NSE:INFY&symbol=NSE:TCS", "symbol"),
        ("symbol=NSE:INFY&days=0", "days"),
        ("symbol=NSE:INFY&days=601", "days"),
        ("symbol=NSE:INFY&days=%2B3", "days"),
        ("symbol=NSE:INFY&days=", "days"),
        ("symbol=NSE:INFY&days=3&days=3", "days"),
    ] {
        let answer = service.get(&format!("{CANDLES}?{query}"));
        let problem = answer.expect_problem(400, "validation_failed");
        assert_eq!(problem["errors"][0]["field"], field, "{query}");
    }
}

#[test]
fn candles_are_compressed_once_for_who_accepts_it() {
    let stage = Stage::on(ON_FRIDAY);
    let mut config = stage.config();
    config.admin.listen = "127.0.0.1:0".into();
    let service = stage.scene.start_with(&config);
    await_candles(&stage, &service, "symbol=NSE:INFY", ON_FRIDAY);
    let target = |days: usize| format!("{CANDLES}?symbol=NSE:INFY&days={days}");
    let mut client = service.client();
    let mut tags = Vec::new();
    for days in [100, 250] {
        let plain = service.get(&target(days));
        tags.push(plain.header("etag").unwrap().to_owned());
        for coding in ["br", "gzip"] {
            let accept = format!("Accept-Encoding: {coding}\r\n");
            let answer = client.request("GET", &target(days), &accept);
            assert_eq!(answer.header("content-encoding"), Some(coding));
            assert_eq!(answer.decoded(), plain.text());
            assert!(answer.body.len() * 2 < plain.body.len(), "{coding} {}", answer.body.len());
            let tag = answer.header("etag").unwrap();
            let lines = format!("{accept}If-None-Match: {tag}\r\n");
            let same = client.request("GET", &target(days), &lines);
            assert_eq!((same.status, same.header("etag")), (304, Some(tag)));
            for shown in [&plain, &answer, &same] {
                assert_eq!(shown.header("vary"), Some("Accept-Encoding"));
                assert_eq!(shown.header("cache-control"), Some("public, no-cache"));
            }
            tags.push(tag.to_owned());
        }
    }
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 6, "one for each coding and number of days: {tags:?}");
    // One candle is too small to be compressed.
    let small = client.request("GET", &target(1), "Accept-Encoding: gzip\r\n");
    assert_eq!((small.status, small.header("content-encoding")), (200, None));
    let scrape = Scrape::of(&service);
    let of =
        |what: &str, cache: &str| scrape.value(&format!("bhav_cache_{what}{{cache=\"{cache}\"}}"));
    assert_eq!(of("misses_total", "candles_compressed"), 2.0, "once for both codings");
    assert_eq!(of("hits_total", "candles_compressed"), 6.0);
    assert_eq!(of("entries", "candles_compressed"), 2.0);
    assert_eq!(of("evictions_total", "candles_compressed"), 0.0);
    assert!(of("hits_total", "candles") >= 11.0 && of("misses_total", "candles") >= 1.0);
    assert!(of("entries", "candles") >= 1.0);
}

/// What is being made, what cannot be made, and what is not there are three things.
#[test]
fn a_list_and_candles_that_are_not_there_say_why() {
    let stage = Stage::on(ON_FRIDAY);
    let of = |service: &Service, symbol: &str| service.get(&format!("{CANDLES}?symbol={symbol}"));
    let is = |answer: Answer, state: &str| {
        let json = answer.json();
        (answer.status == 200 && json["state"] == state).then_some(json)
    };
    // Broker A gives the candles of three shares a second.
    let service = stage.start();
    let counted = stage.step_until("a list of which something is there", || {
        let list = is(service.get(SIGNALS), "loading")?;
        let done = list["progress"]["done"].as_u64()?;
        (done > 0).then_some(list)
    });
    assert_eq!(counted["progress"]["of"].as_u64(), Some(5));
    assert!(counted["as_of"].is_null() && counted["meaning"].as_str().is_some());
    stage.await_signals(&service, ON_FRIDAY);
    assert!(is(service.get(SIGNALS), "ready").is_some());
    stage.step_until("candles", || is(of(&service, "NSE:INFY"), "ready"));
    // Listed, and neither searched nor held.
    assert!(is(of(&service, "NSE:SBIN"), "none").is_some());
    service.stop();

    let stage = Stage::on(ON_FRIDAY);
    stage.scene.refuse_all();
    let service = stage.start();
    let list =
        stage.step_until("a list that cannot be made", || is(service.get(SIGNALS), "unreachable"));
    assert!(
        list["detail"]
            .as_str()
            .unwrap()
            .contains("the public provider does not answer")
    );
    let infy = is(of(&service, "NSE:INFY"), "unreachable").unwrap();
    assert!(infy["source"].is_null() && infy["candles"].as_array().unwrap().is_empty());
    assert!(is(of(&service, "NSE:SBIN"), "none").is_some());
}
