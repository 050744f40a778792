//! The market's hours minute by minute: the week in which the closing auction moves, a special
//! session with an auction of its own, and a calendar that a running service takes in. An index, a
//! share with derivatives and one without, each by its own hours.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bhav::app::Reloader;
use bhav::base::Clock;
use bhav::config::{Config, Loaded};
use bhav::market::MarketCalendar;
use bhav::sim::SimSettings;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use sonic_rs::{JsonValueTrait, Value};

use super::days::Days;
use crate::portfolio::user::decimal;
use crate::support::wait::at_once;
use crate::support::{Scene, until};

const INDEX: &str = "NSE:NIFTY 50";
const WITH: &str = "NSE:INFY";
const WITHOUT: &str = "NSE:SIM300";
/// Looks at the service between two such advances.
const LOOKS_PER_STEP: usize = 3;
/// The auction's price is above the last trade by so much.
const RISE: Decimal = Decimal::from_parts(7, 0, 0, false, 0);
/// The clock's advance while a poll is waited for.
const STEP_MS: i64 = 300;

/// A minute of the day.
fn minute(text: &str) -> i64 {
    let (hours, minutes) = text.split_once(':').unwrap();
    hours.parse::<i64>().unwrap() * 60 + minutes.parse::<i64>().unwrap()
}

fn text(minute: i64) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

/// What a day's minutes must show. Times are `HH:MM`.
struct Expected {
    /// The minute before the first one that is looked at, and the last one.
    from: &'static str,
    to: &'static str,
    /// The phase, and whether some share trades, from each minute on.
    phases: &'static [(&'static str, &'static str, bool)],
    /// The auction begins, and its price is known to all.
    auction: (&'static str, &'static str),
    /// Shares without derivatives end to trade.
    end: &'static str,
    /// The closes are revalued from this minute on: ten minutes after the auction.
    close: &'static str,
    /// The minutes as a table: phase, whether some share trades, since when index and INFY stand,
    /// since when SIM300 does, and the closes of the two.
    table: &'static [&'static str],
}

const FIRST_REGIME: Expected = Expected {
    from: "15:09",
    to: "16:05",
    phases: &[
        ("15:10", "open", true),
        ("15:15", "closing", true),
        ("15:30", "closing", false),
        ("15:35", "closed", false),
        ("15:50", "post_close", false),
        ("16:00", "closed", false),
    ],
    auction: ("15:15", "15:35"),
    end: "15:30",
    close: "15:45",
    table: &[
        "15:10-15:14 open true moves moves -",
        "15:15-15:29 closing true 15:15 moves -",
        "15:30-15:34 closing false 15:15 15:30 -",
        "15:35-15:44 closed false 15:35 15:30 -",
        "15:45-15:49 closed false 15:35 15:30 official,last",
        "15:50-15:59 post_close false 15:35 15:30 official,last",
        "16:00-16:05 closed false 15:35 15:30 official,last",
    ],
};

const SECOND_REGIME: Expected = Expected {
    phases: &[
        ("15:10", "open", true),
        ("15:30", "closing", false),
        ("15:40", "closed", false),
        ("15:50", "post_close", false),
        ("16:00", "closed", false),
    ],
    auction: ("15:30", "15:40"),
    close: "15:50",
    table: &[
        "15:10-15:29 open true moves moves -",
        "15:30-15:39 closing false 15:30 15:30 -",
        "15:40-15:49 closed false 15:40 15:30 -",
        "15:50-15:59 post_close false 15:40 15:30 official,last",
        "16:00-16:05 closed false 15:40 15:30 official,last",
    ],
    ..FIRST_REGIME
};

/// A special session in the evening of a Saturday. The auction keeps its ten minutes.
const EVENING_SESSION: &str = "[[session]]\ndate = \"2026-12-12\"\nname = \"Evening\"\n\
    [[session.part]]\npre_open = \"17:45-18:00\"\ncontinuous = \"18:00-19:00\"\n\
    closing = \"19:00-19:10\"\npost_close = \"19:20-19:30\"\n";

const EVENING: Expected = Expected {
    from: "18:39",
    to: "19:35",
    phases: &[
        ("18:40", "open", true),
        ("19:00", "closing", false),
        ("19:10", "closed", false),
        ("19:20", "post_close", false),
        ("19:30", "closed", false),
    ],
    auction: ("19:00", "19:10"),
    end: "19:00",
    close: "19:20",
    table: &[
        "18:40-18:59 open true moves moves -",
        "19:00-19:09 closing false 19:00 19:00 -",
        "19:10-19:19 closed false 19:10 19:00 -",
        "19:20-19:29 post_close false 19:10 19:00 official,last",
        "19:30-19:35 closed false 19:10 19:00 official,last",
    ],
};

fn config(scene: &Scene) -> Config {
    let mut config = scene.config();
    config.broker_b.url = scene.sim.broker_b_url();
    // The clock stands while a request waits.
    config.cache.miss_wait_ms = 50;
    config
}

/// The exchange at a minute of a date, with the hours of `calendar` if there is one.
fn exchange_at(date: &str, from: &str, calendar: Option<&str>) -> Scene {
    let now = format!("{date}T{from}:00+05:30");
    let clock = Clock::manual(now.parse().unwrap());
    let settings = SimSettings {
        rate_limits: false,
        ..SimSettings::default()
    };
    Scene::by_hand_at_hours(clock, settings, calendar)
}

fn await_instruments(days: &Days) {
    until("broker A's lists", || {
        days.scene.advance_ms(STEP_MS);
        days.service.has_instruments()
    });
}

/// A running service on one day, whose user holds both shares.
struct Afternoon {
    days: Days,
    date: &'static str,
}

impl Afternoon {
    /// From a minute of a date on. `calendar` is what the operator's file says, if there is one,
    /// and what the exchange does.
    fn begin(date: &'static str, from: &str, calendar: Option<&str>) -> Self {
        let scene = exchange_at(date, from, calendar);
        let mut config = config(&scene);
        if let Some(calendar) = calendar {
            let file = scene.state.path().join("calendar.toml");
            std::fs::write(&file, calendar).unwrap();
            config.market.calendar_file = Some(file);
        }
        Self::on(scene, &config, date)
    }

    /// A service with these settings, on a scene that stands at a minute of `date`.
    fn on(scene: Scene, config: &Config, date: &'static str) -> Self {
        let days = Days::on(scene, config);
        await_instruments(&days);
        days.holds_at_a(
            r#"{"symbol":"NSE:INFY","quantity":10,"average_paise":70000},
               {"symbol":"NSE:SIM300","quantity":10,"average_paise":70000}"#,
        );
        days.sync("a");
        Self { days, date }
    }

    fn at(&self, minute: i64) -> Timestamp {
        let at = format!("{}T{}:00+05:30", self.date, text(minute));
        at.parse().unwrap()
    }

    /// Advances the clock to a minute, and waits until broker A was asked twice since and every
    /// price is fresh. What is not so within fifty seconds stays so for the caller to see.
    fn go_to(&self, minute: i64) {
        let rounds = || {
            self.days.service.health()["feeds"]["broker_a"]["rounds"]
                .as_u64()
                .unwrap()
        };
        let by_ms = self.at(minute).as_millisecond() - self.days.scene.clock.now_ms();
        self.days.scene.advance_ms(by_ms.max(0));
        // What was asked for within the last minute is polled.
        self.prices();
        let before = rounds();
        let phase = self.market()["phase"].as_str().unwrap().to_owned();
        let polls = if ["open", "closing"].contains(&phase.as_str()) {
            2
        } else {
            // The feed is asked every half a minute.
            self.days.scene.advance_ms(28_000);
            1
        };
        let mut looks = 0;
        until("the polls", || {
            let is_fresh = || self.prices().iter().all(|(_, _, stale)| !stale);
            let is_done =
                rounds() >= before + polls && is_fresh() || self.seconds_into(minute) >= 57;
            looks += 1;
            // A call that is under way is given time.
            if !is_done && looks % LOOKS_PER_STEP == 0 {
                self.days.scene.advance_ms(STEP_MS);
            }
            is_done
        });
    }

    fn seconds_into(&self, minute: i64) -> i64 {
        self.days.scene.clock.now().as_second() - self.at(minute).as_second()
    }

    /// The price, the time and the staleness of each of the three, once all are there.
    fn prices(&self) -> [(Decimal, Timestamp, bool); 3] {
        let symbols = [INDEX, WITH, WITHOUT].map(|symbol| symbol.replace(' ', "%20"));
        let answer = until("prices", || {
            let answer = self.days.service.prices(&symbols.join(","));
            let is_whole = answer.status == 200 && answer.quoted().len() == symbols.len();
            if !is_whole {
                self.days.scene.advance_ms(STEP_MS);
            }
            is_whole.then(|| answer.json())
        });
        [0, 1, 2].map(|at| {
            let quote = &answer["quotes"][at];
            let as_of = quote["as_of"].as_str().unwrap().parse().unwrap();
            (decimal(quote, "last_price"), as_of, quote["stale"].as_bool().unwrap())
        })
    }

    fn market(&self) -> Value {
        self.days.service.get("/api/index/snapshot").json()["market"].clone()
    }

    /// Checks that a price's time is that of the moment, or of the minute in which trading ended.
    fn is_of_now(&self, as_of: Timestamp, end: i64) {
        let moment = self.days.scene.clock.now().min(self.at(end));
        let age = moment.duration_since(as_of);
        assert!(age >= SignedDuration::ZERO, "{as_of} is after {moment}");
        assert!(age <= SignedDuration::from_secs(3), "{as_of} for {moment}");
    }

    /// Waits for the day's closes of so many shares.
    fn await_closes(&self, count: usize) -> BTreeMap<String, (Decimal, Timestamp, bool)> {
        until("the closes", || {
            let found = self.closes();
            if found.len() < count {
                self.days.scene.advance_ms(STEP_MS);
            }
            (found.len() == count).then_some(found)
        })
    }

    /// The stored closes of the day: price, time, whether it is the auction's.
    fn closes(&self) -> BTreeMap<String, (Decimal, Timestamp, bool)> {
        let date: Date = self.date.parse().unwrap();
        let store = &self.days.service.0.server().shared().service.state().store;
        let closes = store.closes(date).unwrap().into_iter();
        closes
            .map(|(symbol, close)| {
                let as_of = Timestamp::from_millisecond(close.as_of_ms).unwrap();
                (symbol.to_string(), (close.price, as_of, close.official))
            })
            .collect()
    }
}

/// The closes of INFY and SIM300, once they are there: the auction's price, and a last trade.
const CLOSES: &str = "official,last";

/// The minute since which a price stands, if it has come to that.
fn standing_since(as_of: Timestamp, since: Timestamp, minute: i64) -> String {
    match as_of + SignedDuration::from_secs(3) >= since {
        true => text(minute),
        false => "moves".to_owned(),
    }
}

fn expect_phase(afternoon: &Afternoon, expected: (&str, bool), what: &str) {
    let market = afternoon.market();
    let found = (market["phase"].as_str(), market["is_open"].as_bool());
    assert_eq!(found, (Some(expected.0), Some(expected.1)), "{what}");
    assert_eq!(market["calendar_known"], true, "{what}");
}

/// The kept closes: the auction's price, and the last price of the share without an auction, each
/// with its minute.
fn expect_closes(
    afternoon: &Afternoon,
    (with, known): (Decimal, i64),
    (without, end): (Decimal, i64),
    what: &str,
) {
    let closes = afternoon.await_closes(2);
    assert_eq!(closes[WITH], (with, afternoon.at(known), true), "{what}");
    assert_eq!(closes[WITHOUT], (without, afternoon.at(end), false), "{what}");
}

/// Looks at each minute, and returns the rows of the table that a person would make of it.
fn play(afternoon: &Afternoon, expected: &Expected) -> Vec<String> {
    let [begins, known] = [expected.auction.0, expected.auction.1].map(minute);
    let end = minute(expected.end);
    let close = minute(expected.close);
    let mut standing: Option<[Decimal; 2]> = None;
    let mut last_trade = None;
    let mut rows: Vec<String> = Vec::new();
    for now in minute(expected.from) + 1..=minute(expected.to) {
        if now == begins + 2 {
            // The auction's price of the share differs from its last trade.
            let [index, with, _] = afternoon.prices();
            standing = Some([index.0, with.0]);
            afternoon.days.price(WITH, &(with.0 + RISE).to_string());
        }
        afternoon.go_to(now);
        let what = format!("{} {}", afternoon.date, text(now));
        let phase = expected
            .phases
            .iter()
            .rev()
            .find(|(from, ..)| minute(from) <= now)
            .unwrap();
        expect_phase(afternoon, (phase.1, phase.2), &what);
        let [index, with, without] = afternoon.prices();
        let prices = [index, with, without];
        assert!(prices.iter().all(|price| !price.2), "stale at {what}: {prices:?}");
        if now < known {
            afternoon.is_of_now(index.1, begins);
            afternoon.is_of_now(with.1, begins);
        } else {
            assert_eq!([index.1, with.1], [afternoon.at(known); 2], "{what}");
        }
        afternoon.is_of_now(without.1, end);
        if let Some(standing) = standing {
            let risen = if now < known { Decimal::ZERO } else { RISE };
            assert_eq!(with.0, standing[1] + risen, "{what}");
            let index_close = afternoon.days.scene.said(INDEX).0;
            assert_eq!(
                index.0,
                if now < known {
                    standing[0]
                } else {
                    index_close
                },
                "{what}"
            );
        }
        if now >= end {
            let last = *last_trade.get_or_insert(without.0);
            assert_eq!(without.0, last, "{what}");
        }
        if now < close {
            assert_eq!(afternoon.closes(), BTreeMap::new(), "a close before its time at {what}");
        } else {
            expect_closes(afternoon, (with.0, known), (without.0, end), &what);
        }
        let stands = match now < known {
            true => standing_since(with.1, afternoon.at(begins), begins),
            false => text(known),
        };
        rows.push(format!(
            "{} {} {stands} {} {}",
            phase.1,
            phase.2,
            standing_since(without.1, afternoon.at(end), end),
            if now < close { "-" } else { CLOSES },
        ));
    }
    rows
}

/// Equal minutes in one line each, as a person would write them down.
fn table(from: i64, rows: &[String]) -> Vec<String> {
    let mut at = from + 1;
    let mut lines = Vec::new();
    for same in rows.chunk_by(|one, other| one == other) {
        let last = at + same.len() as i64 - 1;
        lines.push(format!("{}-{} {}", text(at), text(last), same[0]));
        at = last + 1;
    }
    lines
}

/// Plays the minutes of a day, and compares their table with the expected one.
fn play_all(afternoon: &Afternoon, expected: &Expected) {
    let rows = play(afternoon, expected);
    assert_eq!(table(minute(expected.from), &rows), expected.table, "{}", afternoon.date);
}

fn play_day(date: &'static str, calendar: Option<&str>, expected: &Expected) {
    play_all(&Afternoon::begin(date, expected.from, calendar), expected);
}

#[test]
fn each_minute_of_the_week_in_which_the_auction_moves() {
    at_once(
        [
            ("2026-12-04", &FIRST_REGIME),
            ("2026-12-07", &SECOND_REGIME),
            ("2026-12-08", &SECOND_REGIME),
            ("2026-12-09", &SECOND_REGIME),
            ("2026-12-10", &SECOND_REGIME),
            ("2026-12-11", &SECOND_REGIME),
        ],
        |(date, expected)| play_day(date, None, expected),
    );
}

#[test]
fn each_minute_of_a_special_session_with_an_auction() {
    play_day("2026-12-12", Some(EVENING_SESSION), &EVENING);
}

/// Its last trade is of 15:29, in the average that stands for an auction without a price. A share
/// without derivatives that stood since then has its last trade as its close.
#[test]
fn a_share_with_derivatives_that_froze_before_the_auction_has_no_close_of_its_last_trade() {
    let afternoon = Afternoon::begin("2026-12-07", "15:27", None);
    afternoon.go_to(minute("15:29"));
    for symbol in [WITH, WITHOUT] {
        afternoon.days.scene.halt(symbol, true);
    }
    afternoon.go_to(minute("15:51"));
    until("the close of the share without derivatives", || {
        afternoon.days.scene.advance_ms(STEP_MS);
        afternoon.closes().contains_key(WITHOUT)
    });
    for now in minute("15:53")..=minute("16:10") {
        afternoon.go_to(now);
        assert_eq!(afternoon.closes().keys().collect::<Vec<_>>(), [WITHOUT], "{}", text(now));
    }
    afternoon.days.scene.halt(WITH, false);
    until("the auction's price", || {
        afternoon.days.scene.advance_ms(5_000);
        let closes = afternoon.closes();
        closes
            .get(WITH)
            .map(|close| assert!(close.1 == afternoon.at(minute("15:40")) && close.2))
    });
}

/// A calendar that arrives at 14:00 and moves the auction of the day: what the service awaits
/// follows it, and so does the exchange.
#[test]
fn a_calendar_that_arrives_in_the_afternoon_moves_the_close_that_is_awaited() {
    const MOVED: &str = "[[regime]]\nfrom = \"2026-12-04\"\norders = \"09:00-09:10\"\n\
        pre_open = \"09:00-09:15\"\ncontinuous = \"09:15-15:45\"\nclosing = \"15:45-15:55\"\n\
        post_close = \"16:05-16:15\"\n";
    const LATER: Expected = Expected {
        from: "15:29",
        to: "16:20",
        phases: &[
            ("15:30", "open", true),
            ("15:45", "closing", false),
            ("15:55", "closed", false),
            ("16:05", "post_close", false),
            ("16:15", "closed", false),
        ],
        auction: ("15:45", "15:55"),
        end: "15:45",
        close: "16:05",
        table: &[
            "15:30-15:44 open true moves moves -",
            "15:45-15:54 closing false 15:45 15:45 -",
            "15:55-16:04 closed false 15:55 15:45 -",
            "16:05-16:14 post_close false 15:55 15:45 official,last",
            "16:15-16:20 closed false 15:55 15:45 official,last",
        ],
    };
    let scene = exchange_at("2026-12-04", "13:58", Some(MOVED));
    let config = config(&scene);
    let file: PathBuf = scene.state.path().join("calendar.toml");
    let afternoon = Afternoon::on(scene, &config, "2026-12-04");
    afternoon.go_to(minute("14:00"));
    assert_eq!(afternoon.market()["next_transition_at"], "2026-12-04T15:15:00+05:30");
    std::fs::write(&file, MOVED).unwrap();
    let mut moved: Config = config.clone();
    moved.market.calendar_file = Some(file);
    let reread = || Ok(Loaded::of(moved.clone()));
    Reloader::new(&afternoon.days.service.0, &config, &reread).reload();
    until("the calendar in force", || {
        afternoon.days.scene.advance_ms(STEP_MS);
        afternoon.market()["next_transition_at"] == "2026-12-04T15:45:00+05:30"
    });
    afternoon.go_to(minute("15:29"));
    play_all(&afternoon, &LATER);
    // The old calendar's close, of ten minutes after 15:35, was not taken: see `play`.
    let embedded = MarketCalendar::embedded();
    let old = embedded
        .official_close("2026-12-04".parse().unwrap())
        .unwrap();
    assert!(old < afternoon.at(minute(LATER.auction.1)));
}
