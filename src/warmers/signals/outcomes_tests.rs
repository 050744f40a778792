//! Tests which outcomes are stored, and that the counts add up. With a store. Whole weeks are
//! covered by the tests of the service.

use jiff::civil::date;
use sonic_rs::{JsonValueTrait, Value};

use super::*;
use crate::base::{Clock, Source};
use crate::signals::Direction;
use crate::store::{Epoch, NewHistory, PricedSignal, Store};
use crate::views::signal_record::SignalRecord;
use crate::views::values;

const FIRST: Date = date(2026, 11, 2);

fn symbol(name: &str) -> Symbol {
    Symbol::parse(&format!("NSE:{name}")).unwrap()
}

/// Trading dates from [`FIRST`] on.
fn dates(count: usize) -> Vec<Date> {
    let calendar = MarketCalendar::embedded();
    std::iter::successors(Some(FIRST), |date| calendar.next_trading_date(*date))
        .take(count)
        .collect()
}

/// Candles on these dates with the given closes.
fn candles(dates: &[Date], close: impl Fn(usize) -> i64) -> Vec<Candle> {
    let candle = |(at, date): (usize, &Date)| {
        let price = close(at);
        Candle {
            date: *date,
            open_e4: price,
            high_e4: price,
            low_e4: price,
            close_e4: price,
            volume: 1,
        }
    };
    dates.iter().enumerate().map(candle).collect()
}

fn signal(name: &str) -> PricedSignal {
    let signal = ListedSignal {
        symbol: symbol(name),
        pattern: "bullish_engulfing".to_owned(),
        direction: Direction::Bullish,
        confidence: 0.52,
        prior_dates: 1_000,
        samples: 3,
        date_hit_rate: Some(0.5),
        past: Some((4, 2)),
        base_rate: 0.53,
        simulated: false,
    };
    (signal, 1_000_000)
}

/// A universe of rising R, falling F, and H, which stops after three sessions. G has left it.
struct Desk {
    store: Store,
    _folder: tempfile::TempDir,
    histories: Vec<(Symbol, Vec<Candle>)>,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("s"), 1, &Clock::system()).unwrap();
        let all = dates(12);
        let histories = vec![
            (symbol("R"), candles(&all, |at| 1_000_000 + at as i64)),
            (symbol("F"), candles(&all, |at| 1_000_000 - at as i64)),
            (symbol("H"), candles(&all[..3], |_| 1_000_000)),
            (symbol("G"), candles(&all[..1], |_| 1_000_000)),
        ];
        for (symbol, candles) in &histories {
            let history = NewHistory {
                symbol: symbol.clone(),
                source: Source::BrokerA,
                simulated: false,
                candles: candles.clone(),
                suspicions: Vec::new(),
            };
            store.replace_candles(Epoch::ALONE, history).unwrap();
        }
        Self {
            store,
            _folder: folder,
            histories,
        }
    }

    fn publish(&self, on: Date, names: &[&str]) {
        let signals = names.iter().map(|name| signal(name)).collect();
        assert!(
            self.store
                .publish_signals(Epoch::ALONE, on, 1, 3, signals)
                .unwrap()
        );
    }

    /// The record with the candles up to `to`, or without candles.
    fn record(&self, to: Option<Date>) -> Value {
        let until =
            |candles: &Vec<Candle>| candles.partition_point(|candle| Some(candle.date) <= to);
        let closes: Closes<'_> = self
            .histories
            .iter()
            .map(|(s, c)| (s.as_str(), &c[..until(c)]))
            .collect();
        let closes = if to.is_some() { closes } else { Closes::new() };
        let universe = ["R", "F", "H"].map(symbol).into_iter().collect();
        let calendar = Arc::new(MarketCalendar::embedded());
        let universe = Arc::new(universe);
        let expected = Expected {
            universe,
            calendar,
            epoch: Epoch::ALONE,
        };
        let record = walk(&self.store, &closes, &expected).unwrap();
        sonic_rs::from_slice(&values::to_vec(&SignalRecord::of(&record, None))).unwrap()
    }
}

fn counts(record: &Value) -> [u64; 7] {
    [
        "published",
        "judged",
        "due",
        "never",
        "pending",
        "dates_published",
        "dates_missed",
    ]
    .map(|name| record[name].as_u64().unwrap())
}

#[test]
fn the_books_add_up_whoever_leaves_and_whatever_is_missed() {
    let desk = Desk::new();
    let all = dates(12);
    desk.publish(all[0], &["R", "F", "H", "G"]);
    assert_eq!(counts(&desk.record(Some(all[0]))), [4, 0, 3, 1, 4, 1, 0], "G has left");
    // The second and third dates are missed. One of the signals has a date without a candle.
    desk.publish(all[3], &["R", "H"]);
    assert_eq!(counts(&desk.record(Some(all[3]))), [6, 0, 4, 2, 6, 2, 2]);
    desk.publish(all[5], &[]);
    assert_eq!(counts(&desk.record(Some(all[5]))), [6, 2, 2, 2, 4, 3, 3]);
    let before = all[9];
    desk.publish(before, &[]);
    assert_eq!(counts(&desk.record(Some(before))), [6, 3, 1, 2, 3, 4, 6], "H may trade again");
    // Ten sessions after its signal the share has traded on two of them.
    desk.publish(all[10], &[]);
    let record = desk.record(Some(all[10]));
    assert_eq!(counts(&record), [6, 3, 0, 3, 3, 5, 6]);
    // The result is the same at a start, when no candles are at hand.
    assert_eq!(desk.record(None), record);
}

#[test]
fn an_outcome_keeps_how_all_moved_over_the_same_sessions() {
    let desk = Desk::new();
    let all = dates(12);
    desk.publish(all[0], &["R"]);
    desk.publish(all[5], &[]);
    let record = desk.record(Some(all[5]));
    let outcome = desk.store.ledger(0, 1).unwrap()[0].outcome.unwrap();
    assert_eq!((outcome.hit, outcome.universe), (true, Some((2, 1))), "of R and F, R rose");
    let bullish = &record["directions"][0];
    assert_eq!(bullish["same_day_rate"].as_f64(), Some(0.5));
    assert_eq!((bullish["hits"].as_u64(), bullish["dates"].as_u64()), (Some(1), Some(1)));
    assert!(bullish["lift"].is_null(), "one date says nothing");
}
