//! Candles, suspected splits, and the append-only ledger.

use jiff::civil::date;

use super::engine::{Engine, on_each_engine};
use super::samples::DAY;
use crate::base::{Candle, Source, Symbol};
use crate::signals::{Direction, ListedSignal};
use crate::store::{CandleHistory, Epoch, NewHistory, PricedSignal, SignalOutcome, SplitSuspicion};

on_each_engine! {
    a_date_is_published_once_and_its_outcomes_too,
    histories_are_marked_until_they_are_fetched_adjusted,
    histories_are_replaced_and_appended,
    what_was_published_cannot_be_altered_by_any_statement,
}

fn infy() -> Symbol {
    Symbol::parse("NSE:INFY").unwrap()
}

fn candle(day: i8, close_e4: i64) -> Candle {
    let date = date(2026, 11, day);
    Candle {
        date,
        open_e4: 1,
        high_e4: 9,
        low_e4: 1,
        close_e4,
        volume: 7,
    }
}

fn history(candles: Vec<Candle>, suspicions: Vec<SplitSuspicion>) -> NewHistory {
    NewHistory {
        symbol: infy(),
        source: Source::Public,
        simulated: true,
        candles,
        suspicions,
    }
}

pub(crate) fn signal(number: u32, date_hit_rate: Option<f64>) -> PricedSignal {
    let signal = ListedSignal {
        symbol: infy(),
        pattern: format!("pattern_{number}"),
        direction: if number == 1 {
            Direction::Bullish
        } else {
            Direction::Bearish
        },
        confidence: 0.512_345_678_901,
        prior_dates: 1_000,
        samples: 3,
        date_hit_rate,
        past: date_hit_rate.map(|_| (6, 2)),
        base_rate: 0.53,
        simulated: true,
    };
    (signal, 15_000_000)
}

fn confirmed() -> SplitSuspicion {
    SplitSuspicion {
        date: date(2026, 11, 18),
        confirmed: true,
        base_e4: None,
    }
}

fn histories_are_replaced_and_appended<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    assert_eq!(store.candle_histories().unwrap(), []);
    let confirmed = confirmed();
    store
        .replace_candles(Epoch::ALONE, history(vec![candle(17, 1), candle(18, 2)], vec![confirmed]))
        .unwrap();
    store
        .append_candles(Epoch::ALONE, &infy(), vec![candle(19, 3)], date(2026, 11, 18))
        .unwrap();
    assert_eq!(store.candles(&infy()).unwrap(), [candle(18, 2), candle(19, 3)]);
    let held = CandleHistory {
        symbol: infy(),
        source: Source::Public,
        simulated: true,
        refetch: false,
        last: Some(date(2026, 11, 19)),
        suspicions: vec![confirmed],
    };
    assert_eq!(store.candle_histories().unwrap(), [held]);
    let newest = |max| store.candle_history(&infy(), max).unwrap().unwrap();
    assert_eq!(newest(600).candles, [candle(18, 2), candle(19, 3)]);
    assert_eq!(newest(1).candles, [candle(19, 3)]);
    let about = newest(600);
    assert_eq!((about.source, about.simulated, about.suspect), (Source::Public, true, false));
    let other = Symbol::parse("NSE:TCS").unwrap();
    assert_eq!(store.candle_history(&other, 600).unwrap(), None);
    // A date that is stored already fails the whole append.
    let stored_already = vec![candle(20, 5), candle(19, 5)];
    assert!(
        store
            .append_candles(Epoch::ALONE, &infy(), stored_already, DAY)
            .is_err()
    );
    assert_eq!(store.candles(&infy()).unwrap(), [candle(18, 2), candle(19, 3)]);
}

fn histories_are_marked_until_they_are_fetched_adjusted<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let confirmed = confirmed();
    let first = history(vec![candle(18, 2), candle(19, 3)], vec![confirmed]);
    store.replace_candles(Epoch::ALONE, first).unwrap();
    let is_suspect = || store.candle_history(&infy(), 600).unwrap().unwrap().suspect;
    let suspected = date(2026, 11, 19);
    let unconfirmed = SplitSuspicion {
        date: suspected,
        confirmed: false,
        base_e4: Some(1_983_700),
    };
    store
        .want_refetch(Epoch::ALONE, &infy(), Some(unconfirmed))
        .unwrap();
    let again = SplitSuspicion {
        confirmed: false,
        ..confirmed
    };
    store
        .want_refetch(Epoch::ALONE, &infy(), Some(again))
        .unwrap();
    let marked = store.candle_histories().unwrap().remove(0);
    assert!(marked.refetch && is_suspect());
    assert_eq!(marked.suspicions, [confirmed, unconfirmed], "what is confirmed stays so");
    store
        .replace_candles(Epoch::ALONE, history(vec![candle(19, 4)], vec![unconfirmed]))
        .unwrap();
    assert!(is_suspect(), "fetched again, and still not adjusted");
    store
        .replace_candles(Epoch::ALONE, history(vec![candle(19, 4)], vec![confirmed]))
        .unwrap();
    assert!(!is_suspect());
    store
        .replace_candles(Epoch::ALONE, history(vec![candle(19, 4)], Vec::new()))
        .unwrap();
    let again = store.candle_histories().unwrap().remove(0);
    assert_eq!((again.refetch, again.suspicions.len()), (false, 0));
    assert_eq!(store.candles(&infy()).unwrap(), [candle(19, 4)]);
}

fn a_date_is_published_once_and_its_outcomes_too<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    assert_eq!(store.signal_dates().unwrap(), None);
    let signals = [signal(2, None), signal(1, Some(1.0 / 3.0))];
    assert!(
        store
            .publish_signals(Epoch::ALONE, DAY, 1, 5, signals.to_vec())
            .unwrap()
    );
    let other = vec![(
        ListedSignal {
            confidence: 0.9,
            ..signal(1, None).0
        },
        1,
    )];
    assert!(
        !store
            .publish_signals(Epoch::ALONE, DAY, 2, 5, other)
            .unwrap()
    );
    let tomorrow = DAY.tomorrow().unwrap();
    assert!(
        store
            .publish_signals(Epoch::ALONE, tomorrow, 2, 5, Vec::new())
            .unwrap()
    );
    assert_eq!(store.signal_dates().unwrap(), Some((DAY, tomorrow)));
    assert_eq!(store.signals_of(DAY).unwrap(), signals.map(|(signal, _)| signal));
    assert_eq!(store.signals_of(tomorrow).unwrap(), []);
    let page = store.ledger(0, 1).unwrap();
    let rest = store.ledger(page[0].id, 10).unwrap();
    assert_eq!((page.len(), rest.len(), page[0].on), (1, 1, DAY));
    let hit = SignalOutcome {
        judged_on: tomorrow,
        from_close_e4: 1,
        to_close_e4: 2,
        hit: true,
        universe: Some((50, 27)),
    };
    store
        .keep_outcomes(Epoch::ALONE, vec![(page[0].id, hit)])
        .unwrap();
    let miss = SignalOutcome {
        hit: false,
        universe: None,
        ..hit
    };
    store
        .keep_outcomes(Epoch::ALONE, vec![(page[0].id, miss), (rest[0].id, miss)])
        .unwrap();
    let outcomes: Vec<_> = store
        .ledger(0, 10)
        .unwrap()
        .into_iter()
        .map(|entry| entry.outcome)
        .collect();
    assert_eq!(outcomes, [Some(hit), Some(miss)]);
    assert!(
        store.keep_outcomes(Epoch::ALONE, vec![(99, hit)]).is_err(),
        "of a signal never published"
    );
}

fn what_was_published_cannot_be_altered_by_any_statement<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    store
        .publish_signals(Epoch::ALONE, DAY, 1, 5, vec![signal(1, None)])
        .unwrap();
    let outcome = SignalOutcome {
        judged_on: DAY,
        from_close_e4: 1,
        to_close_e4: 2,
        hit: true,
        universe: Some((50, 27)),
    };
    store
        .keep_outcomes(Epoch::ALONE, vec![(1, outcome)])
        .unwrap();
    let before = store.ledger(0, 10).unwrap();
    for statement in [
        "UPDATE signal_ledger SET confidence = 0.9",
        "DELETE FROM signal_ledger",
        "UPDATE signal_outcomes SET hit = FALSE",
        "DELETE FROM signal_outcomes",
        "UPDATE signal_dates SET symbols = 50",
        "DELETE FROM signal_dates",
    ] {
        let error = engine.execute(statement).unwrap_err();
        assert!(error.contains("never"), "{statement}: {error}");
    }
    assert_eq!(store.ledger(0, 10).unwrap(), before);
}
