//! Whose turn it is, and when a date is published. Without feeds; those are in the tests of the
//! service.

use super::*;
use crate::store::CandleHistory;
use jiff::civil::date;

const DATE: Date = date(2026, 11, 20);

fn warmer(symbols: &str) -> SignalsWarmer {
    let mut warmer = SignalsWarmer::new(&Universe::parse(symbols, "test").unwrap());
    warmer.target = Some(DATE);
    warmer
}

fn turn(somebody_waits: bool, before_rounds: bool) -> Turn {
    Turn { somebody_waits, close_is_pricing: false, public_is_asking: false, before_rounds }
}

fn history(warmer: &SignalsWarmer, at: usize) -> CandleHistory {
    CandleHistory {
        symbol: warmer.tracked[at].symbol.clone(),
        source: Source::BrokerA,
        simulated: false,
        refetch: false,
        last: Some(DATE),
        suspicions: Vec::new(),
    }
}

#[test]
fn candles_take_what_rounds_leave_of_the_public_provider() {
    let warmer = warmer("NSE:INFY");
    const SOON_MS: u64 = 1_000;
    const STARVED_MS: u64 = 60_000;
    const LONG_STARVED_MS: u64 = 600_000;
    for (turn, idle_ms, may) in [
        (turn(false, false), SOON_MS, true),
        (turn(false, true), SOON_MS, false),
        (turn(false, true), STARVED_MS, true),
        (turn(true, false), LONG_STARVED_MS, false),
        (turn(true, true), STARVED_MS, false),
        (turn(true, true), LONG_STARVED_MS, true),
        (Turn { close_is_pricing: true, ..turn(false, false) }, LONG_STARVED_MS, false),
        (Turn { public_is_asking: true, ..turn(false, false) }, LONG_STARVED_MS, false),
    ] {
        assert_eq!(warmer.may_ask_public(turn, idle_ms), may, "{turn:?} after {idle_ms} ms");
    }
}

#[test]
fn a_date_is_published_when_nothing_more_is_to_come_and_half_of_it_is_there() {
    let mut warmer = warmer("NSE:A\nNSE:B\nNSE:C\nNSE:D");
    warmer.tracked.iter_mut().for_each(|tracked| tracked.given_up = true);
    warmer.tracked[0].history = Some(history(&warmer, 0));
    assert_eq!(warmer.date_to_publish(), None, "a quarter is no market");
    warmer.tracked[1].history = Some(history(&warmer, 1));
    assert_eq!(warmer.date_to_publish(), Some(DATE));
    warmer.tracked[2].in_flight = true;
    assert_eq!(warmer.date_to_publish(), None, "one may still come");
    warmer.tracked[2].in_flight = false;
    warmer.shown.top.as_of = Some(DATE);
    assert_eq!(warmer.date_to_publish(), None, "once");
}

#[test]
fn a_store_that_fails_is_told_and_read_again() {
    let mut warmer = warmer("NSE:A");
    assert_eq!(warmer.state(0), "starting");
    warmer.loaded = true;
    warmer.ended(Some(Err(StoreError::Busy)), 0);
    assert_eq!((warmer.state(0), warmer.loaded), ("failing", false));
    let mut shown = Shown::nothing();
    shown.top.as_of = Some(DATE);
    warmer.tracked[0].in_flight = true;
    warmer.ended(Some(Ok(Done::Loaded(vec![history(&warmer, 0)], shown))), RETRY_MS);
    assert_eq!((warmer.state(RETRY_MS), warmer.loaded), ("ok", true));
    assert!(warmer.tracked[0].has(DATE) && !warmer.tracked[0].in_flight);
    warmer.target = Some(date(2026, 11, 23));
    assert_eq!(warmer.state(LATE_MS), "stale");
    warmer.target = None;
    assert_eq!(warmer.state(LATE_MS), "paused");
}
