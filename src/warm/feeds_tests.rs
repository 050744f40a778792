//! The rules of a feed's state, with a feed that says what a test wants.

use std::time::Duration;

use parking_lot::Mutex;

use super::*;
use crate::base::Clock;
use crate::brokers::{Batch, FeedError};
use crate::market::MarketCalendar;
use crate::rt::LaneSpec;
use crate::warm::policy::Policy;

const OPEN: &str = "2026-11-20T11:00:00+05:30";

struct Scripted {
    readiness: Mutex<Readiness>,
    batch_max: usize,
}

impl MarketFeed for Scripted {
    fn source(&self) -> Source {
        Source::BrokerA
    }

    fn batch_max(&self) -> usize {
        self.batch_max
    }

    fn readiness(&self) -> Readiness {
        *self.readiness.lock()
    }

    fn quotes(&self, _: &[Symbol]) -> Result<Batch, FeedError> {
        Err(FeedError::NotReady(self.readiness()))
    }
}

struct Bench {
    slot: FeedSlot,
    feed: Arc<Scripted>,
    indices: IndexList,
    pace: Pace,
    now: Timestamp,
}

fn bench(batch_max: usize) -> Bench {
    let indices = IndexList::embedded();
    let feed = Arc::new(Scripted { readiness: Mutex::new(Readiness::Ready), batch_max });
    let now: Timestamp = OPEN.parse().unwrap();
    let lane = LaneSpec { name: "test", threads: 1, queue_max: 1 };
    let lane = Arc::new(Lane::start(&lane, &Clock::manual(now)).unwrap());
    let slot = FeedSlot::new(Arc::clone(&feed) as Arc<dyn MarketFeed>, lane, &indices);
    let status = MarketCalendar::embedded().status(now);
    let pace = Policy::of(&status, 3_600_000, 1_050, 15_000).broker_a;
    Bench { slot, feed, indices, pace, now }
}

impl Bench {
    /// A round that brings the leads as the exchange had them `behind_ms` ago.
    fn speak(&mut self, at_ms: u64, behind_ms: i64) {
        self.slot.began(at_ms);
        for lead in self.indices.leads() {
            let exchange_ms = self.now.as_millisecond() + at_ms as i64 - behind_ms;
            let as_of = Timestamp::from_millisecond(exchange_ms).unwrap();
            self.slot.heard(quote(&lead.symbol, as_of), at_ms);
        }
        self.slot.ended(Ended::Spoke, at_ms);
    }

    fn fail(&mut self, at_ms: u64) {
        self.slot.began(at_ms);
        self.slot.ended(Ended::Failed("out of order".into()), at_ms);
    }

    fn speaks(&self, at_ms: u64) -> bool {
        let now = Timestamp::from_millisecond(self.now.as_millisecond() + at_ms as i64).unwrap();
        self.slot.speaks(self.pace, now, at_ms)
    }
}

fn quote(symbol: &Symbol, as_of: Timestamp) -> Quote {
    Quote {
        symbol: symbol.clone(),
        last_price: "25000".parse().unwrap(),
        previous_close: None,
        as_of,
        received: as_of,
        source: Source::BrokerA,
        simulated: false,
    }
}

#[test]
fn one_failure_is_chance_unless_somebody_waits_and_three_are_hopeless() {
    let mut bench = bench(500);
    let pace = bench.pace;
    bench.speak(0, 0);
    bench.fail(1_050);
    assert!(!bench.slot.falters(pace, 1_050, false) && bench.slot.falters(pace, 1_050, true));
    bench.fail(2_100);
    assert!(bench.slot.falters(pace, 2_100, false));
    assert!(bench.speaks(2_100), "its data is fresh all the same");
    assert!(bench.slot.can_answer_within(2_500, pace, 2_100));
    bench.fail(3_150);
    assert!(!bench.slot.can_answer_within(2_500, pace, 3_150), "nobody waits for it any more");
    assert!(!bench.speaks(pace.stale_after_ms + 1));
    bench.speak(4_200, 0);
    assert!(!bench.slot.falters(pace, 4_200, true));
    assert!(bench.slot.can_answer_within(2_500, pace, 4_200));
}

#[test]
fn a_hanging_call_is_doubted_long_before_its_deadline() {
    let mut bench = bench(500);
    let pace = bench.pace;
    bench.speak(0, 0);
    bench.slot.began(1_050);
    let doubted_ms = 1_050 + pace.patience_ms + 1;
    assert!(bench.slot.can_answer_within(2_500, pace, 1_100));
    assert!(!bench.slot.falters(pace, doubted_ms - 1, true));
    assert!(bench.slot.falters(pace, doubted_ms, false));
    assert!(!bench.slot.can_answer_within(2_500, pace, doubted_ms));
    assert!(bench.speaks(doubted_ms), "the other feed has time to answer");
}

#[test]
fn a_feed_that_may_not_be_asked_falters_at_once_but_its_own_pace_is_no_reason() {
    let bench = bench(500);
    for (readiness, falters) in [
        (Readiness::Ready, false),
        (Readiness::Paced(Duration::from_millis(1_050)), false),
        (Readiness::Paced(Duration::from_secs(2)), true),
        (Readiness::Open(Duration::from_secs(2)), true),
        (Readiness::NoToken, true),
        (Readiness::NoPermission, true),
    ] {
        *bench.feed.readiness.lock() = readiness;
        assert_eq!(bench.slot.falters(bench.pace, 0, false), falters, "{readiness:?}");
    }
}

#[test]
fn a_feed_that_was_lost_proves_itself_with_two_answers() {
    let mut bench = bench(500);
    bench.speak(0, 0);
    bench.speak(1_000, 0);
    bench.slot.watch(true);
    assert!(!bench.slot.on_probation());
    bench.fail(1_050);
    bench.slot.watch(false);
    bench.speak(20_000, 0);
    assert!(bench.slot.on_probation());
    let resting = Pace { interval_ms: 30_000, ..bench.pace };
    assert!(bench.slot.is_due(21_050, resting, false), "it is given the chance soon");
    bench.fail(21_050);
    bench.speak(22_100, 0);
    assert!(bench.slot.on_probation(), "in a row");
    bench.speak(23_150, 0);
    assert!(!bench.slot.on_probation());
    assert!(!bench.slot.is_due(24_200, resting, false));
}

#[test]
fn an_index_whose_time_stands_still_is_mute_whatever_the_wall_clocks_say() {
    // A machine whose clock is two minutes fast sees every price as old.
    let mut skewed = bench(500);
    for second in 0..60 {
        skewed.speak(second * 1_000, 120_000);
    }
    assert!(skewed.speaks(60_000));
    let mut standing = bench(500);
    standing.speak(0, 0);
    for second in 1..=31 {
        standing.speak(second * 1_000, second as i64 * 1_000);
    }
    assert!(standing.speaks(16_000) && standing.slot.falters(standing.pace, 16_000, false));
    assert!(!standing.speaks(31_000));
    standing.speak(32_000, 0);
    assert!(standing.speaks(32_000));
    let mut old = bench(500);
    old.speak(0, 6 * 60_000);
    assert!(!old.speaks(0), "mute before it was first asked");
}

#[test]
fn every_lead_has_to_be_fresh() {
    let mut bench = bench(500);
    bench.speak(0, 0);
    let [primary, bank, _] = bench.indices.leads().map(|lead| lead.symbol.clone());
    for at_ms in [1_000, 2_000, 3_000, 4_000] {
        for symbol in [&primary, &bank] {
            bench.slot.heard(quote(symbol, bench.now), at_ms);
        }
    }
    assert!(bench.speaks(3_000));
    assert!(!bench.speaks(4_000), "the third index is old");
}

#[test]
fn a_feed_that_carries_one_symbol_a_call_gets_the_time_for_three() {
    let mut bench = bench(1);
    bench.speak(0, 0);
    assert!(bench.speaks(bench.pace.stale_after_ms * 3));
    assert!(!bench.speaks(bench.pace.stale_after_ms * 3 + 1));
}

#[test]
fn after_a_refused_request_the_next_is_bare() {
    let mut bench = bench(500);
    bench.slot.began(0);
    bench.slot.ended(Ended::Refused("invalid instrument".into()), 10);
    assert!(bench.slot.bare);
    bench.speak(1_050, 0);
    assert!(!bench.slot.bare);
}

#[test]
fn prices_that_move_but_are_old_put_the_clock_in_doubt_and_stuck_ones_do_not() {
    let hour_ms = 3_600_000;
    let ahead = |bench: &Bench, at_ms: u64| {
        let now = Timestamp::from_millisecond(bench.now.as_millisecond() + at_ms as i64).unwrap();
        bench.slot.clock_ahead_ms(bench.pace, now, at_ms)
    };
    let mut bench = bench(500);
    bench.speak(1_000, 500);
    bench.speak(2_000, 500);
    assert_eq!(ahead(&bench, 2_000), None);
    bench.speak(3_000, hour_ms);
    assert_eq!(ahead(&bench, 3_000), Some(hour_ms));
    assert!(!bench.speaks(3_000));
    // Nothing moved it since.
    assert_eq!(ahead(&bench, 40_000), None);
    bench.slot.world_ahead_ms = Some(hour_ms);
    assert_eq!(ahead(&bench, 40_000), Some(-hour_ms));
}

#[test]
fn a_feed_that_was_stuck_before_it_was_asked_says_nothing_of_the_clock() {
    let mut bench = bench(500);
    let stuck = bench.now - jiff::SignedDuration::from_hours(1);
    for at_ms in [1_000, 2_000, 3_000] {
        bench.slot.began(at_ms);
        for lead in bench.indices.leads() {
            bench.slot.heard(quote(&lead.symbol, stuck), at_ms);
        }
        bench.slot.ended(Ended::Spoke, at_ms);
        assert_eq!(bench.slot.clock_ahead_ms(bench.pace, bench.now, at_ms), None);
    }
}
