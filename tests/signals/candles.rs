//! Daily candles from end to end: both clients against the simulator, the checks behind them, and
//! every known fault of a history.

use crate::support::Client;
use bhav::base::{Candle, Clock, ManualClock, Symbol};
use bhav::brokers::BrokerASettings;
use bhav::brokers::broker_a::Tokens;
use bhav::brokers::settings::{PublicSettings, UpstreamSettings};
use bhav::brokers::{BrokerA, BrokerError, BrokerErrorKind, DailyCandles, Public, SharedToken};
use bhav::market::instruments::embedded_instruments;
use bhav::market::{MarketCalendar, Universe};
use bhav::signals::history::{Checked, Conflict, HistoryFault, Window, check, merge};
use bhav::signals::patterns::{Columns, Detector};
use bhav::sim::{self, Sessions, Sim, SimSettings};
use jiff::civil::{Date, date};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A Friday after the market's last phase.
const EVENING: &str = "2026-11-20T18:00:00+05:30";
const FRIDAY: Date = date(2026, 11, 20);
const THURSDAY: Date = date(2026, 11, 19);
/// Earlier than 560 sessions before.
const FROM: Date = date(2024, 8, 1);
const INFY: &str = "NSE:INFY";

/// Both clients with the simulator behind them, on a clock that advances with each call.
struct Bench {
    clock: ManualClock,
    calendar: Arc<MarketCalendar>,
    sim: Sim,
    broker_a: BrokerA,
    public: Public,
    tokens: Tokens,
}

impl Bench {
    fn at(now: &str) -> Self {
        let clock = Clock::manual(now.parse().unwrap());
        let calendar = Arc::new(MarketCalendar::embedded());
        let trading = Arc::clone(&calendar);
        let sessions = Sessions::new(move |date| trading.is_trading_date(date));
        let settings = SimSettings {
            sessions,
            ..SimSettings::default()
        };
        let sim = sim::start(settings, clock.clone()).unwrap();
        let token = Arc::new(SharedToken::default());
        token.set("simtokena".into(), "simkeya".into(), clock.now());
        let upstream = UpstreamSettings::default();
        let a = BrokerASettings {
            url: sim.broker_a_url(),
            ..BrokerASettings::default()
        };
        let p = PublicSettings {
            url: sim.public_url(),
            ..PublicSettings::default()
        };
        let rows = embedded_instruments().into_iter();
        Self {
            broker_a: BrokerA::new(&a, &upstream, clock.clone(), token).unwrap(),
            public: Public::new(&p, &upstream, clock.clone(), HashMap::new(), Vec::new()).unwrap(),
            tokens: Tokens::new(rows.map(|row| (row.symbol, row.broker_a_token))),
            clock,
            calendar,
            sim,
        }
    }

    fn broker_a(&self, symbol: &str, from: Date) -> Result<DailyCandles, BrokerError> {
        self.clock.advance_ms(1_000);
        let token = self.tokens.of(&Symbol::parse(symbol).unwrap()).unwrap();
        self.broker_a.daily_candles(token, from, FRIDAY)
    }

    fn public(&self, symbol: &str, from: Date) -> Result<Option<DailyCandles>, BrokerError> {
        self.clock.advance_ms(15_000);
        self.public
            .daily_candles(&Symbol::parse(symbol).unwrap(), from, FRIDAY)
    }

    fn trades_on(&self) -> impl Fn(Date) -> bool + '_ {
        |date| self.calendar.is_trading_date(date)
    }

    /// Checks candles like a warmer: none of a day whose official close is not past.
    fn judged(&self, candles: &[Candle], from: Date) -> Checked {
        let closed = self.calendar.official_close(FRIDAY).unwrap() <= self.clock.now();
        let to = if closed { FRIDAY } else { THURSDAY };
        check(
            candles,
            Window {
                from,
                to,
                untraded: false,
            },
            &self.trades_on(),
        )
    }

    fn control(&self, path: &str, body: &str) {
        let mut wire = Client::connect(&self.sim.addr().to_string());
        let length = body.len();
        let request = format!(
            "POST /sim/control/{path} HTTP/1.1\r\nHost: sim\r\nContent-Length: {length}\r\n\r\n\
             {body}"
        );
        let answer = wire.ask(request);
        assert_eq!(answer.status, 200, "{:?}", String::from_utf8_lossy(&answer.body));
    }

    fn fault(&self, route: &str, kind: &str) {
        let fault = format!(r#"{{"route":"{route}","fault":{{"kind":"{kind}","count":1}}}}"#);
        self.control("faults", &fault);
    }
}

#[test]
fn both_sources_bring_years_that_agree() {
    let bench = Bench::at(EVENING);
    for symbol in [INFY, "NSE:M&M", "NSE:BAJAJ-AUTO"] {
        let a = bench.broker_a(symbol, FROM).unwrap();
        assert!(a.simulated && a.unreadable.is_empty());
        assert_eq!(a.covers(), Some((FROM, FRIDAY)));
        let checked = bench.judged(&a.candles, FROM);
        assert!(checked.is_clean() && checked.leading == 0, "{symbol}: {checked:?}");
        assert!(checked.candles.len() >= 560, "{}", checked.candles.len());
        let public = bench.public(symbol, FROM).unwrap().unwrap();
        assert!(public.simulated);
        let other = bench.judged(&public.candles, FROM);
        assert!(other.faults.is_empty() && other.suspected.is_empty(), "{:?}", other.faults);
        let null = |date: &&Date| bench.calendar.is_trading_date(**date);
        let null: Vec<Date> = public.unreadable.iter().filter(null).copied().collect();
        assert_eq!(other.missing, null, "null bars");
        assert!(other.missing.len() < 6, "{:?}", other.missing);
        assert!(other.holiday_rows > 10, "{}", other.holiday_rows);
        for candle in &other.candles {
            assert!(a.candles.contains(candle), "{symbol} {candle:?}");
        }
    }
    let muhurat = date(2026, 11, 8);
    let a = bench.broker_a(INFY, muhurat).unwrap();
    assert_eq!(a.candles[0].date, muhurat, "a Sunday with a session");
}

#[test]
fn a_running_day_is_refused_until_its_official_close() {
    for (now, stays) in [
        ("2026-11-20T15:34:30+05:30", false),
        ("2026-11-20T15:35:00+05:30", true),
    ] {
        let bench = Bench::at(now);
        let a = bench.broker_a(INFY, FROM).unwrap();
        assert_eq!(a.candles.last().unwrap().date, FRIDAY);
        let checked = bench.judged(&a.candles, FROM);
        let unfinished = [HistoryFault::Unfinished { date: FRIDAY }];
        assert_eq!(checked.faults == unfinished, !stays, "{now}: {:?}", checked.faults);
        assert_eq!(checked.candles.last().unwrap().date == FRIDAY, stays);
        assert!(checked.missing.is_empty());
    }
}

#[test]
fn a_delayed_source_stamps_its_running_day_off_the_grid() {
    let bench = Bench::at("2026-11-20T12:00:00+05:30");
    let public = bench.public(INFY, FROM).unwrap().unwrap();
    assert_eq!(public.candles.last().unwrap().date, FRIDAY);
    let checked = bench.judged(&public.candles, FROM);
    assert_eq!(checked.faults, [HistoryFault::Unfinished { date: FRIDAY }]);
}

#[test]
fn candles_that_are_no_numbers_cost_their_day() {
    let bench = Bench::at(EVENING);
    bench.fault("broker_a.historical", "nan_candle");
    let a = bench.broker_a(INFY, FROM).unwrap();
    assert_eq!(a.unreadable.len(), 1);
    assert_eq!(bench.judged(&a.candles, FROM).missing, a.unreadable);
    bench.fault("public.chart", "nan_candle");
    let broken = bench.public(INFY, FROM).unwrap().unwrap().unreadable;
    let usual = bench.public(INFY, FROM).unwrap().unwrap().unreadable;
    assert_eq!(broken.len(), usual.len() + 1, "{broken:?} {usual:?}");
    bench.fault("broker_a.historical", "wrong_types");
    let error = bench.broker_a(INFY, FROM).unwrap_err();
    assert_eq!(error.kind, BrokerErrorKind::Malformed, "{error}");
    assert!(bench.broker_a(INFY, FROM).unwrap().unreadable.is_empty(), "gone again");
}

#[test]
fn half_a_history_does_not_pass_for_a_whole_one() {
    let bench = Bench::at(EVENING);
    bench.fault("broker_a.historical", "half_history");
    let a = bench.broker_a(INFY, FROM).unwrap();
    let checked = bench.judged(&a.candles, FROM);
    assert!(checked.missing.len() > 250 && !checked.is_clean(), "{}", checked.missing.len());
    bench.fault("public.chart", "half_history");
    let error = bench.public(INFY, FROM).unwrap_err();
    assert_eq!(error.kind, BrokerErrorKind::Malformed, "{error}");
}

#[test]
fn a_candle_that_is_late_is_missing_and_joins_when_it_comes() {
    let bench = Bench::at(EVENING);
    bench.fault("broker_a.historical", "late_candle");
    let stored = bench.judged(&bench.broker_a(INFY, FROM).unwrap().candles, FROM);
    assert_eq!(stored.missing, [FRIDAY]);
    bench.fault("public.chart", "late_candle");
    let public = bench.public(INFY, FROM).unwrap().unwrap();
    assert_eq!(public.covers().unwrap().1, THURSDAY);
    let from = date(2026, 11, 16);
    let fresh = bench.judged(&bench.broker_a(INFY, from).unwrap().candles, from);
    let merged = merge(&stored.candles, &fresh.candles, &bench.trades_on()).unwrap();
    assert_eq!((merged.append.len(), merged.append[0].date), (1, FRIDAY));
}

#[test]
fn a_split_is_seen_whether_the_vendor_has_rewritten_history_or_not() {
    let bench = Bench::at(EVENING);
    let stored = bench
        .judged(&bench.broker_a(INFY, FROM).unwrap().candles, FROM)
        .candles;
    bench.control("split", r#"{"symbol":"NSE:INFY","new":2,"old":1,"adjusted":false}"#);
    let raw = bench.judged(&bench.broker_a(INFY, FROM).unwrap().candles, FROM);
    assert_eq!(raw.suspected.len(), 1, "{:?}", raw.suspected);
    assert_eq!((raw.suspected[0].date, raw.suspected[0].ratio), (FRIDAY, Some((2, 1))));
    let upto = stored.len() - 1;
    let conflict = merge(&stored[..upto], &raw.candles[upto - 5..], &bench.trades_on());
    assert_eq!(conflict, Err(Conflict::Suspected(raw.suspected[0])));
    bench.control("split", r#"{"symbol":"NSE:INFY","new":2,"old":1}"#);
    let fresh = bench.judged(&bench.broker_a(INFY, FROM).unwrap().candles, FROM);
    assert!(fresh.is_clean(), "{:?}", fresh.suspected);
    let (old, new) = (stored[7], fresh.candles[7]);
    assert!((new.close_e4 * 2 - old.close_e4).abs() < 1_000, "{old:?} {new:?}");
    assert_eq!(new.volume, old.volume * 2);
    let conflict = merge(&stored[..upto], &fresh.candles[upto - 5..], &bench.trades_on());
    assert_eq!(
        conflict,
        Err(Conflict::Rewritten {
            date: stored[upto - 5].date
        })
    );
    let other = bench.judged(&bench.broker_a("NSE:TCS", FROM).unwrap().candles, FROM);
    assert!(other.is_clean());
}

#[test]
fn symbols_that_went_away() {
    let bench = Bench::at(EVENING);
    for gone in ["NSE:TATAMOTORS", "NSE:NOSUCH"] {
        assert_eq!(bench.public(gone, FROM).unwrap(), None, "{gone}");
    }
    let error = bench.broker_a.daily_candles(12, FROM, FRIDAY).unwrap_err();
    assert_eq!(error.kind, BrokerErrorKind::Refused, "{error}");
}

#[test]
fn the_simulated_universe_gives_signals_on_nearly_every_day() {
    let bench = Bench::at(EVENING);
    let mut by_date: BTreeMap<Date, usize> = BTreeMap::new();
    for symbol in Universe::embedded().symbols() {
        let read = bench.broker_a(symbol.as_str(), FROM).unwrap();
        let candles = bench.judged(&read.candles, FROM).candles;
        for candle in &candles {
            by_date.entry(candle.date).or_default();
        }
        Detector::default().scan(&Columns::of(&candles), |bar, _| {
            *by_date.entry(candles[bar].date).or_default() += 1;
        });
    }
    let counts: Vec<usize> = by_date.values().copied().collect();
    let total: usize = counts.iter().sum();
    let none = counts.iter().filter(|count| **count == 0).count();
    assert!(counts.len() >= 560);
    // The first few days have nothing to look back on.
    assert!(none < 5 && total / counts.len() > 40, "{none} days of {} without", counts.len());
}
