//! A series of days: signals published, outcomes added, restarts, and no entry ever changed.

use std::collections::HashMap;

use bhav::base::Candle;
use bhav::signals::Direction;
use bhav::signals::patterns::Key;
use bhav::store::LedgerEntry;
use jiff::Span;
use jiff::civil::{Date, date};
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use sonic_rs::JsonValueTrait;

use super::stage::{FIVE, RECORD, Stage, calendar, expected_rows, rows};

/// A Thursday. In the days after it are a Sunday with an evening session and a holiday on Tuesday.
const FIRST: Date = date(2026, 11, 5);

/// Recorded entries are unchanged, except that a pending one may have its outcome.
fn assert_not_repainted(before: &[LedgerEntry], after: &[LedgerEntry]) {
    assert!(after.len() >= before.len());
    for (old, new) in before.iter().zip(after) {
        assert_eq!((old.id, old.on, &old.signal), (new.id, new.on, &new.signal));
        assert!(old.outcome.is_none() || old.outcome == new.outcome, "{old:?} became {new:?}");
    }
    let newer = after[before.len()..].iter().map(|entry| entry.on);
    let last = before.last().map(|entry| entry.on);
    assert!(newer.clone().all(|on| Some(on) > last), "added to a date that was published");
}

/// Every outcome follows from the candles, and none is missing.
fn assert_judged(ledger: &[LedgerEntry], histories: &HashMap<String, Vec<Candle>>) -> usize {
    let mut judged = 0;
    for entry in ledger {
        let candles = &histories[entry.signal.symbol.as_str()];
        let at = candles
            .iter()
            .position(|candle| candle.date == entry.on)
            .unwrap();
        let later = candles.get(at + 5);
        assert_eq!(entry.outcome.is_some(), later.is_some(), "{entry:?}");
        let (Some(outcome), Some(later)) = (entry.outcome, later) else {
            continue;
        };
        judged += 1;
        assert_eq!(outcome.judged_on, later.date);
        let direction = Key::from_name(&entry.signal.pattern).unwrap().direction();
        let moved = if direction == Direction::Bullish {
            later.close_e4 > candles[at].close_e4
        } else {
            later.close_e4 < candles[at].close_e4
        };
        assert_eq!(outcome.hit, moved, "{entry:?}");
    }
    judged
}

#[test]
fn two_weeks_of_evenings_with_a_holiday_and_an_evening_session() {
    let stage = Stage::on("2026-11-05");
    let calendar = calendar();
    let mut ledger = stage.publish("2026-11-05");
    let mut trading = 1;
    let days = FIRST
        .series(Span::new().days(1))
        .skip(1)
        .take_while(|day| *day <= date(2026, 11, 18));
    for day in days {
        stage.go_to(day);
        let due = if calendar.is_trading_date(day) {
            trading += 1;
            day
        } else {
            calendar.previous_trading_date(day).unwrap()
        };
        let calls = stage.calls();
        let service = stage.start();
        let list = stage.await_signals(&service, &due.to_string()).json();
        let (_, universe) = stage.evaluated(due);
        assert_eq!(rows(&list["signals"]), expected_rows(&universe, due), "{day}");
        let record = service.get(RECORD).json();
        service.stop();
        let after = stage.ledger();
        assert_not_repainted(&ledger, &after);
        if due != day {
            assert_eq!(stage.calls() - calls, 5, "{day}: only this test's own calls");
            assert_eq!(after, ledger, "{day}");
        }
        assert_eq!(record["published"].as_u64(), Some(after.len() as u64));
        let judged = after.iter().filter(|entry| entry.outcome.is_some()).count();
        assert_eq!(record["judged"].as_u64(), Some(judged as u64));
        ledger = after;
    }
    let published: std::collections::BTreeSet<Date> = ledger.iter().map(|entry| entry.on).collect();
    assert!(published.contains(&date(2026, 11, 8)), "the Sunday: {published:?}");
    assert!(!published.contains(&date(2026, 11, 10)), "the holiday");
    assert!(trading == 10 && published.len() <= trading, "{published:?}");
    let (histories, _) = stage.evaluated(date(2026, 11, 18));
    let histories = histories
        .into_iter()
        .map(|h| (h.symbol, h.candles))
        .collect();
    let judged = assert_judged(&ledger, &histories);
    assert!(judged > 0 && judged < ledger.len(), "{judged} of {}", ledger.len());
}

/// A share leaves the universe in the second week, and the service is off for one evening.
#[test]
fn the_books_of_two_weeks_add_up() {
    const OFF: Date = date(2026, 11, 12);
    const LEFT: Date = date(2026, 11, 16);
    let mut stage = Stage::on("2026-11-05");
    stage.publish("2026-11-05");
    let gone = stage.universe[1];
    let mut books = Vec::new();
    let days = FIRST.series(Span::new().days(1)).skip(1).take(15);
    for day in days.filter(|day| calendar().is_trading_date(*day)) {
        stage.go_to(day);
        if day == LEFT {
            stage.universe.retain(|name| *name != gone);
        }
        if day == OFF {
            continue;
        }
        let service = stage.start();
        stage.await_signals(&service, &day.to_string());
        let record = service.get(RECORD).json();
        service.stop();
        let count = |name: &str| record[name].as_u64().unwrap();
        let ledger = stage.ledger();
        assert_eq!(count("published"), ledger.len() as u64, "{day}");
        assert_eq!(count("published"), count("judged") + count("due") + count("never"), "{day}");
        assert_eq!(count("pending"), count("due") + count("never"), "{day}");
        let unjudged = |of: bool| {
            let open = ledger.iter().filter(|entry| entry.outcome.is_none());
            open.filter(|e| (e.signal.symbol.as_str() == gone) == of)
                .count() as u64
        };
        let never = if day >= LEFT { unjudged(true) } else { 0 };
        assert_eq!(count("never"), never, "{day}");
        let missed = u64::from(day > OFF);
        assert_eq!(count("dates_missed"), missed, "{day}");
        let dates = std::iter::successors(Some(FIRST), |date| calendar().next_trading_date(*date));
        let until_now = dates.take_while(|date| *date <= day).count() as u64;
        assert_eq!(count("dates_published"), until_now - missed, "{day}");
        books.push((count("judged"), count("never")));
        let same_day = ledger.iter().filter_map(|entry| entry.outcome);
        for outcome in same_day {
            let (symbols, moved) = outcome.universe.unwrap();
            assert!(moved <= symbols && symbols >= 4 && (!outcome.hit || moved > 0));
        }
    }
    assert!(books.iter().any(|(judged, _)| *judged > 0), "{books:?}");
    assert!(books.last().unwrap().1 > 0, "nothing of {gone} was open: {books:?}");
}

#[test]
fn a_restart_in_the_middle_goes_on_with_what_is_missing() {
    let stage = Stage::on("2026-11-20");
    let service = stage.start();
    stage.step_until("two histories", || {
        (stage.store().candle_histories().unwrap().len() >= 2).then_some(())
    });
    service.stop();
    let (stored, calls) = (stage.store().candle_histories().unwrap().len(), stage.calls());
    assert!(
        stored < FIVE.len() && stage.ledger().is_empty(),
        "stopped too late to show anything"
    );
    let service = stage.start();
    stage.await_signals(&service, "2026-11-20");
    service.stop();
    assert_eq!(stage.calls() - calls, (FIVE.len() - stored) as i64);
    let ledger = stage.ledger();
    assert!(!ledger.is_empty());
    // Another start on the same date makes no calls.
    let calls = stage.calls();
    assert_eq!(stage.publish("2026-11-20"), ledger);
    assert_eq!(stage.calls(), calls);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    /// Holds for all prices, and for all faults of each day.
    #[test]
    fn nothing_is_ever_repainted(
        seed in any::<u16>(),
        troubles in prop::collection::vec(0..6_usize, 6),
    ) {
        let stage = Stage::with("2026-11-12", &FIVE, u64::from(seed));
        let mut ledger = stage.publish("2026-11-12");
        let mut day = date(2026, 11, 12);
        for trouble in troubles {
            day = calendar().next_trading_date(day).unwrap();
            stage.go_to(day);
            let fault = |kind: &str| {
                let fault = format!(r#"{{"kind":"{kind}","count":2}}"#);
                stage.scene.fault("broker_a.historical", &fault);
            };
            match trouble {
                0 => fault("half_history"),
                1 => fault("nan_candle"),
                2 => fault("refuse"),
                3 => stage.split(2, true),
                4 => stage.split(3, false),
                _ => {}
            }
            let after = stage.publish(&day.to_string());
            assert_not_repainted(&ledger, &after);
            ledger = after;
        }
    }
}
