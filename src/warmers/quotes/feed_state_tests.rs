//! Tests the rules of a feed's state, with a scripted feed.

use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;
use crate::base::{Clock, testing};
use crate::cache::L1;
use crate::rt::LaneSpec;

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

    fn quotes(&self, _: &[Symbol]) -> Result<Batch, BrokerError> {
        Err(BrokerError::not_ready("test", self.readiness()))
    }
}

struct Bench {
    state: FeedState,
    feed: Arc<Scripted>,
    indices: IndexList,
    calendar: MarketCalendar,
    /// What requests read now.
    shown: HashMap<Symbol, Quote>,
    freshness: Freshness,
    stale_after_ms: u64,
    pace: Pace,
    now: Timestamp,
}

fn bench(batch_max: usize) -> Bench {
    let indices = IndexList::embedded();
    let feed = Arc::new(Scripted {
        readiness: Mutex::new(Readiness::Ready),
        batch_max,
    });
    let now: Timestamp = OPEN.parse().unwrap();
    let lane = LaneSpec {
        name: "test",
        threads: 1,
        queue_max: 1,
    };
    let lane = Arc::new(Lane::start(&lane, &Clock::manual(now)).unwrap());
    let pace = Pace::of(Source::BrokerA, 1_050, false);
    let dyn_feed = Arc::clone(&feed) as Arc<dyn MarketFeed>;
    let state = FeedState::new(dyn_feed, lane, &indices, pace);
    let (moving, resting) = limits(Source::BrokerA, 1_050, 0);
    let freshness = Freshness::default();
    freshness.set_limits(Source::BrokerA, moving, resting);
    Bench {
        state,
        feed,
        indices,
        calendar: MarketCalendar::embedded(),
        shown: HashMap::new(),
        freshness,
        stale_after_ms: moving.stale_after_ms(1),
        pace,
        now,
    }
}

impl Bench {
    fn at(&self, at_ms: u64) -> Timestamp {
        Timestamp::from_millisecond(self.now.as_millisecond() + at_ms as i64).unwrap()
    }

    /// The answer to a call at this moment, with these quotes.
    fn hear(&mut self, at_ms: u64, quotes: Vec<Quote>) -> Vec<(Quote, Vouched)> {
        self.take(at_ms, quotes, false)
    }

    fn take(&mut self, at_ms: u64, quotes: Vec<Quote>, pushed: bool) -> Vec<(Quote, Vouched)> {
        let at = self.at(at_ms);
        let times = CallTimes {
            asked: at,
            asked_mono_ms: at_ms,
            answered: at,
        };
        let symbols_max = self.feed.batch_max;
        let mut batch = Batch {
            quotes,
            times,
            symbols_max,
            pushed,
            ..Batch::default()
        };
        let market = MarketView {
            calendar: &self.calendar,
            indices: &self.indices,
            universe: &Universe::embedded(),
            derivatives_of: &|symbol| match symbol.ticker().starts_with("SIM") {
                true => Derivatives::None,
                false => Derivatives::Some,
            },
            shown: &|symbol: &Symbol| self.shown.get(symbol).cloned(),
        };
        self.state.read(&mut batch, &market)
    }

    /// A poll whose answer has the leads as the exchange had them `behind_ms` ago.
    fn answer(&mut self, at_ms: u64, behind_ms: i64) {
        self.state.began(None, at_ms);
        let leads = self.leads(at_ms, behind_ms);
        self.hear(at_ms, leads);
        self.state.ended(&Ended::Succeeded);
    }

    /// A push of the same quotes.
    fn push(&mut self, at_ms: u64, behind_ms: i64) {
        let leads = self.leads(at_ms, behind_ms);
        self.take(at_ms, leads, true);
    }

    fn leads(&self, at_ms: u64, behind_ms: i64) -> Vec<Quote> {
        let exchange_ms = self.at(at_ms).as_millisecond() - behind_ms;
        let as_of = Timestamp::from_millisecond(exchange_ms).unwrap();
        self.indices
            .leads()
            .map(|lead| quote(&lead.symbol, as_of))
            .into()
    }

    fn fail(&mut self, at_ms: u64) {
        self.state.began(None, at_ms);
        self.state.ended(&Ended::Failed("out of order".into()));
    }

    fn is_healthy(&self, at_ms: u64) -> bool {
        self.state.is_healthy(&self.freshness, at_ms)
    }

    fn is_stalled(&self, at_ms: u64) -> bool {
        self.state.is_stalled(&self.freshness, at_ms)
    }
}

fn quote(symbol: &Symbol, as_of: Timestamp) -> Quote {
    testing::quote(symbol.as_str(), "25000", as_of)
}

#[test]
fn one_failure_is_chance_unless_somebody_waits_and_three_are_hopeless() {
    let mut bench = bench(500);
    bench.answer(0, 0);
    bench.fail(1_050);
    assert!(!bench.state.is_degraded(1_050, false) && bench.state.is_degraded(1_050, true));
    bench.fail(2_100);
    assert!(bench.state.is_degraded(2_100, false));
    assert!(bench.is_healthy(2_100), "its data is fresh all the same");
    assert!(bench.state.can_answer_within(2_500, 2_100));
    bench.fail(3_150);
    assert!(!bench.state.can_answer_within(2_500, 3_150), "nobody waits for it any more");
    assert!(!bench.is_healthy(bench.stale_after_ms + 1));
    bench.answer(4_200, 0);
    assert!(!bench.state.is_degraded(4_200, true));
    assert!(bench.state.can_answer_within(2_500, 4_200));
}

#[test]
fn a_call_times_out_long_before_its_deadline() {
    let mut bench = bench(500);
    let pace = bench.pace;
    bench.answer(0, 0);
    bench.state.began(None, 1_050);
    let doubted_ms = 1_050 + pace.patience_ms + 1;
    assert!(bench.state.can_answer_within(2_500, 1_100));
    assert!(!bench.state.is_degraded(doubted_ms - 1, true));
    assert!(bench.state.is_degraded(doubted_ms, false));
    assert!(!bench.state.can_answer_within(2_500, doubted_ms));
    assert!(bench.is_healthy(doubted_ms), "the other feed has time to answer");
}

#[test]
fn a_feed_that_may_not_be_asked_is_degraded_at_once_unless_only_its_own_pace_holds_it_back() {
    let bench = bench(500);
    for (readiness, degraded) in [
        (Readiness::Ready, false),
        (Readiness::Paced(Duration::from_millis(1_050)), false),
        (Readiness::Paced(Duration::from_secs(2)), true),
        (Readiness::Open(Duration::from_secs(2)), true),
        (Readiness::NoToken, true),
        (Readiness::NoPermission, true),
    ] {
        *bench.feed.readiness.lock() = readiness;
        assert_eq!(bench.state.is_degraded(0, false), degraded, "{readiness:?}");
    }
}

#[test]
fn an_index_whose_time_stands_still_is_stalled_whatever_the_wall_clocks_say() {
    // A machine whose clock is two minutes fast takes every price for old, until the delay is
    // measured.
    let mut skewed = bench(500);
    skewed.answer(0, 120_000);
    assert!(!skewed.is_healthy(0));
    for second in 1..60 {
        skewed.answer(second * 1_000, 120_000);
        assert!(skewed.is_healthy(second * 1_000));
    }
    let mut standing = bench(500);
    standing.answer(0, 0);
    standing.answer(1_000, 0);
    for second in 2..=9 {
        standing.answer(second * 1_000, (second as i64 - 1) * 1_000);
        // Its limit, plus one second because timestamps have whole seconds.
        let stands_ms = (second - 1) * 1_000;
        assert_eq!(
            standing.is_healthy(second * 1_000),
            stands_ms <= standing.stale_after_ms + 1_000
        );
        assert_eq!(standing.is_stalled(second * 1_000), !standing.is_healthy(second * 1_000));
    }
    standing.answer(10_000, 0);
    assert!(standing.is_healthy(10_000));
    let mut old = bench(500);
    old.answer(0, 6 * 60_000);
    old.answer(1_000, 6 * 60_000);
    assert!(!old.is_healthy(1_000), "further back than any clock is wrong");
}

#[test]
fn every_lead_has_to_be_fresh() {
    let mut bench = bench(500);
    bench.answer(0, 0);
    let [primary, bank, _] = bench.indices.leads().map(|lead| lead.symbol.clone());
    for at_ms in [1_000, 2_000, 3_000, 4_000] {
        let as_of = bench.at(at_ms);
        bench.hear(at_ms, vec![quote(&primary, as_of), quote(&bank, as_of)]);
    }
    assert!(bench.is_healthy(3_000));
    assert!(!bench.is_healthy(4_000), "the third index is old");
}

#[test]
fn a_feed_that_carries_one_symbol_a_call_gets_the_time_for_three() {
    let mut bench = bench(1);
    bench.answer(0, 0);
    let (moving, _) = limits(Source::BrokerA, 1_050, 0);
    assert!(bench.is_healthy(moving.stale_after_ms(3)));
    assert!(!bench.is_healthy(moving.stale_after_ms(3) + 1));
}

#[test]
fn a_share_is_no_newer_than_the_index_beside_it() {
    let mut bench = bench(500);
    bench.answer(0, 0);
    bench.answer(1_000, 0);
    let share = Symbol::parse("NSE:INFY").unwrap();
    let primary = bench.indices.primary.symbol.clone();
    let stood = bench.at(1_000);
    let now = bench.at(9_000);
    let read = bench.hear(9_000, vec![quote(&primary, stood), quote(&share, now)]);
    let vouched = |symbol: &Symbol| {
        read.iter()
            .find(|(quote, _)| quote.symbol == *symbol)
            .unwrap()
            .1
            .mono_ms
    };
    // Eight seconds late, of which one is the resolution of timestamps.
    assert_eq!((vouched(&primary), vouched(&share)), (2_000, 2_000));
}

#[test]
fn rows_without_a_time_have_that_of_the_index_whose_price_came() {
    let mut bench = bench(500);
    let primary = bench.indices.primary.symbol.clone();
    let share = Symbol::parse("NSE:INFY").unwrap();
    bench.answer(0, 0);
    bench.answer(1_000, 0);
    let mut times = Vec::new();
    for (at_ms, price) in [(2_000, "25001"), (3_000, "25001"), (4_000, "25002")] {
        let untimed = |symbol: &Symbol, price: &str| Quote {
            timed: false,
            last_price: price.parse().unwrap(),
            ..quote(symbol, bench.at(at_ms))
        };
        let quotes = vec![untimed(&primary, price), untimed(&share, "7")];
        for (quote, _) in bench.hear(at_ms, quotes) {
            times.push(quote.as_of.duration_since(bench.now).as_secs());
        }
    }
    assert_eq!(times, [2, 2, 2, 2, 4, 4], "an index that stands keeps its time");
}

impl Bench {
    /// The times that a price without one is given at these moments, of this index and of a share
    /// beside it; and whether the index is fresh.
    fn stamped(&mut self, index: &str, at: &str, price: &str) -> (String, String, bool) {
        let at: Timestamp = format!("{at}+05:30").parse().unwrap();
        let at_ms = at.duration_since(self.now).as_millis() as u64;
        let untimed = |symbol: &str, price: &str| {
            let quote = testing::quote(symbol, price, at);
            Quote {
                timed: false,
                asked: at,
                ..quote
            }
        };
        let share = if index.starts_with("BSE") {
            "BSE:RELIANCE"
        } else {
            "NSE:INFY"
        };
        let read = self.hear(at_ms, vec![untimed(index, price), untimed(share, "7")]);
        for (quote, _) in &read {
            let held = self
                .shown
                .entry(quote.symbol.clone())
                .or_insert_with(|| quote.clone());
            if quote.as_of >= held.as_of {
                *held = quote.clone();
            }
        }
        let shown = |at: usize| {
            let time = crate::base::clock::zoned(read[at].0.as_of);
            time.strftime("%d %H:%M:%S").to_string()
        };
        let is_fresh = !self.freshness.is_stale(Source::BrokerA, read[0].1, at_ms);
        (shown(0), shown(1), is_fresh)
    }
}

/// Its moment, the price of an index without a time, the time that it gets, whether it is fresh.
type Answer = (&'static str, &'static str, &'static str, bool);
/// What happens, the price and time that requests read before, and the answers.
type Case = (&'static str, Option<(&'static str, &'static str)>, &'static [Answer]);

const OF_OLD: &str = "20 09:15:00";

const AFTER_THE_CLOSE: [Case; 14] = [
    (
        "a lag that begins after the close, and ends",
        None,
        &[
            ("2026-11-20T15:14:58", "90", "20 15:14:58", true),
            ("2026-11-20T15:36:00", "91", "20 15:35:00", true),
            ("2026-11-20T15:43:00", "90", OF_OLD, false),
            ("2026-11-20T15:44:00", "89", OF_OLD, false),
            ("2026-11-20T15:50:00", "91", "20 15:35:00", true),
        ],
    ),
    (
        "one that begins before it",
        None,
        &[
            ("2026-11-20T15:14:58", "90", "20 15:14:58", true),
            ("2026-11-20T15:40:00", "90", "20 15:14:58", false),
            ("2026-11-20T15:50:00", "91", "20 15:35:00", true),
        ],
    ),
    (
        "a restart of broker A's close",
        Some(("91", "2026-11-20T15:35:00")),
        &[
            ("2026-11-20T16:00:00", "90", OF_OLD, false),
            ("2026-11-20T16:01:00", "91", "20 15:35:00", true),
        ],
    ),
    (
        "a close that has the auction's own time",
        Some(("91", "2026-11-20T15:30:00")),
        &[("2026-11-20T16:00:00", "90", OF_OLD, false)],
    ),
    (
        "a restart of before the auction",
        Some(("90", "2026-11-20T15:14:58")),
        &[
            ("2026-11-20T16:00:00", "90", "20 15:14:58", false),
            ("2026-11-20T16:01:00", "91", "20 15:35:00", true),
        ],
    ),
    ("nothing is known", None, &[("2026-11-20T16:00:00", "91", "20 15:35:00", true)]),
    (
        "a Saturday",
        Some(("91", "2026-11-20T15:35:00")),
        &[("2026-11-21T11:00:00", "90", OF_OLD, false)],
    ),
    (
        "the next trading morning",
        Some(("91", "2026-11-20T15:35:00")),
        &[
            ("2026-11-23T08:59:00", "90", OF_OLD, false),
            // In the pre-open an index may get a new price.
            ("2026-11-23T09:08:00", "92", "20 15:35:00", true),
        ],
    ),
    (
        "a lag while the auction is prepared",
        None,
        &[
            ("2026-11-20T15:14:58", "90", "20 15:14:58", true),
            ("2026-11-20T15:15:20", "90", "20 15:14:58", true),
            ("2026-11-20T15:16:00", "89", OF_OLD, false),
        ],
    ),
    (
        "the last price of trading",
        None,
        &[
            ("2026-11-20T15:14:58", "90", "20 15:14:58", true),
            ("2026-11-20T15:15:01", "92", "20 15:15:00", true),
        ],
    ),
    (
        "a day without an auction",
        None,
        &[
            ("2026-07-30T15:29:58", "90", "30 15:29:58", true),
            ("2026-07-30T15:36:00", "90", "30 15:29:58", true),
            ("2026-07-30T15:37:00", "89", "30 09:15:00", false),
        ],
    ),
    (
        "in trading another price is a new one",
        Some(("91", "2026-11-20T10:59:59")),
        &[
            ("2026-11-20T11:00:00", "90", "20 11:00:00", true),
            ("2026-11-20T11:00:01", "91", "20 11:00:01", true),
        ],
    ),
    (
        "a restart in trading, while the price has not moved yet",
        Some(("91", "2026-11-20T10:59:57")),
        &[
            ("2026-11-20T11:00:00", "91", "20 10:59:57", true),
            ("2026-11-20T11:00:01", "90", "20 11:00:01", true),
        ],
    ),
    (
        "a restart on a holiday that the calendar does not know",
        Some(("91", "2026-11-19T15:35:00")),
        &[
            ("2026-11-20T11:00:00", "91", "19 15:35:00", false),
            ("2026-11-20T15:50:00", "91", "19 15:35:00", false),
            ("2026-11-20T15:51:00", "92", "20 15:35:00", true),
        ],
    ),
];

#[test]
fn a_price_without_a_time_that_is_of_before_the_close_does_not_pass_for_the_close() {
    for index in ["NSE:NIFTY 50", "BSE:SENSEX"] {
        for (what, restored, answers) in &AFTER_THE_CLOSE {
            let mut bench = bench(500);
            bench.now = "2026-07-30T00:00:00+05:30".parse().unwrap();
            if let Some((price, as_of)) = restored {
                let as_of = format!("{as_of}+05:30").parse().unwrap();
                let symbol = Symbol::parse(index).unwrap();
                bench
                    .shown
                    .insert(symbol, testing::quote(index, price, as_of));
            }
            for (at, price, expected, is_fresh) in *answers {
                let (as_of, of_share, fresh) = bench.stamped(index, at, price);
                assert_eq!((as_of.as_str(), fresh), (*expected, *is_fresh), "{what}: {index} {at}");
                assert!(of_share <= as_of, "{what}: a share at {of_share} beside {as_of}");
            }
        }
    }
}

/// Beside an index of the moment: the share, the time of its price, the moment, and whether the
/// price is fresh.
#[test]
fn a_share_that_stands_while_its_market_trades_is_stale_by_its_own_time() {
    for (symbol, as_of, now, is_fresh) in [
        // Of the universe: five minutes of trading.
        ("NSE:ONGC", "20T10:02:00", "20T10:06:59", true),
        ("NSE:ONGC", "20T10:02:00", "20T10:07:01", true),
        ("NSE:ONGC", "20T10:02:00", "20T10:07:10", false),
        ("NSE:ONGC", "20T10:02:00", "20T14:05:00", false),
        ("NSE:ONGC", "20T14:04:58", "20T14:05:00", true),
        // An index that is not of the list moves each second.
        ("NSE:NIFTY 200", "20T10:02:00", "20T10:07:10", false),
        // Others: half an hour.
        ("NSE:RARELY", "20T10:02:00", "20T10:31:00", true),
        ("NSE:RARELY", "20T10:02:00", "20T10:32:10", false),
        ("BSE:ONGC", "20T10:02:00", "20T14:05:00", false),
        // Not traded yet today.
        ("NSE:ONGC", "19T15:30:00", "20T09:19:00", true),
        ("NSE:ONGC", "19T15:30:00", "20T09:20:10", false),
        ("NSE:ONGC", "19T15:30:00", "20T09:10:00", true),
        // The auction: nothing trades continuously from 15:15 on.
        ("NSE:ONGC", "20T15:14:30", "20T15:31:00", true),
        ("NSE:ONGC", "20T15:05:00", "20T15:31:00", false),
        ("NSE:ONGC", "20T15:30:00", "20T18:00:00", true),
        ("NSE:ONGC", "20T15:12:00", "20T18:00:00", true),
        ("NSE:ONGC", "20T10:02:00", "20T18:00:00", false),
        ("NSE:ONGC", "20T10:02:00", "22T11:00:00", false),
        ("NSE:RARELY", "20T14:50:00", "20T18:00:00", true),
        ("NSE:RARELY", "20T14:40:00", "20T18:00:00", false),
        // Over a weekend and a holiday nothing is missed.
        ("NSE:ONGC", "20T15:30:00", "23T09:05:00", true),
        ("NSE:ONGC", "23T15:30:00", "24T12:00:00", true),
    ] {
        let at = |text: &str| -> Timestamp { format!("2026-11-{text}+05:30").parse().unwrap() };
        let mut bench = bench(500);
        bench.now = at("19T00:00:00");
        let now = at(now);
        let at_ms = now.duration_since(bench.now).as_millis() as u64;
        let index = Symbol::parse("NSE:NIFTY 50").unwrap();
        let moved = bench.calendar.last_move(now).unwrap();
        let share = testing::quote(symbol, "241.35", at(as_of));
        bench.freshness.set_closing(Source::BrokerA, at_ms - 60_000);
        if bench.calendar.status(now).phase != crate::market::Phase::Closed {
            bench.freshness.set_moving(Source::BrokerA);
        }
        let read = bench.hear(at_ms, vec![quote(&index, moved), share]);
        let is_stale = |at: usize, age_ms: u64| {
            bench
                .freshness
                .is_stale(Source::BrokerA, read[at].1, at_ms + age_ms)
        };
        assert!(!is_stale(0, 0), "the index at {now}");
        assert_eq!(!is_stale(1, 0), is_fresh, "{symbol} of {as_of} at {now}");
    }
}

/// Beside an index that has stopped for its auction: the time that an untimed price of a share with
/// derivatives gets and of one without, and whether one of the latter is fresh that has this time.
#[test]
fn a_share_without_derivatives_is_judged_by_its_own_hours() {
    for (now, with, without, as_of, is_fresh) in [
        ("2026-12-04T15:14:00", "15:14:00", "15:14:00", "14:50:00", true),
        ("2026-12-04T15:15:01", "15:15:00", "15:15:01", "14:50:00", true),
        ("2026-12-04T15:20:00", "15:15:00", "15:20:00", "15:19:59", true),
        ("2026-12-04T15:29:00", "15:15:00", "15:29:00", "15:00:00", true),
        // It trades on, and stands for longer than half an hour.
        ("2026-12-04T15:29:00", "15:15:00", "15:29:00", "14:58:00", false),
        ("2026-12-04T15:31:00", "15:15:00", "15:30:00", "15:01:00", true),
        ("2026-12-04T18:00:00", "15:35:00", "15:30:00", "15:01:00", true),
        ("2026-12-04T18:00:00", "15:35:00", "15:30:00", "14:58:00", false),
        ("2026-12-07T15:20:00", "15:20:00", "15:20:00", "15:19:59", true),
        ("2026-12-07T15:31:00", "15:30:00", "15:30:00", "15:01:00", true),
        ("2026-12-07T15:37:00", "15:30:00", "15:30:00", "15:29:59", true),
        ("2026-12-07T18:00:00", "15:40:00", "15:30:00", "15:01:00", true),
        ("2026-07-30T18:00:00", "15:30:00", "15:30:00", "15:01:00", true),
    ] {
        let mut bench = bench(500);
        let instant = |text: &str| -> Timestamp { format!("{text}+05:30").parse().unwrap() };
        bench.now = instant(&format!("{}T00:00:00", &now[..10]));
        let at_ms = instant(now).duration_since(bench.now).as_millis() as u64;
        let moved = bench.calendar.last_move(instant(now)).unwrap();
        let index = quote(&Symbol::parse("NSE:NIFTY 50").unwrap(), moved);
        let untimed = |name: &str| {
            let quote = testing::quote(name, "7", instant(now));
            Quote {
                timed: false,
                asked: instant(now),
                ..quote
            }
        };
        let quotes = vec![index, untimed("NSE:INFY"), untimed("NSE:SIM300")];
        let read = bench.hear(at_ms, quotes);
        for (at, time) in [(1, with), (2, without)] {
            let stamped = crate::base::clock::zoned(read[at].0.as_of).strftime("%H:%M:%S");
            assert_eq!(stamped.to_string(), time, "{} at {now}", read[at].0.symbol);
        }
        let as_of = instant(&format!("{}T{as_of}", &now[..10]));
        let read = bench.hear(at_ms, vec![testing::quote("NSE:SIM301", "7", as_of)]);
        if bench.calendar.status(instant(now)).phase == crate::market::Phase::Closed {
            bench.freshness.set_closing(Source::BrokerA, at_ms - 60_000);
        }
        let is_stale = bench.freshness.is_stale(Source::BrokerA, read[0].1, at_ms);
        assert_eq!(!is_stale, is_fresh, "of {as_of} at {now}");
    }
}

#[test]
fn after_a_refused_request_the_next_carries_indices_only() {
    let mut bench = bench(500);
    bench.state.began(None, 0);
    bench
        .state
        .ended(&Ended::Refused("invalid instrument".into()));
    assert!(bench.state.indices_only);
    bench.answer(1_050, 0);
    assert!(!bench.state.indices_only);
}

#[test]
fn prices_that_move_but_are_old_put_the_clock_in_doubt_and_stuck_ones_do_not() {
    let hour_ms = 3_600_000;
    let mut bench = bench(500);
    bench.answer(1_000, 0);
    bench.answer(2_000, 0);
    assert_eq!(bench.state.clock_ahead_ms(2_000), None);
    // The machine's clock is set, and the exchange's prices go on.
    bench.now = bench.at(hour_ms);
    for at_ms in [3_000, 4_000] {
        bench.answer(at_ms, hour_ms as i64);
        assert!(!bench.is_healthy(at_ms), "at once");
    }
    assert_eq!(bench.state.clock_ahead_ms(4_000), Some(hour_ms as i64));
    // It has not moved since.
    assert_eq!(bench.state.clock_ahead_ms(40_000), None);
    bench.state.ahead_of_us_ms = Some(hour_ms as i64);
    assert_eq!(bench.state.clock_ahead_ms(40_000), Some(-(hour_ms as i64)));
}

#[test]
fn a_feed_that_was_stuck_before_it_was_asked_says_nothing_of_the_clock() {
    let mut bench = bench(500);
    for at_ms in [1_000, 2_000, 3_000] {
        bench.answer(at_ms, 3_600_000 + at_ms as i64);
        assert_eq!(bench.state.clock_ahead_ms(at_ms), None);
        assert!(!bench.is_healthy(at_ms));
    }
}

#[test]
fn only_what_was_pushed_shows_that_ticks_flow_and_late_ticks_undo_no_call() {
    let mut bench = bench(500);
    bench.answer(1_000, 0);
    bench.answer(2_000, 0);
    assert!(bench.is_healthy(2_000) && !bench.state.pushed_within(4_000, 2_000), "by calls");
    bench.push(3_000, 0);
    assert!(bench.state.pushed_within(4_000, 7_000) && !bench.state.pushed_within(4_000, 7_001));
    // Half a minute late: no reason to rely on ticks, and none to doubt the call before.
    bench.answer(8_000, 0);
    bench.push(8_100, 30_000);
    assert!(!bench.state.pushed_within(4_000, 8_100));
    assert!(bench.is_healthy(8_100), "the call stands");
    // A poll in between does not count as a tick.
    bench.answer(9_000, 0);
    assert!(!bench.state.pushed_within(4_000, 9_000));
    bench.push(9_500, 0);
    assert!(bench.state.pushed_within(4_000, 9_500));
}

/// An arrival: polled or pushed, the delay after the previous one, and the symbols, each with its
/// age in milliseconds.
#[derive(Clone, Debug)]
struct Arrival {
    pushed: bool,
    after_ms: u64,
    quotes: Vec<(usize, i64)>,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let quotes = prop::collection::vec((0_usize..5, 0_i64..20_000), 1..5);
    let arrival = (any::<bool>(), 0_u64..3_000, quotes);
    let arrival = arrival.prop_map(|(pushed, after_ms, quotes)| Arrival {
        pushed,
        after_ms,
        quotes,
    });
    prop::collection::vec(arrival, 1..40)
}

proptest! {
    #[test]
    fn calls_and_ticks_in_any_order_leave_the_newest_of_each_symbol(arrivals in arrivals()) {
        let mut bench = bench(500);
        let l1 = L1::new(100);
        let leads = bench.indices.leads().map(|lead| lead.symbol.clone());
        let shares = ["NSE:INFY", "NSE:TCS", "BSE:RELIANCE"].map(|it| Symbol::parse(it).unwrap());
        let symbols: Vec<Symbol> = leads.into_iter().chain(shares).collect();
        // The model: the newest timestamp of each symbol, and the price of that time.
        let mut newest = HashMap::new();
        let mut now_ms = 60_000;
        for Arrival { pushed, after_ms, quotes } in arrivals {
            now_ms += after_ms;
            let mut brought = Vec::new();
            for (symbol, age_ms) in quotes {
                let symbol = &symbols[symbol % symbols.len()];
                let as_of = bench.at(now_ms - age_ms as u64);
                // One price for each moment.
                let price = rust_decimal::Decimal::new(as_of.as_millisecond() % 1_000_000 + 1, 2);
                brought.push(Quote { last_price: price, ..quote(symbol, as_of) });
                let known = newest.entry(symbol.clone()).or_insert((as_of, price));
                *known = (*known).max((as_of, price));
            }
            let count = brought.len();
            let read = bench.take(now_ms, brought, pushed);
            prop_assert_eq!(read.len(), count, "none is of the future");
            for (quote, vouched) in read {
                l1.insert(quote, vouched, now_ms);
            }
            for (symbol, (as_of, price)) in &newest {
                let held = l1.quote(symbol.as_str()).unwrap();
                prop_assert_eq!((held.as_of, held.last_price), (*as_of, *price), "{}", symbol);
            }
        }
    }
}

#[test]
fn a_round_grows_at_once_and_shrinks_when_everything_has_come_round() {
    let mut round = Round {
        calls: 1,
        smaller: 0,
    };
    let mut said = Vec::new();
    for calls in [1, 4, 2, 2, 2, 2, 2, 3, 1, 3, 1] {
        round.note(calls);
        said.push(round.calls);
    }
    assert_eq!(said, [1, 4, 4, 4, 4, 4, 2, 3, 3, 3, 3]);
}
