//! Tests rotations, and how long running candles are valid. The jobs and the feeds are covered by
//! the tests of the service.

use std::collections::HashMap;

use jiff::civil::date;

use super::*;
use crate::base::{Candle, Clock, Symbol};
use crate::market::MarketCalendar;
use crate::signals::confidence::Weight;
use crate::signals::patterns::Key;
use crate::signals::{Reliability, ScanTime};
use crate::store::Epoch;
use crate::store::{NewHistory, Store};
use crate::warmers::signals::look::{LookOrder, Tail, look, prepare};
use crate::warmers::signals::outcomes::Expected;
use crate::warmers::signals::publication::{Publication, show};

const TODAY: Date = date(2026, 11, 20);
const A: Source = Source::BrokerA;

fn of(source: Source) -> Option<Tail> {
    let symbol = Symbol::parse("NSE:A").unwrap();
    Some(Tail { symbol, source, simulated: false, candles: Vec::new() })
}

/// A current session with these symbols prepared.
fn session(tails: Vec<Option<Tail>>) -> Provisional {
    let mut provisional = Provisional::new(tails.len());
    provisional.follow(true, Some(TODAY));
    assert!(provisional.wants_preparing());
    let settled = date(2026, 11, 19);
    let weights = HashMap::new();
    provisional.prepared = Some(Arc::new(Prepared { settled, tails, weights }));
    assert!(!provisional.wants_preparing());
    provisional
}

fn all(_: Source) -> bool {
    true
}

/// Asks for every symbol that is due, and gets no useful answer.
fn ask_all(provisional: &mut Provisional, source: Source, now_mono_ms: u64) -> Vec<usize> {
    let mut asked = Vec::new();
    while let Some(at) = provisional.next(source) {
        provisional.asked(at, Some(now_mono_ms));
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
    provisional.to_look = false;
    provisional.rotate(all, false, 1_000 + ROTATION_MS - 1);
    assert_eq!(provisional.next(A), None, "not sooner");
    provisional.rotate(all, false, 1_000 + ROTATION_MS);
    assert_eq!(ask_all(&mut provisional, A, 1_000 + ROTATION_MS), [0, 3]);
}

#[test]
fn a_rotation_ends_in_time_and_the_next_begins_with_whom_it_did_not_reach() {
    let mut provisional = session(vec![of(A), of(A), of(A)]);
    provisional.rotate(all, false, 0);
    provisional.asked(provisional.next(A).unwrap(), Some(10));
    // The feed called the call off, so its symbol is asked for again.
    provisional.asked(1, Some(20));
    provisional.asked(1, None);
    provisional.rotate(all, true, ROTATION_MS);
    assert!(provisional.to_look().is_some(), "with what there is");
    assert_eq!(ask_all(&mut provisional, A, ROTATION_MS), [1, 2, 0]);
    // A source that cannot be asked does not hold up the rotation.
    let mut provisional = session(vec![of(A), of(Source::Public)]);
    provisional.rotate(all, false, 0);
    provisional.asked(0, Some(0));
    provisional.rotate(|source| source == A, false, 10);
    assert!(provisional.to_look().is_some());
}

#[test]
fn what_was_said_is_good_for_its_time_and_for_its_session() {
    let mut provisional = session(vec![of(A), of(A)]);
    provisional.answered(0, Some(DailyCandles::default()), 1_000);
    provisional.answered(1, Some(DailyCandles::default()), 2_000);
    let places = |provisional: &Provisional, now_mono_ms: u64| {
        let (answers, until_mono_ms) = provisional.fresh(now_mono_ms);
        (answers.iter().map(|(at, _)| *at).collect::<Vec<_>>(), until_mono_ms)
    };
    assert_eq!(places(&provisional, 2_000), (vec![0, 1], 1_000 + FRESH_MS));
    assert_eq!(places(&provisional, 1_000 + FRESH_MS), (vec![1], 2_000 + FRESH_MS));
    assert_eq!(places(&provisional, 2_000 + FRESH_MS), (vec![], u64::MAX));
    provisional.answered(1, None, 3_000);
    assert_eq!(places(&provisional, 3_000).0, [0], "its source has nothing any more");
    provisional.follow(true, Some(TODAY));
    assert_eq!(places(&provisional, 3_000).0, [0]);
    for (on, date) in [(true, None), (true, TODAY.tomorrow().ok()), (false, None)] {
        provisional.follow(on, date);
        assert_eq!(places(&provisional, 3_000).0, [0; 0], "{on} {date:?}");
        assert!(provisional.to_look().is_none());
        provisional.follow(true, Some(TODAY));
        provisional.answered(0, Some(DailyCandles::default()), 3_000);
    }
}

/// The given number of sessions up to the one before today's, each a wide bar up.
fn stored(sessions: usize) -> Vec<Candle> {
    let calendar = MarketCalendar::embedded();
    let mut dates = vec![TODAY];
    for at in 0..50 {
        dates.push(calendar.previous_trading_date(dates[at]).unwrap());
    }
    let dates = dates.into_iter().skip(1).collect::<Vec<_>>().into_iter().rev();
    let candle = |(at, date)| {
        let open = 1_000_000 + at * 10_000;
        let high_e4 = open + 9_000;
        let low_e4 = open - 1_000;
        Candle { date, open_e4: open, high_e4, low_e4, close_e4: open + 8_000, volume: 9 }
    };
    (0_i64..).zip(dates).take(sessions).map(candle).collect()
}

/// Today's running candle and the sessions before it.
fn so_far(open_e4: i64, close_e4: i64) -> Arc<DailyCandles> {
    let high_e4 = open_e4.max(close_e4);
    let low_e4 = open_e4.min(close_e4);
    let today = Candle { date: TODAY, open_e4, high_e4, low_e4, close_e4, volume: 1 };
    let candles = stored(50)[45..].iter().copied().chain([today]).collect();
    Arc::new(DailyCandles { candles, unreadable: Vec::new(), simulated: true })
}

#[test]
fn what_a_later_look_does_not_find_is_gone_but_stays_on_record() {
    let (_dir, store) = fresh();
    let before = stored(50)[49].date;
    assert!(store.publish_signals(Epoch::ALONE, before, 1, 1, Vec::new()).unwrap());
    let publication =
        Publication { signals: Arc::default(), record: Arc::default(), list: Arc::default() };
    show(&store, &publication, &Reliability::default()).unwrap();
    let weight = Weight {
        confidence: 0.5,
        dates: 0,
        signals: 0,
        hits: 0,
        date_hit_rate: None,
        base_rate: 0.5,
    };
    let symbol = Symbol::parse("NSE:A").unwrap();
    let candles = stored(50)[20..].to_vec();
    let tails = vec![Some(Tail { symbol, source: A, simulated: true, candles })];
    let weights = Key::all().map(|key| (key, weight)).collect();
    let prepared = Arc::new(Prepared { settled: before, tails, weights });
    let find = |answer: Arc<DailyCandles>, now_ms: i64| {
        let order = LookOrder {
            look: ScanTime { date: TODAY, at: Timestamp::from_millisecond(now_ms).unwrap() },
            prepared: Arc::clone(&prepared),
            answers: vec![(0, answer)],
            expected: Expected {
                epoch: Epoch::ALONE,
                universe: Arc::default(),
                calendar: Arc::new(MarketCalendar::embedded()),
            },
            until_mono_ms: 7,
            now_ms,
            publication: publication.clone(),
        };
        let (shown, None) = look(&store, &order) else { panic!("a store that works") };
        let list = publication.list.load_full().unwrap();
        assert_eq!((shown.top.as_of, shown.signals), (Some(before), 0));
        assert_eq!(shown.provisional.map_or(0, |shown| shown.signals), list.signals.len());
        assert!(list.signals.iter().all(|signal| signal.provisional && signal.simulated));
        list.signals.iter().map(|signal| signal.pattern.clone()).collect::<Vec<_>>()
    };
    let open = 1_500_000;
    let far = 1_300_000;
    let down = find(so_far(open, far), 1_000);
    assert!(down.iter().any(|name| name == "bearish_engulfing"), "{down:?}");
    assert_eq!(find(so_far(open, far + 10_000), 2_000), down, "another price, the same patterns");
    let on_record = || {
        let entries = store.provisional_ledger(0, 100).unwrap();
        entries.into_iter().map(|e| (e.entry.signal.pattern, e.entry.price_e4)).collect::<Vec<_>>()
    };
    let first: Vec<_> = down.iter().map(|name| (name.clone(), far)).collect();
    assert_eq!(on_record(), first, "once, at the price of the first sight");
    let up = find(so_far(open, open + 200_000), 3_000);
    assert!(!up.is_empty() && up.iter().all(|name| !down.contains(name)), "{up:?}");
    assert_eq!(on_record().len(), down.len() + up.len());
    assert_eq!(on_record()[..down.len()], first[..]);
    // A candle that looks like a split, one from another kind of source, and an unreadable one: no
    // signal.
    assert_eq!(find(so_far(open / 2, far / 2), 4_000), [""; 0]);
    let real = DailyCandles { simulated: false, ..so_far(open, far).as_ref().clone() };
    assert_eq!(find(Arc::new(real), 5_000), [""; 0]);
    let mut unreadable = so_far(open, far).as_ref().clone();
    unreadable.candles.pop();
    unreadable.unreadable.push(TODAY);
    assert_eq!(find(Arc::new(unreadable), 6_000), [""; 0]);
    assert_eq!(on_record().len(), down.len() + up.len());
    assert!(store.ledger(0, 1).unwrap().is_empty() && store.candle_histories().unwrap().is_empty());
}

fn fresh() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_file(&dir.path().join("s"), 1, &Clock::system()).unwrap();
    (dir, store)
}

#[test]
fn only_trusted_symbols_that_reach_the_session_before_are_prepared() {
    let (_dir, store) = fresh();
    let keep = |name: &str, sessions: usize| {
        let symbol = Symbol::parse(name).unwrap();
        let history = NewHistory {
            symbol: symbol.clone(),
            source: A,
            simulated: true,
            candles: stored(sessions),
            suspicions: Vec::new(),
        };
        store.replace_candles(Epoch::ALONE, history).unwrap();
        Some((symbol, A, true))
    };
    let symbols = vec![keep("NSE:A", 50), None, keep("NSE:B", 49)];
    let settled = stored(50)[49].date;
    let Ok(prepared) = prepare(&store, settled, symbols) else { panic!("a store that works") };
    let there: Vec<bool> = prepared.tails.iter().map(Option::is_some).collect();
    assert_eq!(there, [true, false, false]);
    let tail = prepared.tails[0].as_ref().unwrap();
    assert_eq!(tail.candles[..], stored(50)[20..]);
}
