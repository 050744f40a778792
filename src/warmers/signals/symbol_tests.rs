//! Tests which source is asked for a symbol's candles, and when to stop.

use super::*;
use crate::brokers::broker_a::Tokens;
use crate::market::{IndexList, Universe};
use crate::warmers::signals::histories::Histories;
use jiff::civil::date;

const DATE: Date = date(2026, 11, 20);
const BEFORE: Date = date(2026, 11, 19);
const A: Option<Source> = Some(Source::BrokerA);
const PUBLIC: Option<Source> = Some(Source::Public);

fn sources(broker_a: Availability, public: Availability) -> Sources {
    Sources {
        of: BySource([broker_a, public]),
        patience_ended: false,
    }
}

fn both() -> Sources {
    sources(Availability::Ready, Availability::Ready)
}

fn held(source: Source, last: Date) -> CandleHistory {
    CandleHistory {
        symbol: Symbol::parse("NSE:INFY").unwrap(),
        source,
        simulated: true,
        refetch: false,
        last: Some(last),
        suspicions: Vec::new(),
    }
}

fn tracked(history: Option<CandleHistory>) -> TrackedSymbol {
    TrackedSymbol {
        history,
        ..TrackedSymbol::new(Symbol::parse("NSE:INFY").unwrap())
    }
}

#[test]
fn broker_a_is_preferred_and_a_change_of_source_asks_for_everything() {
    let mut new = tracked(None);
    assert_eq!(new.source_to_ask(DATE, both(), 0), A);
    assert!(new.wants_whole(DATE, Source::BrokerA));
    let no_a = sources(Availability::Absent, Availability::Ready);
    assert_eq!(new.source_to_ask(DATE, no_a, 0), PUBLIC);
    let mut known = tracked(Some(held(Source::BrokerA, BEFORE)));
    assert_eq!(known.source_to_ask(DATE, both(), 0), A);
    assert!(!known.wants_whole(DATE, Source::BrokerA) && known.wants_whole(DATE, Source::Public));
    // It waits some time for the source of its history.
    assert_eq!(known.source_to_ask(DATE, no_a, 0), None);
    let later = Sources {
        patience_ended: true,
        ..no_a
    };
    assert_eq!(known.source_to_ask(DATE, later, 0), PUBLIC);
    let paced = sources(Availability::Soon, Availability::Ready);
    assert_eq!(tracked(None).source_to_ask(DATE, paced, 0), None, "no reason to change");
    let mut done = tracked(Some(held(Source::Public, DATE)));
    assert_eq!(done.source_to_ask(DATE, both(), 0), None, "nothing is missing");
    assert!(done.is_settled(DATE));
}

#[test]
fn failures_lead_to_the_other_source_and_then_to_a_rest() {
    let mut tracked = tracked(None);
    tracked.failed(Source::BrokerA, false, 0);
    assert_eq!(tracked.source_to_ask(DATE, both(), 0), None, "others have their turn");
    assert_eq!(tracked.source_to_ask(DATE, both(), FAILED_RETRY_MS), A);
    (1..FAILURES_MAX).for_each(|_| tracked.failed(Source::BrokerA, false, 0));
    assert_eq!(tracked.source_to_ask(DATE, both(), FAILED_RETRY_MS), PUBLIC);
    tracked.failed(Source::Public, true, 0);
    assert!(!tracked.is_settled(DATE));
    assert_eq!(tracked.source_to_ask(DATE, both(), FAILED_RETRY_MS), None);
    assert!(tracked.given_up && tracked.is_settled(DATE));
    let again = FAILED_RETRY_MS + GIVEN_UP_RETRY_MS;
    assert_eq!(tracked.source_to_ask(DATE, both(), again), A);
    // If both feeds are down it waits, without a failure of either.
    let mut waiting = TrackedSymbol::new(tracked.symbol.clone());
    let dead = sources(Availability::Later, Availability::Later);
    assert_eq!(waiting.source_to_ask(DATE, dead, 0), None);
    assert!(!waiting.given_up);
}

#[test]
fn a_candle_that_does_not_come_is_given_up_and_a_hole_before_it_asks_for_everything() {
    let mut tracked = tracked(Some(held(Source::Public, BEFORE)));
    for look in 1..=LACKS_MAX {
        assert!(!tracked.given_up);
        tracked.stored(held(Source::Public, BEFORE), DATE, true, 0);
        assert_eq!(tracked.wants_whole(DATE, Source::Public), look + 1 >= LACKS_MAX, "{look}");
    }
    assert!(tracked.given_up);
    tracked.stored(held(Source::Public, DATE), DATE, false, 0);
    assert!(!tracked.given_up && tracked.has(DATE) && tracked.is_settled(DATE));
    tracked.begin_date();
    assert!(!tracked.is_settled(date(2026, 11, 23)));
}

#[test]
fn a_suspicion_silences_until_a_later_date_has_been_asked_about() {
    let mut suspect = held(Source::BrokerA, DATE);
    suspect.suspicions = vec![SplitSuspicion {
        date: DATE,
        confirmed: false,
        base_e4: None,
    }];
    let mut tracked = tracked(Some(suspect));
    assert!(tracked.is_silenced() && tracked.is_settled(DATE), "the vendor has one night");
    let next = date(2026, 11, 23);
    assert!(tracked.wants_whole(next, Source::BrokerA) && !tracked.is_settled(next));
    // Once a day, however long it stays.
    tracked.has_whole_of(next);
    assert!(tracked.is_silenced() && !tracked.wants_whole(next, Source::BrokerA));
    tracked.begin_date();
    assert!(tracked.wants_whole(next, Source::BrokerA));
    tracked.history.as_mut().unwrap().suspicions[0].confirmed = true;
    assert!(!tracked.is_silenced() && !tracked.wants_whole(next, Source::BrokerA));
    tracked.history.as_mut().unwrap().refetch = true;
    assert!(tracked.is_silenced() && !tracked.is_settled(DATE));
}

#[test]
fn what_is_only_drawn_comes_behind_the_universe_and_has_a_limit() {
    let universe = Universe::parse("NSE:INFY\nNSE:TCS", "test").unwrap();
    let mut histories = Histories::new(&universe, &IndexList::embedded(), 16);
    let owned = ["NSE:INFY", "NSE:HELD", "BSE:HELD"].map(|name| Symbol::parse(name).unwrap());
    histories.draw(owned.into());
    let drawn = &histories.tracked[2..];
    assert_eq!((histories.len(), drawn.len()), (2, 16), "fifteen indices, and as much as fits");
    assert!(drawn[..15].iter().all(|tracked| tracked.is_index));
    assert_eq!((drawn[15].symbol.as_str(), drawn[15].is_index), ("NSE:HELD", false));
    assert!(histories.tokens().0.lacking().contains(&&drawn[15].symbol));

    let tokens = histories
        .tracked
        .iter()
        .map(|tracked| (tracked.symbol.clone(), Some(1)));
    let tokens = Tokens::new(tokens);
    histories.learn_tokens(tokens);
    let next = |histories: &mut Histories, is_drawn: bool| {
        histories.next_to_ask(Source::BrokerA, DATE, both(), is_drawn, 0)
    };
    for at in 0..2 {
        assert_eq!(next(&mut histories, false), Some(at));
        histories.tracked[at].in_flight = true;
    }
    assert_eq!((next(&mut histories, false), next(&mut histories, true)), (None, Some(2)));
    assert!(!histories.are_settled(DATE));
    for at in 0..2 {
        histories.tracked[at].history = Some(held(Source::BrokerA, DATE));
        histories.tracked[at].in_flight = false;
    }
    assert!(histories.are_settled(DATE), "nobody waits for what is only drawn");
    histories.begin_date();
    assert!(histories.tracked[2].is_index);
}
