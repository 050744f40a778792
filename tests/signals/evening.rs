//! Signals as clients see them, and faults of a vendor.

use jiff::civil::{Date, date};
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::stage::{FIVE, RECORD, SIGNALS, Stage, expected_rows, rows, shown, symbol};
use crate::support::wait::at_once;
use crate::support::{SNAPSHOT, members};

/// A Friday.
const FRIDAY: Date = date(2026, 11, 20);
const ON_FRIDAY: &str = "2026-11-20";
/// The trading dates before and after it.
const ON_THURSDAY: &str = "2026-11-19";
const ON_MONDAY: &str = "2026-11-23";
const HISTORICAL: &str = "broker_a.historical";

#[test]
fn what_is_shown_is_what_the_candles_say() {
    let stage = Stage::on(ON_FRIDAY);
    let service = stage.start();
    let list = stage.await_signals(&service, ON_FRIDAY).json();
    let (_, universe) = stage.evaluated(FRIDAY);
    let expected = expected_rows(&universe, FRIDAY);
    assert!(expected.len() > 1, "a date without signals shows nothing: {expected:?}");
    assert_eq!(rows(&list["signals"]), expected);
    assert_eq!(list["count"].as_u64(), Some(expected.len() as u64));
    let snapshot = service.snapshot_where("signals", |json| {
        json["signals"]
            .as_array()
            .is_some_and(|signals| !signals.is_empty())
    });
    let top = snapshot.json()["signals"].clone();
    let of = |row: &str, at: usize| row.split(' ').nth(at).unwrap().to_owned();
    let both = |symbol: &str| {
        let rows = expected.iter().filter(|row| of(row, 0) == symbol);
        rows.map(|row| of(row, 2))
            .collect::<std::collections::BTreeSet<_>>()
            .len()
            > 1
    };
    let mut seen = Vec::new();
    let best = expected.iter().filter(|row| {
        let (symbol, confidence) = (of(row, 0), of(row, 3).parse::<f64>().unwrap());
        let new = !seen.contains(&symbol);
        let shown = new && confidence >= 0.5 && !both(&symbol);
        seen.push(symbol);
        shown
    });
    assert_eq!(rows(&top), best.take(10).cloned().collect::<Vec<_>>());
    for row in list["signals"].as_array().unwrap() {
        let symbol = row["symbol"].to_string();
        assert_eq!(row["conflict"].as_bool(), both(&symbol).then_some(true), "{symbol}");
        assert_eq!(row["prior_dates"].as_u64(), Some(1_000));
    }
    assert_eq!(
        members(&top[0]),
        [
            "symbol",
            "pattern",
            "direction",
            "confidence",
            "as_of",
            "horizon_sessions",
            "samples",
            "hit_rate",
            "base_rate",
            "simulated"
        ]
    );
    assert_eq!(top[0]["as_of"], ON_FRIDAY);
    assert_eq!(top[0]["horizon_sessions"].as_u64(), Some(5));
    assert_eq!(top[0]["simulated"], true);
    let health = service.health();
    stage.health_where("health", &service, |json| json["warmers"]["signals"] == "ok");
    assert_eq!(health["signals"]["symbols"].as_u64(), Some(5));
}

#[test]
fn the_routes_are_cached_filtered_and_say_what_they_are() {
    let stage = Stage::on(ON_FRIDAY);
    let service = stage.start();
    let early = service.get(SIGNALS).json();
    if early["state"] != "ready" {
        assert_eq!((&early["state"], early["as_of"].is_null()), (&"loading".into(), true));
        assert_eq!(early["signals"].as_array().unwrap().len(), 0);
    }
    let list = stage.await_signals(&service, ON_FRIDAY);
    for route in [SIGNALS, RECORD] {
        let whole = service.get(route);
        assert_eq!(whole.header("cache-control"), Some("public, no-cache"), "{route}");
        for said in [
            "not investment advice",
            "the market's own drift",
            "five sessions later",
        ] {
            assert!(whole.text().contains(said), "{route}: {said}");
        }
        let tag = whole.header("etag").unwrap().to_owned();
        let mut client = service.client();
        let unchanged = client.request("GET", route, &format!("If-None-Match: {tag}\r\n"));
        assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{route}");
        for coding in ["br", "gzip"] {
            let coded = client.request("GET", route, &format!("Accept-Encoding: {coding}\r\n"));
            assert_eq!(coded.header("content-encoding"), Some(coding));
            assert!(coded.body.len() < whole.body.len(), "{route} {coding}");
        }
    }
    let all = rows(&list.json()["signals"]);
    let count = |query: &str| {
        let answer = service.get(&format!("{SIGNALS}?{query}")).with_status(200);
        rows(&answer.json()["signals"])
    };
    let (up, down) = (count("direction=bullish"), count("direction=bearish"));
    assert_eq!(up.len() + down.len(), all.len());
    assert!(up.iter().all(|row| row.contains("\"bullish\"")));
    let by_symbol: usize = FIVE
        .iter()
        .map(|name| count(&format!("symbol={}", name.replace('&', "%26"))).len())
        .sum();
    assert_eq!(by_symbol, all.len());
    assert_eq!(count("min_samples=0"), all);
    assert_eq!(count("min_samples=100000"), [""; 0]);
    let problem = service.get(&format!("{SIGNALS}?direction=up&symbol=INFY&min_samples=few"));
    let problem = problem.expect_problem(400, "validation_failed");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 3);

    let record = service.get(RECORD).json();
    assert_eq!(record["published"].as_u64(), Some(all.len() as u64));
    assert_eq!(record["pending"].as_u64(), Some(all.len() as u64));
    assert_eq!(record["since"], ON_FRIDAY);
    assert_eq!(record["simulated"], true);
}

#[test]
fn a_bad_answer_is_asked_for_again_and_leaves_no_trace() {
    at_once(["nan_candle", "half_history", "wrong_types", "truncate"], |fault| {
        let stage = Stage::on(ON_FRIDAY);
        stage
            .scene
            .fault(HISTORICAL, &format!(r#"{{"kind":"{fault}","count":2}}"#));
        let service = stage.start();
        let list = stage.await_signals(&service, ON_FRIDAY).json();
        assert_eq!(stage.calls(), 7, "{fault}: five symbols, two of them twice");
        let (_, universe) = stage.evaluated(FRIDAY);
        assert_eq!(rows(&list["signals"]), expected_rows(&universe, FRIDAY), "{fault}");
    });
}

#[test]
fn a_candle_that_is_late_is_waited_for() {
    let stage = Stage::on(ON_THURSDAY);
    stage.publish(ON_THURSDAY);
    stage.go_to(FRIDAY);
    stage
        .scene
        .fault(HISTORICAL, r#"{"kind":"late_candle","count":5}"#);
    let service = stage.start();
    let published = |stage: &Stage| stage.store().signal_dates().unwrap().unwrap().1;
    stage.step_until("every symbol asked", || (stage.calls() >= 10).then_some(()));
    assert_eq!(published(&stage).to_string(), ON_THURSDAY, "no date without its candles");
    assert_eq!(shown(&service)[0]["as_of"], ON_THURSDAY, "the last good list stays, dated");
    stage.scene.advance_ms(10 * 60_000);
    let list = stage.await_signals(&service, ON_FRIDAY).json();
    let (_, universe) = stage.evaluated(FRIDAY);
    assert_eq!(rows(&list["signals"]), expected_rows(&universe, FRIDAY));
}

#[test]
fn a_split_silences_its_symbol_until_history_is_rewritten() {
    at_once([true, false], |rewritten| {
        let stage = Stage::on(ON_THURSDAY);
        stage.publish(ON_THURSDAY);
        stage.go_to(FRIDAY);
        stage.split(2, false);
        let service = stage.start();
        let list = stage.await_signals(&service, ON_FRIDAY).json();
        assert!(
            rows(&list["signals"])
                .iter()
                .all(|row| !row.contains("INFY"))
        );
        stage.health_where("one silenced", &service, |json| {
            json["signals"]["silenced"].as_u64() == Some(1)
        });
        service.stop();
        let infy = |stage: &Stage| {
            let histories = stage.store().candle_histories().unwrap();
            histories
                .into_iter()
                .find(|held| held.symbol == symbol("NSE:INFY"))
                .unwrap()
        };
        assert_eq!(infy(&stage).suspicions.len(), 1);
        if rewritten {
            stage.split(2, true);
        }
        stage.go_to(ON_MONDAY.parse().unwrap());
        stage.publish(ON_MONDAY);
        let confirmed: Vec<bool> = infy(&stage)
            .suspicions
            .iter()
            .map(|s| s.confirmed)
            .collect();
        assert_eq!(confirmed, if rewritten { vec![] } else { vec![false] });
        let monday = ON_MONDAY.parse().unwrap();
        let expected = stage.candles("NSE:INFY", monday);
        assert_eq!(stage.store().candles(&symbol("NSE:INFY")).unwrap(), expected);
    });
}

#[test]
fn a_split_that_the_vendor_knows_at_once_costs_nothing_but_a_fetch() {
    let stage = Stage::on(ON_THURSDAY);
    stage.publish(ON_THURSDAY);
    stage.go_to(FRIDAY);
    stage.split(5, true);
    let before = stage.calls();
    let service = stage.start();
    let list = stage.await_signals(&service, ON_FRIDAY).json();
    assert_eq!(stage.calls() - before, 6, "one symbol twice");
    let (_, universe) = stage.evaluated(FRIDAY);
    assert_eq!(rows(&list["signals"]), expected_rows(&universe, FRIDAY));
}

#[test]
fn symbols_that_are_gone_do_not_hide_the_others() {
    let universe = [
        "NSE:INFY",
        "NSE:TCS",
        "NSE:TATAMOTORS",
        "NSE:NOSUCH",
        "NSE:RELIANCE",
    ];
    let stage = Stage::with(ON_FRIDAY, &universe, 1);
    let service = stage.start();
    stage.await_signals(&service, ON_FRIDAY);
    stage
        .health_where("two failed", &service, |json| json["signals"]["failed"].as_u64() == Some(2));
    let histories = stage.store().candle_histories().unwrap();
    assert_eq!(histories.len(), 3);
    assert!(histories.iter().all(|held| held.last == Some(FRIDAY)));
}

#[test]
fn with_both_feeds_dead_the_last_list_stands_until_they_are_back() {
    let stage = Stage::on(ON_THURSDAY);
    let before = stage.publish(ON_THURSDAY);
    stage.go_to(FRIDAY);
    stage.scene.refuse_all();
    let service = stage.start();
    // Served from the first request on, before any feed has answered.
    assert_eq!(service.get(SIGNALS).json()["as_of"], ON_THURSDAY);
    let snapshot = service.get(SNAPSHOT).json();
    assert_eq!(snapshot["market"]["stale"], true);
    assert_eq!(snapshot["signals"][0]["as_of"], ON_THURSDAY);
    stage.scene.advance_ms(2 * 60 * 60_000);
    stage.health_where("failing", &service, |json| json["warmers"]["signals"] == "failing");
    assert_eq!(service.get(SIGNALS).json()["as_of"], ON_THURSDAY);
    assert_eq!(stage.scene.control("DELETE", "faults", "").status, 200);
    stage.await_signals(&service, ON_FRIDAY);
    service.stop();
    assert_eq!(stage.ledger()[..before.len()], before[..]);
}

#[test]
fn without_broker_a_the_public_provider_brings_the_candles() {
    let stage = Stage::on(ON_FRIDAY);
    let mut config = stage.config();
    config.broker_a.access_token = None;
    let service = stage.scene.start_with(&config);
    let list = stage.await_signals(&service, ON_FRIDAY).json();
    assert_eq!(stage.calls(), 0);
    assert!(
        list["signals"]
            .as_array()
            .is_some_and(|signals| !signals.is_empty())
    );
    service.stop();
    let histories = stage.store().candle_histories().unwrap();
    assert!(histories.len() == 5 && histories.iter().all(|held| held.simulated));
    // With a token the better source takes over. All candles of a symbol have one source.
    stage.go_to(ON_MONDAY.parse().unwrap());
    stage.publish(ON_MONDAY);
    let monday: Date = ON_MONDAY.parse().unwrap();
    for name in FIVE {
        let held = stage.store().candles(&symbol(name)).unwrap();
        assert_eq!(held, stage.candles(name, monday), "{name}");
    }
}
