//! Rotations, and how long what they bring is good. The jobs and the feeds are in the tests of the
//! service.

use std::collections::HashMap;

use jiff::civil::date;

use super::jobs::{PrepareOrder, Tail, prepare};
use super::*;
use crate::base::{Candle, Clock, Symbol};
use crate::store::{NewHistory, SignalStore, SqliteStore};
use crate::warm::signals::jobs::Done;

const TODAY: Date = date(2026, 11, 20);
const A: Source = Source::BrokerA;

fn of(source: Source) -> Option<Tail> {
    let symbol = Symbol::parse("NSE:A").unwrap();
    Some(Tail { symbol, source, simulated: false, candles: Vec::new() })
}

/// In session, with these symbols prepared.
fn session(tails: Vec<Option<Tail>>) -> Provisional {
    let mut provisional = Provisional::new(tails.len());
    provisional.follow(true, Some(TODAY));
    assert!(provisional.wants_preparing());
    provisional.prepare(Prepared { settled: date(2026, 11, 19), tails, weights: HashMap::new() });
    assert!(!provisional.wants_preparing());
    provisional
}

fn all(_: Source) -> bool {
    true
}

/// Asks everybody whose turn it is, and hears nothing of use.
fn ask_all(provisional: &mut Provisional, source: Source, now_mono_ms: u64) -> Vec<usize> {
    let mut asked = Vec::new();
    while let Some(at) = provisional.next(source) {
        provisional.asked(at, now_mono_ms);
        asked.push(at);
    }
    asked
}

#[test]
fn a_rotation_asks_each_once_and_the_next_comes_after_its_time() {
    let mut provisional = session(vec![of(A), None, of(Source::Public), of(A)]);
    assert_eq!(provisional.next(A), None, "before it begins");
    provisional.rotate(all, false, 1_000);
    assert_eq!(ask_all(&mut provisional, A, 1_000), [0, 3]);
    provisional.rotate(all, true, 1_100);
    assert!(provisional.to_look().is_none(), "one is left");
    assert_eq!(ask_all(&mut provisional, Source::Public, 1_200), [2]);
    provisional.rotate(all, true, 1_300);
    assert!(provisional.to_look().is_none(), "a call is under way");
    provisional.rotate(all, false, 1_400);
    assert!(provisional.to_look().is_some());
    provisional.set_to_look(false);
    provisional.rotate(all, false, 1_000 + ROTATION_MS - 1);
    assert_eq!(provisional.next(A), None, "not sooner");
    provisional.rotate(all, false, 1_000 + ROTATION_MS);
    assert_eq!(ask_all(&mut provisional, A, 1_000 + ROTATION_MS), [0, 3]);
}

#[test]
fn a_rotation_ends_in_time_and_the_next_begins_with_whom_it_did_not_reach() {
    let mut provisional = session(vec![of(A), of(A), of(A)]);
    provisional.rotate(all, false, 0);
    provisional.asked(provisional.next(A).unwrap(), 10);
    // Called off by the feed itself: its turn comes again.
    provisional.asked(1, 20);
    provisional.not_asked(1);
    provisional.rotate(all, true, ROTATION_MS);
    assert!(provisional.to_look().is_some(), "with what there is");
    assert_eq!(ask_all(&mut provisional, A, ROTATION_MS), [1, 2, 0]);
    // A source that cannot be asked holds nobody up.
    let mut provisional = session(vec![of(A), of(Source::Public)]);
    provisional.rotate(all, false, 0);
    provisional.asked(0, 0);
    provisional.rotate(|source| source == A, false, 10);
    assert!(provisional.to_look().is_some());
}

#[test]
fn what_was_said_is_good_for_its_time_and_for_its_session() {
    let mut provisional = session(vec![of(A), of(A)]);
    provisional.said(0, Some(DailyCandles::default()), 1_000);
    provisional.said(1, Some(DailyCandles::default()), 2_000);
    let places = |provisional: &Provisional, now_mono_ms: u64| {
        let (said, until_mono_ms) = provisional.fresh(now_mono_ms);
        (said.iter().map(|(at, _)| *at).collect::<Vec<_>>(), until_mono_ms)
    };
    assert_eq!(places(&provisional, 2_000), (vec![0, 1], 1_000 + FRESH_MS));
    assert_eq!(places(&provisional, 1_000 + FRESH_MS), (vec![1], 2_000 + FRESH_MS));
    assert_eq!(places(&provisional, 2_000 + FRESH_MS), (vec![], u64::MAX));
    provisional.said(1, None, 3_000);
    assert_eq!(places(&provisional, 3_000).0, [0], "its source has nothing any more");
    provisional.follow(true, Some(TODAY));
    assert_eq!(places(&provisional, 3_000).0, [0]);
    for (on, date) in [(true, None), (true, TODAY.tomorrow().ok()), (false, None)] {
        provisional.follow(on, date);
        assert_eq!(places(&provisional, 3_000).0, [0; 0], "{on} {date:?}");
        assert!(provisional.to_look().is_none());
        provisional.follow(true, Some(TODAY));
        provisional.said(0, Some(DailyCandles::default()), 3_000);
    }
}

/// Candles that end on the session before, each a wide bar up.
fn stored(days: i8) -> Vec<Candle> {
    let candle = |day: i8| {
        let open = 1_000_000 + i64::from(day) * 10_000;
        let date = date(2026, 10, 1).checked_add(jiff::Span::new().days(day)).unwrap();
        let (high_e4, low_e4) = (open + 9_000, open - 1_000);
        Candle { date, open_e4: open, high_e4, low_e4, close_e4: open + 8_000, volume: 9 }
    };
    (0..days).map(candle).collect()
}

#[test]
fn only_trusted_symbols_that_reach_the_session_before_are_prepared() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("s"), 1, &Clock::system()).unwrap();
    let keep = |name: &str, days: i8| {
        let symbol = Symbol::parse(name).unwrap();
        let history = NewHistory {
            symbol: symbol.clone(),
            source: A,
            simulated: true,
            candles: stored(days),
            suspicions: Vec::new(),
        };
        store.replace_candles(history).unwrap();
        Some((symbol, A, true))
    };
    let symbols = vec![keep("NSE:A", 50), None, keep("NSE:B", 49)];
    let settled = stored(50)[49].date;
    let Ok(Done::Prepared(prepared)) = prepare(&store, PrepareOrder { settled, symbols }) else {
        panic!("a store that works")
    };
    let there: Vec<bool> = prepared.tails.iter().map(Option::is_some).collect();
    assert_eq!(there, [true, false, false]);
    let tail = prepared.tails[0].as_ref().unwrap();
    assert_eq!(tail.candles[..], stored(50)[20..]);
}
