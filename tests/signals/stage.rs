//! Shared parts of the scenarios about signals: a small universe, evenings one after another, and
//! the simulator's own candles.

use std::cell::RefCell;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::support::{Answer, SNAPSHOT, Scene, Service, until};
use bhav::base::candle::PRICE_E4;
use bhav::base::{Candle, Clock, Symbol, clock};
use bhav::config::Config;
use bhav::http::Prepared;
use bhav::market::MarketCalendar;
use bhav::market::instruments::embedded_instruments;
use bhav::signals::backtest::{History, Universe};
use bhav::sim::SimSettings;
use bhav::store::{FILE_NAME, LedgerEntry, Store};
use jiff::civil::Date;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

pub const FIVE: [&str; 5] = [
    "NSE:INFY",
    "NSE:TCS",
    "NSE:RELIANCE",
    "NSE:HDFCBANK",
    "NSE:M&M",
];
pub const NINE: [&str; 9] = [
    "NSE:INFY",
    "NSE:TCS",
    "NSE:RELIANCE",
    "NSE:HDFCBANK",
    "NSE:M&M",
    "NSE:ITC",
    "NSE:SBIN",
    "NSE:WIPRO",
    "NSE:LT",
];
pub const SIGNALS: &str = "/api/signals";
pub const RECORD: &str = "/api/signals/record";
/// An operator's calendar with the hours of the evening session, which the embedded one does not
/// know.
const EVENING_SESSION: &str = "[[session]]\ndate = \"2026-11-08\"\nname = \"Muhurat\"\n\
                               [[session.part]]\ncontinuous = \"18:00-19:15\"\n";
/// Sessions of a whole history.
const SESSIONS: usize = 570;
/// Advance of the clock at each check: more than the interval between calls for candles, and so
/// little that no call seems slow.
const STEP_MS: i64 = 400;
/// The advance while candles are processed. That runs at the lowest priority, and its deadlines are
/// by this clock, so on a busy machine the clock must not run ahead.
const WORKING_STEP_MS: i64 = 50;
/// After this many checks without such work, the clock leaps by a longer pause.
const LOOKS_PER_LEAP: u32 = 15;
const LEAP_MS: i64 = 5 * 60_000;

/// A simulated exchange on a clock that the test advances.
pub struct Stage {
    pub scene: Scene,
    pub universe: Vec<&'static str>,
    /// Health of the last service started.
    health: RefCell<Arc<ArcSwapOption<Prepared>>>,
}

impl Stage {
    /// A stage in the evening of `date`.
    pub fn on(date: &str) -> Self {
        Self::with(date, &FIVE, SimSettings::default().seed)
    }

    pub fn with(date: &str, universe: &[&'static str], seed: u64) -> Self {
        let clock = Clock::manual(evening(date.parse().unwrap()));
        let settings = SimSettings {
            rate_limits: false,
            seed,
            ..SimSettings::default()
        };
        let (scene, health) = (Scene::by_hand(clock, settings), RefCell::default());
        Self {
            scene,
            universe: universe.to_vec(),
            health,
        }
    }

    /// Advances the clock to the evening of `date` and logs in at broker A, as each day needs.
    pub fn go_to(&self, date: Date) {
        let at = evening(date);
        let by_ms = at.as_millisecond() - self.scene.clock.now_ms();
        assert!(by_ms > 0, "back to {at}");
        self.scene.advance_ms(by_ms);
        let login = r#"{"access_token":"simtokena"}"#;
        assert_eq!(self.scene.control("POST", "broker_a/token", login).status, 200);
    }

    pub fn config(&self) -> Config {
        let path = self.scene.state.path().join("universe.txt");
        std::fs::write(&path, self.universe.join("\n")).unwrap();
        let calendar = self.scene.state.path().join("calendar.toml");
        std::fs::write(&calendar, EVENING_SESSION).unwrap();
        let mut config = self.scene.config();
        config.market.calendar_file = Some(calendar);
        config.market.universe_file = Some(path);
        config
    }

    pub fn start(&self) -> Service {
        self.started(&self.config())
    }

    pub fn started(&self, config: &Config) -> Service {
        let service = self.scene.start_with(config);
        self.health
            .replace(Arc::clone(&service.0.server().shared().service.state().health));
        service
    }

    /// Waits until the signals of `date` are published.
    pub fn await_signals(&self, service: &Service, date: &str) -> Answer {
        self.step_until("the signals of the date", || {
            let answer = service.get(SIGNALS);
            let there = answer.status == 200 && answer.json()["as_of"] == date;
            there.then_some(answer)
        })
    }

    /// Waits for a health document for which `holds` is true.
    pub fn health_where(&self, what: &str, service: &Service, holds: impl Fn(&Value) -> bool) {
        self.step_until(what, || holds(&service.health()).then_some(()));
    }

    /// Checks until the result exists, and advances the clock each time.
    pub fn step_until<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        self.step_before(i64::MAX, what, look)
    }

    /// Same as [`step_until`](Self::step_until), but the clock does not leap beyond `end_ms`.
    pub fn step_before<T>(
        &self,
        end_ms: i64,
        what: &str,
        mut look: impl FnMut() -> Option<T>,
    ) -> T {
        let mut quiet_looks = 0;
        until(what, || {
            let is_working = self.is_working();
            quiet_looks = if is_working { 0 } else { quiet_looks + 1 };
            let may_leap = self.scene.clock.now_ms() + LEAP_MS < end_ms;
            self.scene.advance_ms(match is_working {
                true => WORKING_STEP_MS,
                false if may_leap && quiet_looks % LOOKS_PER_LEAP == LOOKS_PER_LEAP - 1 => LEAP_MS,
                false => STEP_MS,
            });
            look()
        })
    }

    /// Whether candles are being checked or searched, by the last health document.
    fn is_working(&self) -> bool {
        let health = self.health.borrow().load_full();
        let Some(report) = health else { return false };
        let json: Value = sonic_rs::from_slice(report.body()).unwrap();
        let lanes = json["lanes"].as_array().unwrap();
        let signals = lanes.iter().find(|lane| lane["name"] == "signals").unwrap();
        [&signals["depth"], &signals["running"]]
            .iter()
            .any(|jobs| jobs.as_u64() != Some(0))
    }

    /// Starts a service, waits for the signals of `date`, and stops it.
    pub fn publish(&self, date: &str) -> Vec<LedgerEntry> {
        let service = self.start();
        self.await_signals(&service, date);
        service.stop();
        self.ledger()
    }

    pub fn store(&self) -> Store {
        let path = self.scene.state.path().join(FILE_NAME);
        Store::open_file(&path, 1, &self.scene.clock).unwrap()
    }

    pub fn ledger(&self) -> Vec<LedgerEntry> {
        self.store().ledger(0, 100_000).unwrap()
    }

    /// Number of calls for candles at broker A.
    pub fn calls(&self) -> i64 {
        self.scene.stats()["requests"]["broker_a.historical"]
            .as_i64()
            .unwrap_or(0)
    }

    pub fn split(&self, new: i64, adjusted: bool) {
        let body = format!(r#"{{"symbol":"NSE:INFY","new":{new},"old":1,"adjusted":{adjusted}}}"#);
        assert_eq!(self.scene.control("POST", "split", &body).status, 200);
    }

    /// The simulator's candles of `symbol` up to `to`.
    pub fn candles(&self, symbol: &str, to: Date) -> Vec<Candle> {
        let rows = embedded_instruments();
        let row = rows
            .iter()
            .find(|row| row.symbol.as_str() == symbol)
            .unwrap();
        let token = row.broker_a_token.unwrap();
        let from = first_session(to);
        let answer = self.scene.upstream().ask(format!(
            "GET /a/instruments/historical/{token}/day?from={from}&to={to} HTTP/1.1\r\n\
             Host: sim\r\nX-Kite-Version: 3\r\nAuthorization: token simkeya:simtokena\r\n\r\n"
        ));
        let json = answer.json();
        let candles = json["data"]["candles"].as_array().unwrap();
        candles.iter().map(candle).collect()
    }

    /// A complete evaluation of the simulator's candles.
    pub fn evaluated(&self, to: Date) -> (Vec<History>, Universe) {
        let history = |symbol: &&str| History {
            symbol: (*symbol).to_owned(),
            candles: self.candles(symbol, to),
        };
        let histories: Vec<History> = self.universe.iter().map(history).collect();
        let universe = Universe::examine(&histories);
        (histories, universe)
    }
}

fn evening(date: Date) -> jiff::Timestamp {
    clock::instant(date.at(20, 0, 0, 0))
}

fn first_session(to: Date) -> Date {
    let calendar = MarketCalendar::embedded();
    (1..SESSIONS).fold(to, |date, _| calendar.previous_trading_date(date).unwrap())
}

fn candle(row: &Value) -> Candle {
    let price = |at: usize| (row[at].as_f64().unwrap() * PRICE_E4 as f64).round() as i64;
    Candle {
        date: row[0].as_str().unwrap()[..10].parse().unwrap(),
        open_e4: price(1),
        high_e4: price(2),
        low_e4: price(3),
        close_e4: price(4),
        volume: row[5].as_i64().unwrap(),
    }
}

/// Symbol, pattern, direction, confidence, samples, hit rate and base rate of each row.
pub fn rows(signals: &Value) -> Vec<String> {
    let rows = signals.as_array().unwrap().iter();
    let of = |row: &Value, name: &str| row[name].to_string();
    rows.map(|row| {
        let names = [
            "symbol",
            "pattern",
            "direction",
            "confidence",
            "samples",
            "hit_rate",
        ];
        let cells = names.iter().chain(&["base_rate"]).map(|name| of(row, name));
        cells.collect::<Vec<_>>().join(" ")
    })
    .collect()
}

/// The same rows, from the test's own evaluation.
pub fn expected_rows(universe: &Universe, date: Date) -> Vec<String> {
    let at = universe.dates().binary_search(&date).unwrap();
    let rounded = |share: f64| {
        let four = (share * 10_000.0).round() / 10_000.0;
        sonic_rs::to_string(&four).unwrap()
    };
    let signals = universe.signals_on(at).into_iter();
    signals
        .map(|signal| {
            let weight = signal.weight;
            format!(
                "\"{}\" \"{}\" \"{}\" {} {} {} {}",
                signal.symbol,
                signal.key.name(),
                signal.key.direction().as_str(),
                rounded(weight.confidence),
                weight.dates,
                weight.hit_rate().map_or("null".into(), rounded),
                rounded(weight.base_rate),
            )
        })
        .collect()
}

/// The snapshot's signals.
pub fn shown(service: &Service) -> Value {
    service.get(SNAPSHOT).json()["signals"].clone()
}

pub fn symbol(name: &str) -> Symbol {
    Symbol::parse(name).unwrap()
}

pub fn calendar() -> Arc<MarketCalendar> {
    Arc::new(MarketCalendar::embedded())
}
