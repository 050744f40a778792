//! The service in this process, and the simulated world in which it runs: a simulator, a clock and
//! a state directory.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bhav::app::{App, StartError};
use bhav::base::{Clock, ManualClock};
use bhav::config::Config;
use bhav::market::{MarketCalendar, Origin};
use bhav::sim::{Sessions, Sim, SimSettings};
use crossbeam_channel::RecvTimeoutError;
use rust_decimal::Decimal;
use sonic_rs::{JsonValueTrait, Value};

use super::client::{Answer, Client};
use super::wait::until;
use crate::market::figures::number;

/// A Friday in the middle of trading.
pub const TRADING: &str = "2026-11-20T11:00:00+05:30";
pub const SNAPSHOT: &str = "/api/index/snapshot";
pub const PRICES: &str = "/api/portfolio/live-prices?symbols=";
/// Two shares instead of the fifty whose candles each start would fetch.
pub const UNIVERSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/universe.txt");
/// Time after which a service that has not stopped must be waiting for a deadline.
const STOP_AFTER: Duration = Duration::from_secs(5);
/// From then on a manual clock advances by this step until the service has stopped.
const STOP_STEP_MS: i64 = 100;
/// Step of a manual clock while a test waits for what the service does by its clock.
const PASSING_STEP_MS: i64 = 250;
/// Interval of these steps.
const STEP: Duration = Duration::from_millis(20);

/// A simulated outside world, with a state directory for an application.
pub struct Scene {
    pub sim: Sim,
    pub clock: Clock,
    /// `None` if the clock runs by itself.
    by_hand: Option<ManualClock>,
    pub state: tempfile::TempDir,
}

impl Scene {
    pub fn at(now: &str) -> Self {
        Self::with(
            now,
            SimSettings {
                rate_limits: false,
                ..SimSettings::default()
            },
        )
    }

    pub fn with(now: &str, settings: SimSettings) -> Self {
        Self::on(Clock::starting_at(now.parse().unwrap()), settings)
    }

    pub fn on(clock: Clock, settings: SimSettings) -> Self {
        Self::at_hours_of(clock, settings, MarketCalendar::embedded())
    }

    /// Same as [`on`](Self::on), on an exchange that keeps the hours of `calendar`.
    fn at_hours_of(clock: Clock, settings: SimSettings, calendar: MarketCalendar) -> Self {
        let calendar = Arc::new(calendar);
        let hours = Arc::clone(&calendar);
        let sessions = Sessions::new(move |date| calendar.is_trading_date(date)).at_hours_of(hours);
        let sim = bhav::sim::start(
            SimSettings {
                sessions,
                ..settings
            },
            clock.clone(),
        )
        .unwrap();
        Self {
            sim,
            clock,
            by_hand: None,
            state: tempfile::tempdir().unwrap(),
        }
    }

    /// A scene in the middle of trading, and a service in it.
    pub fn trading() -> (Self, Service) {
        Self::trading_with(|_| {})
    }

    /// Same as [`trading`](Self::trading), with other settings.
    pub fn trading_with(change: impl FnOnce(&mut Config)) -> (Self, Service) {
        Self::trading_on(|scene| {
            let mut config = scene.config();
            change(&mut config);
            config
        })
    }

    /// Same as [`trading`](Self::trading), with these settings.
    pub fn trading_on(config: impl FnOnce(&Self) -> Config) -> (Self, Service) {
        let scene = Self::at(TRADING);
        let service = scene.start_with(&config(&scene));
        (scene, service)
    }

    /// A scene on a clock that stands still until it is [advanced](Self::advance_ms).
    pub fn by_hand(clock: ManualClock, settings: SimSettings) -> Self {
        let scene = Self::on(clock.clone(), settings);
        Self {
            by_hand: Some(clock),
            ..scene
        }
    }

    /// Same as [`by_hand`](Self::by_hand), on an exchange whose hours an operator's file with this
    /// text says.
    pub fn by_hand_at_hours(
        clock: ManualClock,
        settings: SimSettings,
        calendar: Option<&str>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("calendar.toml");
        std::fs::write(&file, calendar.unwrap_or_default()).unwrap();
        let calendar = MarketCalendar::load(Some(&file)).unwrap();
        let scene = Self::at_hours_of(clock.clone(), settings, calendar);
        Self {
            by_hand: Some(clock),
            ..scene
        }
    }

    /// Same as [`at`](Self::at), [by hand](Self::by_hand).
    pub fn still_at(now: &str) -> Self {
        let settings = SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        };
        Self::by_hand(Clock::manual(now.parse().unwrap()), settings)
    }

    /// Runs `work`, which waits for what the service does by its clock, while the clock of a scene
    /// [by hand](Self::by_hand) advances. One that runs by itself is left alone.
    pub fn while_time_passes<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.by_hand {
            Some(clock) => advancing(clock.share(), STEP, PASSING_STEP_MS, work),
            None => work(),
        }
    }

    /// Advances the clock of a scene [by hand](Self::by_hand).
    #[track_caller]
    pub fn advance_ms(&self, by_ms: i64) {
        self.by_hand
            .as_ref()
            .expect("the clock of this scene runs by itself")
            .advance_ms(by_ms);
    }

    /// Settings with both feeds at the simulator, short intervals, and a token that it accepts.
    pub fn config(&self) -> Config {
        let mut config = Config::default();
        config.http.listen = "127.0.0.1:0".into();
        config.admin.listen = "off".into();
        // A test that ends with an open connection need not wait for it.
        config.http.drain_timeout_ms = 100;
        config.state_dir = self.state.path().into();
        config.market.universe_file = Some(UNIVERSE.into());
        // Tests count the calls for the candles of that list.
        config.market.candles_beyond_max = 0;
        config.broker_a.url = self.sim.broker_a_url();
        config.broker_a.api_key = Some("simkeya".into());
        config.broker_a.access_token = Some("simtokena".into());
        config.broker_a.quote_interval_ms = 250;
        config.broker_a.lane_threads = 2;
        config.public.url = self.sim.public_url();
        config.public.batch_interval_ms = 250;
        config.upstream.breaker_open_ms = 200;
        config.upstream.breaker_open_max_ms = 400;
        // The default number of passes; the memory takes the time.
        config.auth.argon2_memory_kib = 1_024;
        // Tests register many users from one address. Tests of the limit set it.
        config.auth.login_attempts_per_minute = 0;
        config.auth.registration_attempts_per_minute = 0;
        config.upstream.sync_attempts_per_minute = 0;
        config.store.writes_per_user_per_minute = 0;
        config.store.import_attempts_per_minute = 0;
        #[cfg(feature = "engines")]
        {
            config.store.url = store_url(self.state.path());
            let key = "a key that all the nodes know, as they must";
            config.auth.jwt_secret = config.store.url.as_ref().map(|_| key.into());
        }
        config
    }

    /// Same as [`config`](Self::config), with the operator's listener.
    pub fn watched(&self) -> Config {
        let mut config = self.config();
        config.admin.listen = "127.0.0.1:0".into();
        config
    }

    /// The service knows both brokers' apps; nobody has logged in.
    pub fn config_without_tokens(&self) -> Config {
        let mut config = self.config();
        config.broker_a.access_token = None;
        config.broker_a.api_secret = Some("simsecreta".into());
        config.broker_b.url = self.sim.broker_b_url();
        config.broker_b.api_key = Some("sim+key=b&1".into());
        config.broker_b.api_secret = Some("simsecretb".into());
        config
    }

    /// The same settings as flags of a program with its state in `state`.
    pub fn flags(&self, state: &Path) -> [String; 4] {
        [
            format!("--state-dir={}", state.display()),
            format!("--brokera-url={}", self.sim.broker_a_url()),
            format!("--public-url={}", self.sim.public_url()),
            format!("--now={}", self.clock.now()),
        ]
    }

    /// A one-time code of broker A's login page.
    pub fn request_token(&self) -> String {
        let json = self.control("POST", "broker_a/request_token", "").json();
        json["request_token"].as_str().unwrap().to_owned()
    }

    /// A one-time code of broker B's login page.
    pub fn api_session(&self) -> String {
        let json = self.control("POST", "broker_b/api_session", "").json();
        json["api_session"].as_str().unwrap().to_owned()
    }

    pub fn start(&self) -> Service {
        self.start_with(&self.config())
    }

    pub fn start_with(&self, config: &Config) -> Service {
        let mut service = Self::started(config, &self.clock);
        service.1 = self.by_hand.as_ref().map(ManualClock::share);
        service
    }

    /// Starts a service on a machine whose clock is not the world's.
    pub fn start_by(&self, machine: &Clock) -> Service {
        Self::started(&self.config(), machine)
    }

    /// Starts a service with these settings, on a machine with this clock.
    pub fn started(config: &Config, clock: &Clock) -> Service {
        // A program that another test is starting holds this process's locks for a moment.
        until("the state directory", || match App::start(config, clock) {
            Err(StartError::StateInUse { .. }) => None,
            started => Some(Service(Running(Some(started.unwrap())), None)),
        })
    }

    /// Sets a fault: `route` in the simulator's names, `fault` as JSON.
    pub fn fault(&self, route: &str, fault: &str) {
        let body = format!(r#"{{"route":"{route}","fault":{fault}}}"#);
        assert_eq!(self.control("POST", "faults", &body).status, 200);
    }

    /// From now on every upstream resets every connection.
    pub fn refuse_all(&self) {
        self.fault("*", r#"{"kind":"refuse"}"#);
    }

    /// A connection to the simulator itself.
    pub fn upstream(&self) -> Client {
        Client::connect(&self.sim.addr().to_string())
    }

    pub fn control(&self, method: &str, path: &str, body: &str) -> Answer {
        let length = body.len();
        let text = format!(
            "{method} /sim/control/{path} HTTP/1.1\r\nHost: sim\r\nContent-Length: {length}\r\n\
             \r\n{body}"
        );
        self.upstream().ask(text)
    }

    /// Halts the trading of a share at the simulated exchange, or lets it go on.
    pub fn halt(&self, symbol: &str, halted: bool) {
        let order = format!(r#"{{"symbol":"{symbol}","halted":{halted}}}"#);
        assert_eq!(self.control("POST", "trading", &order).status, 200);
    }

    pub fn stats(&self) -> Value {
        self.control("GET", "stats", "").json()
    }

    /// Broker A's current last price and previous close of `symbol`.
    pub fn said(&self, symbol: &str) -> (Decimal, Decimal) {
        let [last_price, close] = self.figures(symbol, ["last_price", "close"]);
        (last_price, close)
    }

    /// These members of broker A's current quote of `symbol`.
    pub fn figures<const N: usize>(&self, symbol: &str, members: [&str; N]) -> [Decimal; N] {
        let query = symbol.replace(' ', "%20").replace('&', "%26");
        let answer = self.upstream().ask(format!(
            "GET /a/quote?i={query} HTTP/1.1\r\nHost: sim\r\nX-Kite-Version: 3\r\n\
             Authorization: token simkeya:simtokena\r\n\r\n"
        ));
        members.map(|member| number(answer.text(), member))
    }
}

/// Runs `work`. If it takes longer than `after`, the clock advances by `step_ms` again and again.
fn advancing<T>(clock: ManualClock, after: Duration, step_ms: i64, work: impl FnOnce() -> T) -> T {
    let (running, ended) = crossbeam_channel::bounded::<()>(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut wait = after;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                clock.advance_ms(step_ms);
                wait = STEP;
            }
        });
        // Dropped when the work has ended or has failed.
        let _running = running;
        work()
    })
}

/// A running application, and its clock if that moves only by hand. Dropping it stops it, so a
/// struct that holds a scene too names the service first.
pub struct Service(pub Running, Option<ManualClock>);

/// `None` once it is stopped.
pub struct Running(Option<App>);

impl Deref for Running {
    type Target = App;

    fn deref(&self) -> &App {
        self.0.as_ref().expect("a running service")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

impl Service {
    /// A service that was started by other means, on a clock that runs.
    #[cfg(feature = "engines")]
    pub fn of(app: App) -> Self {
        Self(Running(Some(app)), None)
    }

    /// Stops the service, and returns the number of connections cut off.
    pub fn stop(mut self) -> usize {
        self.end()
    }

    /// On a clock that stands still no deadline would pass, so it is advanced in the end.
    fn end(&mut self) -> usize {
        match (self.0.0.take(), self.1.take()) {
            (Some(app), Some(clock)) => advancing(clock, STOP_AFTER, STOP_STEP_MS, || app.stop()),
            (Some(app), None) => app.stop(),
            (None, _) => 0,
        }
    }

    /// A new connection. The server's time for deadlines lags up to a tick behind the clock, and
    /// more on a manual clock. A deadline set in between would pass at the next tick, so this waits
    /// until the server has caught up.
    pub fn client(&self) -> Client {
        const TICK_MS: u64 = 50;
        let shared = self.0.server().shared();
        let clock = &shared.service.state().clock;
        until("the server's time", || shared.slots.now_ms() + TICK_MS > clock.monotonic_ms());
        Client::connect(self.0.address())
    }

    pub fn get(&self, target: &str) -> Answer {
        self.client().get(target)
    }

    /// A connection to the operator's listener of a [`Scene::watched`].
    pub fn admin(&self) -> Client {
        Client::connect(self.0.admin().unwrap().address())
    }

    pub fn prices(&self, symbols: &str) -> Answer {
        self.get(&format!("{PRICES}{symbols}"))
    }

    pub fn post(&self, target: &str, headers: &str, body: &str) -> Answer {
        self.client().send_json("POST", target, headers, body)
    }

    /// A new user's token.
    pub fn register(&self, email: &str, password: &str) -> String {
        self.account("register", email, password)
            .with_status(201)
            .field("access_token")
    }

    /// Registers or logs in. See [`Client::account`].
    pub fn account(&self, action: &str, email: &str, password: &str) -> Answer {
        self.client().account(action, email, password)
    }

    pub fn health(&self) -> Value {
        self.get("/api/health").json()
    }

    /// The first snapshot for which `holds` is true.
    pub fn snapshot_where(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Answer {
        let mut client = self.client();
        until(what, || {
            Some(client.get(SNAPSHOT)).filter(|got| got.status == 200 && holds(&got.json()))
        })
    }

    pub fn fresh_snapshot(&self) -> Answer {
        self.snapshot_where("a fresh snapshot", |json| json["market"]["stale"] == false)
    }

    /// Waits until broker A's own list of instruments is in force.
    pub fn await_instruments(&self) {
        until("broker A's instruments", || self.has_instruments());
    }

    /// Whether broker A's list is in force. Health shows that only once a second.
    pub fn has_instruments(&self) -> bool {
        let instruments = &self.0.server().shared().service.state().instruments;
        instruments.load().origin() == Origin::BrokerA
    }
}

/// The variable that names the engine of all services of a run: `postgres`, or a file.
#[cfg(feature = "engines")]
const STORE: &str = "BHAV_TEST_STORE";

/// The URL for the services of a state directory, if the run uses a server.
#[cfg(feature = "engines")]
fn store_url(state: &Path) -> Option<bhav::store::settings::StoreUrl> {
    use std::collections::HashMap;
    use std::path::PathBuf;
    use std::sync::{LazyLock, Mutex};
    static ROLES: LazyLock<Mutex<HashMap<PathBuf, String>>> = LazyLock::new(Mutex::default);

    std::env::var(STORE)
        .ok()
        .filter(|engine| engine == "postgres")?;
    let server = super::postgres::server().expect("a server was asked for");
    let mut roles = ROLES.lock().unwrap();
    let role = roles
        .entry(state.to_owned())
        .or_insert_with(|| server.fresh_role());
    Some(bhav::store::settings::StoreUrl::parse(&server.url(role)).unwrap())
}
