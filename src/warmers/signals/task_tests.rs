//! Tests which source is asked, and when a date is published. The feeds are covered by the tests of
//! the service.

use super::*;
use crate::store::{CandleHistory, StoreError};
use jiff::civil::date;

const DATE: Date = date(2026, 11, 20);

fn task(symbols: &str) -> SignalsTask {
    let mut task = SignalsTask::new(
        &Universe::parse(symbols, "test").unwrap(),
        &IndexList::embedded(),
        0,
        BySource([Outcomes::ignored(), Outcomes::ignored()]),
        Outcomes::ignored(),
    );
    task.target = Some(DATE);
    task
}

fn tick(requests_wait: bool, before_polls: bool) -> TickState {
    TickState {
        requests_wait,
        close_is_pricing: false,
        public_is_asking: false,
        before_polls,
    }
}

fn history(task: &SignalsTask, at: usize) -> CandleHistory {
    CandleHistory {
        symbol: task.histories.tracked[at].symbol.clone(),
        source: Source::BrokerA,
        simulated: false,
        refetch: false,
        last: Some(DATE),
        suspicions: Vec::new(),
    }
}

#[test]
fn candles_take_what_polls_leave_of_the_public_provider() {
    let task = task("NSE:INFY");
    const SOON_MS: u64 = 1_000;
    const STARVED_MS: u64 = 60_000;
    const LONG_STARVED_MS: u64 = 600_000;
    for (tick, idle_ms, may) in [
        (tick(false, false), SOON_MS, true),
        (tick(false, true), SOON_MS, false),
        (tick(false, true), STARVED_MS, true),
        (tick(true, false), LONG_STARVED_MS, false),
        (tick(true, true), STARVED_MS, false),
        (tick(true, true), LONG_STARVED_MS, true),
        (
            TickState {
                close_is_pricing: true,
                ..tick(false, false)
            },
            LONG_STARVED_MS,
            false,
        ),
        (
            TickState {
                public_is_asking: true,
                ..tick(false, false)
            },
            LONG_STARVED_MS,
            false,
        ),
    ] {
        assert_eq!(task.calls.may_ask_public(tick, 0, idle_ms), may, "{tick:?} after {idle_ms} ms");
    }
}

#[test]
fn a_date_is_published_when_nothing_more_is_to_come_and_half_of_it_is_there() {
    let mut task = task("NSE:A\nNSE:B\nNSE:C\nNSE:D");
    (0..4).for_each(|at| task.histories.tracked[at].give_up(0));
    let held = history(&task, 0);
    task.histories.tracked[0].history = Some(held);
    assert_eq!(task.date_to_publish(), None, "a quarter is no market");
    let held = history(&task, 1);
    task.histories.tracked[1].history = Some(held);
    assert_eq!(task.date_to_publish(), Some(DATE));
    task.histories.tracked[2].in_flight = true;
    assert_eq!(task.date_to_publish(), None, "one may still come");
    task.histories.tracked[2].in_flight = false;
    task.shown.top.as_of = Some(DATE);
    assert_eq!(task.date_to_publish(), None, "once");
}

#[test]
fn a_store_that_fails_is_told_and_read_again() {
    let mut task = task("NSE:A");
    assert_eq!(task.state(0).as_str(), "starting");
    task.loaded = true;
    task.ended(Some(Box::new(Err(StoreError::Busy))), 0);
    assert_eq!((task.state(0).as_str(), task.loaded), ("failing", false));
    let mut shown = Shown::nothing();
    shown.top.as_of = Some(DATE);
    task.histories.tracked[0].in_flight = true;
    let loaded = Done::Loaded(vec![history(&task, 0)], shown, Vec::new());
    task.ended(Some(Box::new(Ok(loaded))), RETRY_MS);
    assert_eq!((task.state(RETRY_MS).as_str(), task.loaded), ("ok", true));
    assert!(task.histories.are_settled(DATE) && task.histories.tracked[0].has(DATE));
    assert_eq!(task.counts().symbols, 1, "of the universe");
    task.target = Some(date(2026, 11, 23));
    assert_eq!(task.state(LATE_MS).as_str(), "stale");
    task.target = None;
    assert_eq!(task.state(LATE_MS).as_str(), "paused");
}
