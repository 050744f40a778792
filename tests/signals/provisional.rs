//! Signals of a day that is not over: absent unless enabled, marked, with a record of their own,
//! and gone when the day is finished.

use std::collections::BTreeSet;

use bhav::base::clock;
use bhav::signals::Direction;
use bhav::signals::patterns::{Columns, Detector, Key};
use bhav::store::{Completion, FILE_NAME, ProvisionalEntry};
use jiff::civil::{Date, date, time};
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::stage::{NINE, RECORD, SIGNALS, Stage, calendar, shown, symbol};
use crate::support::{SNAPSHOT, Service};

const THURSDAY: Date = date(2026, 11, 19);
const FRIDAY: Date = date(2026, 11, 20);
const ON_THURSDAY: &str = "2026-11-19";
const ON_FRIDAY: &str = "2026-11-20";
const HISTORICAL: &str = "broker_a.historical";

/// In the middle of continuous trading.
const MIDDAY: (i8, i8) = (11, 0);
/// Prices rest until the auction's.
const BEFORE_THE_AUCTION: (i8, i8) = (15, 18);
/// The official close is final, but its prices have not been fetched.
const AFTER_THE_CLOSE: (i8, i8) = (15, 36);

/// Thursday's list is published, and Friday's session is under way.
fn in_session() -> Stage {
    in_session_at(MIDDAY)
}

fn in_session_at(time: (i8, i8)) -> Stage {
    in_session_of(1, time)
}

fn in_session_of(seed: u64, time: (i8, i8)) -> Stage {
    let stage = Stage::with(ON_THURSDAY, &NINE, seed);
    stage.publish(ON_THURSDAY);
    stage.go_into(FRIDAY, time);
    stage
}

fn provisional(stage: &Stage) -> Vec<ProvisionalEntry> {
    stage.store().provisional_ledger(0, 100_000).unwrap()
}

fn is_marked(row: &Value) -> bool {
    row.get("provisional").is_some()
}

/// Symbol and pattern of the marked rows, or of the others.
fn named(rows: &Value, marked: bool) -> Vec<(String, String)> {
    let rows = rows.as_array().unwrap().iter().filter(|row| is_marked(row) == marked);
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.map(|row| (text(row, "symbol"), text(row, "pattern"))).collect()
}

fn names(entry: &ProvisionalEntry) -> (String, String) {
    (entry.entry.signal.symbol.as_str().to_owned(), entry.entry.signal.pattern.clone())
}

/// The first list with marked rows of an evaluation after `after`.
fn await_look(stage: &Stage, service: &Service, after: &str) -> Value {
    stage.step_until("signals of running candles", || {
        let list = service.get(SIGNALS).json();
        let at = list.get("provisional_at").and_then(|at| at.as_str().map(str::to_owned));
        at.is_some_and(|at| at.as_str() > after).then_some(list)
    })
}

fn looked_at(list: &Value) -> String {
    list["provisional_at"].as_str().unwrap().to_owned()
}

#[test]
fn without_the_switch_nothing_is_asked_or_shown_of_a_running_day() {
    let stage = in_session();
    let calls = stage.calls();
    let service = stage.start();
    let before = service.get(SIGNALS);
    let half_an_hour = stage.scene.clock.now_ms() + 30 * 60_000;
    stage.step_until("half an hour of the session", || {
        let fresh = service.get(SNAPSHOT).json()["market"]["stale"] == false;
        (stage.scene.clock.now_ms() > half_an_hour && fresh).then_some(())
    });
    assert_eq!(stage.calls(), calls, "nobody was asked");
    let after = service.get(SIGNALS);
    assert_eq!((after.body == before.body, after.header("etag")), (true, before.header("etag")));
    for route in [SIGNALS, RECORD, SNAPSHOT, "/api/health"] {
        assert!(!service.get(route).text().contains("provisional"), "{route}");
    }
    assert_eq!(
        service.get(&format!("{SIGNALS}?provisional=true")).json()["count"].as_u64(),
        Some(0)
    );
    service.stop();
    assert_eq!(provisional(&stage), []);
}

#[test]
fn with_it_they_are_marked_dated_ranked_and_weighed_by_what_is_known() {
    // A market in which some running candle's signal is more likely right than wrong.
    let stage = in_session_of(2, MIDDAY);
    let complete = stage.ledger().len();
    let service = stage.start_provisional();
    let mut list = await_look(&stage, &service, "");
    // A leap of the clock may interrupt a rotation. Then a later one completes it.
    while !best_of_each(&list).iter().any(|(_, marked)| *marked) {
        list = await_look(&stage, &service, &looked_at(&list));
    }
    assert_eq!(list["as_of"], ON_THURSDAY);
    assert_eq!(list["provisional_as_of"], ON_FRIDAY);
    assert!(looked_at(&list).starts_with("2026-11-20T11:") && looked_at(&list).ends_with("+05:30"));
    let (_, universe) = stage.evaluated(THURSDAY);
    let next = universe.dates().len();
    let mut last = f64::INFINITY;
    let mut before: Option<(String, bool)> = None;
    for row in list["signals"].as_array().unwrap() {
        let confidence = row["confidence"].as_f64().unwrap();
        // Ranked by the best signal of each candle.
        let candle = (row["symbol"].to_string(), is_marked(row));
        if before.as_ref() != Some(&candle) {
            assert!(confidence <= last, "not ranked");
            last = confidence;
            before = Some(candle);
        }
        assert_eq!(row["as_of"], if is_marked(row) { ON_FRIDAY } else { ON_THURSDAY });
        if is_marked(row) {
            assert_eq!((&row["provisional"], &row["simulated"]), (&true.into(), &true.into()));
            let key = Key::from_name(row["pattern"].as_str().unwrap()).unwrap();
            let weight = universe.weigh(key, next);
            assert!((weight.confidence - confidence).abs() < 0.000_051);
            assert_eq!(row["samples"].as_u64(), Some(u64::from(weight.dates)));
        }
    }
    let all = named(&list["signals"], true);
    assert!(!all.is_empty());
    assert_eq!(named(&list["signals"], false).len(), complete, "complete ones stay");
    assert_eq!(list["count"].as_u64(), Some((complete + all.len()) as u64));
    // The filter. Without provisional signals the document is the same as before.
    let kept = |wanted: bool| service.get(&format!("{SIGNALS}?provisional={wanted}")).json();
    assert_eq!(named(&kept(true)["signals"], true), all);
    assert_eq!(named(&kept(true)["signals"], false), []);
    assert_eq!(named(&kept(false)["signals"], true), []);
    assert!(kept(false).get("provisional_as_of").is_none());
    let best = best_of_each(&list);
    assert!(best.iter().any(|(_, marked)| *marked), "{best:?}");
    service.snapshot_where("the same in the snapshot", |json| {
        let rows = json["signals"].as_array().unwrap().iter();
        let rows = rows.map(|row| (row["symbol"].as_str().unwrap().to_owned(), is_marked(row)));
        rows.eq(best.iter().cloned())
    });
    stage.health_where("their count", &service, |json| {
        json["signals"]["provisional"].as_u64() == Some(all.len() as u64)
            && json["signals"]["signals"].as_u64() == Some(complete as u64)
            && json["signals"]["provisional_at"].is_str()
    });
}

/// The snapshot's part of a list: the best signal of each symbol, and whether it is provisional.
fn best_of_each(list: &Value) -> Vec<(String, bool)> {
    let mut best: Vec<(String, bool)> = Vec::new();
    for row in list["signals"].as_array().unwrap() {
        let name = row["symbol"].as_str().unwrap().to_owned();
        let of_symbol = |other: &&Value| other["symbol"] == row["symbol"];
        let mut all = list["signals"].as_array().unwrap().iter().filter(of_symbol);
        if row["confidence"].as_f64() < Some(0.5) || all.any(|o| o["direction"] != row["direction"])
        {
            continue;
        }
        if best.len() < 10 && best.iter().all(|(known, _)| *known != name) {
            best.push((name, is_marked(row)));
        }
    }
    best
}

/// Symbol and pattern of the signals in today's candles, which stay the same while prices stand
/// still.
fn evaluated(stage: &Stage) -> BTreeSet<(String, String)> {
    let detector = Detector::default();
    let mut expected = BTreeSet::new();
    for name in NINE {
        let candles = stage.candles(name, FRIDAY);
        assert_eq!(candles.last().unwrap().date, FRIDAY);
        let keys = detector.newest(&Columns::of(&candles));
        expected.extend(keys.into_iter().map(|key| (name.to_owned(), key.name().to_owned())));
    }
    expected
}

/// A leap of the clock may interrupt a rotation. Then the next one completes it.
fn until_shown(stage: &Stage, service: &Service, expected: &BTreeSet<(String, String)>) {
    let rest_ends = clock::instant(FRIDAY.to_datetime(time(15, 30, 0, 0))).as_millisecond();
    stage.step_before(rest_ends, "just these patterns", || {
        let list = service.get(SIGNALS).json();
        let found: BTreeSet<_> = named(&list["signals"], true).into_iter().collect();
        assert!(found.is_subset(expected), "{found:?} of {expected:?}");
        (found == *expected).then_some(())
    });
}

#[test]
fn the_patterns_are_those_of_the_candles_so_far() {
    let stage = in_session_at(BEFORE_THE_AUCTION);
    let expected = evaluated(&stage);
    let service = stage.start_provisional();
    until_shown(&stage, &service, &expected);
    service.stop();
    let prices: BTreeSet<_> =
        provisional(&stage).iter().map(|e| (names(e).0, e.entry.price_e4)).collect();
    for (name, price_e4) in prices {
        assert_eq!(price_e4, stage.candles(&name, FRIDAY).last().unwrap().close_e4, "{name}");
    }
}

#[test]
fn without_broker_a_the_public_provider_says_what_it_can_in_time() {
    let stage = Stage::on(ON_THURSDAY);
    let mut config = stage.config();
    config.broker_a.access_token = None;
    let service = stage.scene.start_with(&config);
    stage.await_signals(&service, ON_THURSDAY);
    service.stop();
    stage.go_into(FRIDAY, MIDDAY);
    config.market.signals_provisional = true;
    let service = stage.scene.start_with(&config);
    let list = await_look(&stage, &service, "");
    assert!(!named(&list["signals"], true).is_empty());
    assert_eq!(stage.calls(), 0, "one source says all of a symbol's candles");
}

#[test]
fn the_record_has_each_once_and_the_finished_day_says_what_they_were() {
    let stage = in_session();
    let complete = stage.ledger();
    let service = stage.start_provisional();
    let mut seen = BTreeSet::new();
    let mut at = String::new();
    for _ in 0..4 {
        let list = await_look(&stage, &service, &at);
        at = looked_at(&list);
        seen.extend(named(&list["signals"], true));
        let kept: BTreeSet<_> = provisional(&stage).iter().map(names).collect();
        assert!(kept.is_superset(&seen), "shown before it was on record: {seen:?} {kept:?}");
    }
    let record = service.get(RECORD).json();
    let count = |record: &Value, name: &str| record["provisional"][name].as_u64().unwrap();
    assert_eq!(count(&record, "pending"), count(&record, "published"));
    assert_eq!(record["published"].as_u64(), Some(complete.len() as u64), "theirs is their own");
    service.stop();
    let entries = provisional(&stage);
    let distinct: BTreeSet<_> = entries.iter().map(names).collect();
    assert_eq!(distinct.len(), entries.len(), "each once");
    assert!(entries.iter().all(|entry| entry.entry.on == FRIDAY && entry.entry.signal.simulated));
    assert_eq!(stage.ledger(), complete, "and none among the complete ones");
    for name in NINE {
        let last = stage.store().candles(&symbol(name)).unwrap().pop().unwrap();
        assert_eq!(last.date, THURSDAY, "{name}: never stored");
    }

    // A restart restores none of it; no rotation ends before the clock advances.
    let service = stage.start_provisional();
    assert!(!service.get(SNAPSHOT).text().contains("provisional"), "though it was stored");
    assert_eq!(named(&service.get(SIGNALS).json()["signals"], true), []);
    await_look(&stage, &service, &at);
    let entries = provisional(&stage);
    // The same service, when the day's close is final.
    stage.go_to(FRIDAY);
    let list = stage.await_signals(&service, ON_FRIDAY);
    assert!(!list.text().contains("provisional"));
    assert_eq!(named(&shown(&service), true), []);
    let finished: BTreeSet<_> = named(&list.json()["signals"], false).into_iter().collect();
    let record = service.get(RECORD).json();
    service.stop();
    let judged = provisional(&stage);
    assert_eq!(judged.len(), entries.len());
    let mut confirmed = 0;
    for entry in &judged {
        let is_there = finished.contains(&names(entry));
        let expected = if is_there { Completion::Confirmed } else { Completion::Vanished };
        assert_eq!(entry.completion, expected, "{entry:?}");
        confirmed += u64::from(is_there);
    }
    assert_eq!(count(&record, "confirmed"), confirmed);
    assert_eq!(count(&record, "vanished"), judged.len() as u64 - confirmed);
    assert_eq!((count(&record, "pending"), count(&record, "judged")), (0, 0));
    assert!(record["provisional"]["meaning"].as_str().unwrap().contains("vanish"));
    five_sessions_later(&stage, &judged);
}

/// Judged like complete signals, whether or not they are still enabled.
fn five_sessions_later(stage: &Stage, before: &[ProvisionalEntry]) {
    let mut day = FRIDAY;
    for _ in 0..5 {
        day = calendar().next_trading_date(day).unwrap();
    }
    stage.go_to(day);
    stage.publish(&day.to_string());
    let judged = provisional(stage);
    let mut hits = 0;
    for (old, new) in before.iter().zip(&judged) {
        assert_eq!(
            (old.entry.id, &old.entry.signal, old.first_seen_ms),
            (new.entry.id, &new.entry.signal, new.first_seen_ms)
        );
        let candles = stage.store().candles(&new.entry.signal.symbol).unwrap();
        let close = |date: Date| candles.iter().find(|c| c.date == date).unwrap().close_e4;
        let outcome = new.entry.outcome.unwrap();
        let closes = (outcome.from_close_e4, outcome.to_close_e4);
        assert_eq!((closes, outcome.judged_on), ((close(FRIDAY), close(day)), day));
        let moved = if new.entry.signal.direction == Direction::Bullish {
            closes.1 > closes.0
        } else {
            closes.1 < closes.0
        };
        assert_eq!(outcome.hit, moved);
        hits += u64::from(moved);
    }
    let service = stage.start();
    let record = service.get(RECORD).json()["provisional"].clone();
    service.stop();
    assert_eq!(record["judged"].as_u64(), Some(judged.len() as u64));
    assert_eq!(record["hits"].as_u64(), Some(hits));
    assert!(record["brier"]["confidence"].is_null(), "a few signals are no score");
}

#[test]
fn a_price_that_looks_split_gives_none_and_hides_nobody() {
    let stage = in_session();
    stage.split(2, false);
    let service = stage.start_provisional();
    let mut at = String::new();
    let mut symbols = BTreeSet::new();
    for _ in 0..2 {
        let list = await_look(&stage, &service, &at);
        at = looked_at(&list);
        symbols.extend(named(&list["signals"], true).into_iter().map(|(symbol, _)| symbol));
    }
    assert!(symbols.len() > 1 && !symbols.contains("NSE:INFY"), "{symbols:?}");
    service.stop();
    assert!(
        provisional(&stage).iter().all(|entry| entry.entry.signal.symbol != symbol("NSE:INFY"))
    );
}

#[test]
fn calls_that_fail_cost_their_symbols_a_rotation_and_nobody_else() {
    let stage = in_session_at(BEFORE_THE_AUCTION);
    let expected = evaluated(&stage);
    stage.scene.fault(HISTORICAL, r#"{"kind":"wrong_types","count":2}"#);
    let service = stage.start_provisional();
    until_shown(&stage, &service, &expected);
}

#[test]
fn with_the_feeds_gone_they_are_taken_back_in_a_quarter_of_an_hour() {
    // During the session, and after it, when only the finished day is awaited.
    taken_back_after(MIDDAY);
    taken_back_after(AFTER_THE_CLOSE);
}

fn taken_back_after(time: (i8, i8)) {
    let stage = in_session_at(time);
    let service = stage.start_provisional();
    let list = await_look(&stage, &service, "");
    let complete = named(&list["signals"], false);
    stage.scene.refuse_all();
    let look: jiff::Timestamp = looked_at(&list).parse().unwrap();
    stage.step_until("none", || {
        let list = service.get(SIGNALS).json();
        (named(&list["signals"], true).is_empty()).then_some(())
    });
    let stood_ms = stage.scene.clock.now_ms() - look.as_millisecond();
    assert!(stood_ms >= 10 * 60_000, "not before their time: {stood_ms} ms");
    let list = service.get(SIGNALS).json();
    assert_eq!(named(&list["signals"], false), complete, "the last good list stays");
    stage.health_where("none in health", &service, |json| {
        json["signals"]["provisional"].as_u64() == Some(0)
    });
}

#[test]
fn what_cannot_be_put_on_record_is_not_shown() {
    let stage = in_session();
    let service = stage.start_provisional();
    let path = stage.scene.state.path().join(FILE_NAME);
    let blocker = rusqlite::Connection::open(path).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    stage.health_where("failing", &service, |json| json["warmers"]["signals"] == "failing");
    assert!(!service.get(SIGNALS).text().contains("provisional"));
    assert_eq!(named(&shown(&service), true), []);
    blocker.execute_batch("ROLLBACK").unwrap();
    await_look(&stage, &service, "");
    stage.health_where("well again", &service, |json| json["warmers"]["signals"] == "ok");
}
