//! Tests what a source's timestamps show about its delay.

use super::*;
use crate::base::testing;

const OPEN: &str = "2026-11-20T11:00:00+05:30";
const MINUTE_MS: i64 = 60_000;

/// A source whose primary index is asked for from time to time.
struct Bench {
    time: FeedTime,
    calendar: MarketCalendar,
    began: Timestamp,
}

fn bench(source: Source, began: &str) -> Bench {
    let leads = ["NSE:NIFTY 50", "NSE:NIFTY BANK", "BSE:SENSEX"];
    let leads = leads.map(|name| Symbol::parse(name).unwrap());
    Bench {
        time: FeedTime::new(source, &leads),
        calendar: MarketCalendar::embedded(),
        began: began.parse().unwrap(),
    }
}

impl Bench {
    fn at(&self, ms: i64) -> Timestamp {
        self.began + SignedDuration::from_millis(ms)
    }

    fn times(&self, at_ms: i64) -> CallTimes {
        let asked = self.at(at_ms);
        CallTimes {
            asked,
            asked_mono_ms: at_ms as u64,
            answered: asked,
        }
    }

    fn quote(&self, symbol: &str, as_of: Timestamp) -> Quote {
        Quote {
            source: Source::Public,
            ..testing::quote(symbol, "25000", as_of)
        }
    }

    /// An answer at `at_ms` with an index of the timestamp `as_of_ms`. Returns how long nobody has
    /// vouched for it.
    fn hear(&mut self, at_ms: i64, as_of_ms: i64) -> i64 {
        let quote = self.quote("NSE:NIFTY 50", self.at(as_of_ms));
        let times = self.times(at_ms);
        self.time.weigh(&quote, &times);
        if self.time.believes(&quote, &times) {
            self.time.heed(&quote, &times, &self.calendar);
        }
        at_ms
            - self
                .time
                .index_vouched(&quote, &times, 1, &self.calendar)
                .mono_ms
    }

    fn delay_s(&self) -> Option<u32> {
        self.time.delay_of_primary_s()
    }
}

#[test]
fn the_delay_is_measured_and_until_then_what_is_known_of_the_source() {
    let mut public = bench(Source::Public, OPEN);
    assert_eq!(public.delay_s(), Some(900));
    let twenty = 20 * MINUTE_MS;
    assert!(public.hear(0, -twenty) > 0, "later than it is by nature, as far as is known");
    assert_eq!(public.hear(15_000, 15_000 - twenty), 0);
    assert_eq!(public.delay_s(), Some(1_200));
    // A source that is quicker than expected shows it at once.
    let mut quick = bench(Source::Public, OPEN);
    assert_eq!(quick.hear(0, -500), 0);
    assert_eq!(quick.delay_s(), None);
    let mut broker_a = bench(Source::BrokerA, OPEN);
    assert_eq!((broker_a.hear(0, 0), broker_a.delay_s()), (0, None));
}

#[test]
fn what_is_lost_all_at_once_is_no_delay_by_nature_for_a_while() {
    let mut public = bench(Source::Public, OPEN);
    let mut at_ms = 0;
    let mut delays = Vec::new();
    while at_ms < 30 * MINUTE_MS {
        let behind_ms = if at_ms < 5 * MINUTE_MS {
            900_000
        } else {
            1_020_000
        };
        let late_ms = public.hear(at_ms, at_ms - behind_ms);
        let known_ms = i64::from(public.delay_s().unwrap()) * 1_000;
        assert_eq!(late_ms, (behind_ms - known_ms - STAMP_MS).max(0), "{at_ms}");
        delays.push((at_ms / MINUTE_MS, known_ms));
        at_ms += 15_000;
    }
    delays.dedup_by_key(|(_, delay_ms)| *delay_ms);
    let [(0, 900_000), (minute, 1_020_000)] = delays[..] else {
        panic!("{delays:?}")
    };
    assert!((10..=20).contains(&minute), "{minute}");
}

#[test]
fn an_index_that_stands_is_late_by_what_was_traded_since() {
    let mut broker_a = bench(Source::BrokerA, OPEN);
    for second in 0..5 {
        assert_eq!(broker_a.hear(second * 1_000, second * 1_000), 0);
    }
    assert_eq!(broker_a.hear(30_000, 4_000), 25_000);
    assert_eq!(broker_a.hear(31_000, 31_000), 0);
}

/// (now, timestamp of the index, missed trading in ms)
#[test]
fn outside_continuous_trading_an_index_may_stand() {
    for (source, now, as_of, late_ms) in [
        // The closing auction: frozen at 15:15, perhaps some seconds before.
        (Source::BrokerA, "2026-11-20T15:20:00", "2026-11-20T15:15:00", 0),
        (Source::BrokerA, "2026-11-20T15:20:00", "2026-11-20T15:14:01", 0),
        (Source::BrokerA, "2026-11-20T15:20:00", "2026-11-20T15:10:00", 4 * MINUTE_MS),
        // By the public provider's clock it is 15:05.
        (Source::Public, "2026-11-20T15:20:00", "2026-11-20T15:05:00", 0),
        (
            Source::Public,
            "2026-11-20T15:20:00",
            "2026-11-20T15:00:00",
            5 * MINUTE_MS - 1_000,
        ),
        // The auction is over, and its price is awaited for a minute by the source's clock.
        (Source::BrokerA, "2026-11-20T15:36:00", "2026-11-20T15:15:00", 0),
        (Source::BrokerA, "2026-11-20T15:36:01", "2026-11-20T15:15:00", MINUTE_MS + 1_000),
        (Source::Public, "2026-11-20T15:51:00", "2026-11-20T15:15:00", 0),
        (Source::Public, "2026-11-20T15:52:00", "2026-11-20T15:15:00", 2 * MINUTE_MS),
        // Frozen in the auction, and matched right after its last order.
        (Source::BrokerA, "2026-11-20T18:00:00", "2026-11-20T15:27:59", 145 * MINUTE_MS),
        (Source::BrokerA, "2026-11-20T18:00:00", "2026-11-20T15:28:00", 0),
        // Before August 2026 there was no auction.
        (Source::BrokerA, "2026-07-30T18:00:00", "2026-07-30T15:29:00", 0),
        (Source::BrokerA, "2026-07-30T18:00:00", "2026-07-30T15:28:59", 150 * MINUTE_MS),
        // Before the next bell.
        (
            Source::BrokerA,
            "2026-11-23T09:10:00",
            "2026-11-20T15:15:00",
            (65 * 60 + 35) * MINUTE_MS,
        ),
        // At night and on Sunday.
        (Source::BrokerA, "2026-11-20T22:00:00", "2026-11-20T15:35:00", 0),
        (Source::BrokerA, "2026-11-22T11:00:00", "2026-11-20T15:35:00", 0),
        (
            Source::BrokerA,
            "2026-11-22T11:00:00",
            "2026-11-20T14:14:00",
            (43 * 60 + 25) * MINUTE_MS,
        ),
        // Before the bell yesterday's close is the price, after it no longer.
        (Source::BrokerA, "2026-11-23T09:14:59", "2026-11-20T15:35:00", 0),
        (Source::BrokerA, "2026-11-23T09:15:05", "2026-11-20T15:35:00", 4_000),
        (
            Source::Public,
            "2026-11-23T09:20:00",
            "2026-11-20T15:35:00",
            5 * MINUTE_MS - 1_000,
        ),
        (Source::Public, "2026-11-23T09:31:00", "2026-11-23T09:16:00", 0),
    ] {
        let mut bench = bench(source, &format!("{now}+05:30"));
        let as_of: Timestamp = format!("{as_of}+05:30").parse().unwrap();
        let as_of_ms = as_of.as_millisecond() - bench.began.as_millisecond();
        assert_eq!(bench.hear(0, as_of_ms), late_ms, "{source:?} {now} {as_of}");
    }
}

#[test]
fn a_source_that_moves_by_the_minute_is_given_the_minute() {
    let mut public = bench(Source::Public, OPEN);
    for round in 0..40 {
        let at_ms = round * 15_000;
        public.hear(at_ms, (at_ms - 900_000) / MINUTE_MS * MINUTE_MS);
    }
    assert_eq!(public.time.step_ms(), 59_000);
    let mut every_second = bench(Source::BrokerA, OPEN);
    for round in 0..40 {
        every_second.hear(round * 250, round * 250 / 1_000 * 1_000);
    }
    assert_eq!(every_second.time.step_ms(), 0, "times have whole seconds");
}

#[test]
fn times_of_the_future_are_not_believed_of_a_source_that_is_known() {
    let mut broker_a = bench(Source::BrokerA, OPEN);
    let believes = |bench: &Bench, at_ms, ahead_ms| {
        let quote = bench.quote("NSE:INFY", bench.at(at_ms + ahead_ms));
        bench.time.believes(&quote, &bench.times(at_ms))
    };
    assert!(believes(&broker_a, 0, 4 * MINUTE_MS), "our clock may be slow");
    for second in 0..3 {
        broker_a.hear(second * 1_000, second * 1_000);
    }
    assert!(believes(&broker_a, 3_000, 5_000) && !believes(&broker_a, 3_000, 6_000));
    // A machine whose clock is two minutes slow.
    let mut slow = bench(Source::BrokerA, OPEN);
    for second in 0..3 {
        slow.hear(second * 1_000, second * 1_000 + 2 * MINUTE_MS);
    }
    assert!(believes(&slow, 3_000, 2 * MINUTE_MS));
    // A share of a delayed source is not of this minute if its index is a quarter of an hour old.
    let mut public = bench(Source::Public, OPEN);
    for round in 0..3 {
        public.hear(round * 15_000, round * 15_000 - 900_000);
    }
    assert!(believes(&public, 30_000, -900_000) && believes(&public, 30_000, -810_000));
    assert!(!believes(&public, 30_000, -800_000) && !believes(&public, 30_000, 0));
}

#[test]
fn a_source_that_stays_ahead_is_believed_in_the_end() {
    let mut public = bench(Source::Public, OPEN);
    for round in 0..4 {
        public.hear(round * 15_000, round * 15_000 - 900_000);
    }
    let mut believed_at_ms = None;
    for round in 4..60 {
        let at_ms = round * 15_000;
        public.hear(at_ms, at_ms - 300_000);
        if public.time.witness_as_of(Exchange::Nse) == Some(public.at(at_ms - 300_000)) {
            believed_at_ms.get_or_insert(at_ms);
        }
    }
    let believed_at_ms = believed_at_ms.unwrap();
    assert!((5 * MINUTE_MS..8 * MINUTE_MS).contains(&believed_at_ms), "{believed_at_ms}");
    assert_eq!(public.delay_s(), Some(300));
}

#[test]
fn who_was_late_at_first_is_believed_once_he_is_not() {
    for (source, behind_ms) in [(Source::BrokerA, 0), (Source::Public, 900_000)] {
        let mut bench = bench(source, OPEN);
        for round in 0..4 {
            bench.hear(round * 15_000, round * 15_000 - behind_ms - 40_000);
        }
        for round in 4..6 {
            let at_ms = round * 15_000;
            assert_eq!(bench.hear(at_ms, at_ms - behind_ms), 0);
            let heard = bench.time.witness_as_of(Exchange::Nse);
            assert_eq!(heard, Some(bench.at(at_ms - behind_ms)), "{source:?}");
        }
    }
}

#[test]
fn a_single_wrong_time_leaves_the_delay_as_it_is() {
    let mut public = bench(Source::Public, OPEN);
    for round in 0..4 {
        public.hear(round * 15_000, round * 15_000 - 900_000);
    }
    public.hear(60_000, 60_000 - 700_000);
    public.hear(75_000, 75_000 - 900_000);
    public.hear(90_000, 90_000 - 900_000);
    assert_eq!(public.delay_s(), Some(900));
}

#[test]
fn each_exchange_has_a_witness_of_its_own() {
    let mut public = bench(Source::Public, OPEN);
    for round in 0..3 {
        let at_ms = round * 15_000;
        public.hear(at_ms, at_ms - 900_000);
        let sensex = public.quote("BSE:SENSEX", public.at(at_ms - 2_000));
        let times = public.times(at_ms);
        public.time.heed(&sensex, &times, &public.calendar);
    }
    assert_eq!(public.time.delay_s(Exchange::Nse), Some(900));
    assert_eq!(public.time.delay_s(Exchange::Bse), None);
}

#[test]
fn a_clock_that_was_set_is_no_delay() {
    let mut broker_a = bench(Source::BrokerA, OPEN);
    for second in 0..3 {
        broker_a.hear(second * 1_000, second * 1_000);
    }
    // Our clock is set forward by three minutes, so its earlier readings count no more.
    broker_a.began = broker_a.at(3 * MINUTE_MS);
    assert!(broker_a.hear(3_000, 3_000 - 3 * MINUTE_MS) > 0, "not known yet");
    assert_eq!(broker_a.hear(4_000, 4_000 - 3 * MINUTE_MS), 0);
    assert_eq!(broker_a.delay_s(), Some(180));
}
