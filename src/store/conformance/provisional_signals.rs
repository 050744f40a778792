//! The ledger of provisional signals: each is recorded once, for good, and compared with the
//! finished candle.

use super::engine::{Engine, on_each_engine};
use super::samples::DAY;
use crate::base::Symbol;
use crate::signals::{Direction, ListedSignal};
use crate::store::{Completion, Epoch, PricedSignal, ProvisionalEntry, SignalOutcome};

on_each_engine! {
    each_is_kept_once_as_it_was_first_seen,
    the_complete_list_of_the_date_says_what_they_were,
    the_first_outcome_stands_and_nothing_can_be_altered,
}

fn signal(pattern: &str) -> PricedSignal {
    let direction = match pattern.starts_with("bullish") {
        true => Direction::Bullish,
        false => Direction::Bearish,
    };
    let signal = ListedSignal {
        symbol: Symbol::parse("NSE:M&M").unwrap(),
        pattern: pattern.to_owned(),
        direction,
        confidence: 0.512_345_678_901,
        prior_dates: 1_000,
        samples: 3,
        date_hit_rate: Some(0.25),
        past: Some((8, 3)),
        base_rate: 0.53,
        simulated: true,
        provisional: true,
    };
    (signal, 15_000_000)
}

fn each_is_kept_once_as_it_was_first_seen<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let one = signal("bullish_belt_hold");
    let other = signal("bearish_harami");
    assert_eq!(store.keep_provisional(Epoch::ALONE, DAY, 7, vec![one.clone()]).unwrap(), 1);
    let again = (ListedSignal { confidence: 0.9, ..one.0.clone() }, 1);
    assert_eq!(
        store.keep_provisional(Epoch::ALONE, DAY, 8, vec![again, other.clone()]).unwrap(),
        1
    );
    let tomorrow = DAY.tomorrow().unwrap();
    assert_eq!(store.keep_provisional(Epoch::ALONE, tomorrow, 9, vec![one.clone()]).unwrap(), 1);
    let page = store.provisional_ledger(0, 2).unwrap();
    let rest = store.provisional_ledger(page[1].entry.id, 10).unwrap();
    let seen: Vec<_> = page.iter().chain(&rest).map(|e| (e.entry.on, e.first_seen_ms)).collect();
    assert_eq!(seen, [(DAY, 7), (DAY, 8), (tomorrow, 9)]);
    let kept = |e: &ProvisionalEntry| (e.entry.signal.clone(), e.entry.price_e4);
    assert_eq!([&page[0], &page[1], &rest[0]].map(kept), [one.clone(), other, one]);
    assert!(store.ledger(0, 10).unwrap().is_empty(), "nothing of it is a complete signal");
    assert_eq!(store.signal_dates().unwrap(), None);
}

fn the_complete_list_of_the_date_says_what_they_were<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let signals = vec![signal("bullish_belt_hold"), signal("bearish_harami")];
    store.keep_provisional(Epoch::ALONE, DAY, 7, signals.clone()).unwrap();
    store.keep_provisional(Epoch::ALONE, DAY.tomorrow().unwrap(), 7, signals).unwrap();
    let completions = || {
        let entries = store.provisional_ledger(0, 10).unwrap();
        entries.into_iter().map(|entry| entry.completion).collect::<Vec<_>>()
    };
    assert_eq!(completions(), [Completion::Unknown; 4]);
    let list = vec![signal("bullish_belt_hold")];
    assert!(store.publish_signals(Epoch::ALONE, DAY, 1, 1, list).unwrap());
    let confirmed = Completion::Confirmed;
    let vanished = Completion::Vanished;
    assert_eq!(completions(), [confirmed, vanished, Completion::Unknown, Completion::Unknown]);
}

fn the_first_outcome_stands_and_nothing_can_be_altered<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    store.keep_provisional(Epoch::ALONE, DAY, 7, vec![signal("bullish_belt_hold")]).unwrap();
    let hit = SignalOutcome {
        judged_on: DAY,
        from_close_e4: 1,
        to_close_e4: 2,
        hit: true,
        universe: Some((50, 27)),
    };
    store.keep_outcomes(Epoch::ALONE, true, vec![(1, hit)]).unwrap();
    let miss = SignalOutcome { hit: false, universe: None, ..hit };
    store.keep_outcomes(Epoch::ALONE, true, vec![(1, miss)]).unwrap();
    let before = store.provisional_ledger(0, 10).unwrap();
    assert_eq!(before[0].entry.outcome, Some(hit));
    assert!(
        store.keep_outcomes(Epoch::ALONE, true, vec![(99, hit)]).is_err(),
        "of one never shown"
    );
    for statement in [
        "UPDATE provisional_signals SET confidence = 0.9",
        "DELETE FROM provisional_signals",
        "UPDATE provisional_outcomes SET hit = FALSE",
        "DELETE FROM provisional_outcomes",
    ] {
        let error = engine.execute(statement).unwrap_err();
        assert!(error.contains("never"), "{statement}: {error}");
    }
    assert_eq!(store.provisional_ledger(0, 10).unwrap(), before);
}
