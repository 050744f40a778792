//! What the scenarios share: a simulator with a clock and a state directory, a small HTTP client,
//! and waiting for a condition with an end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use bhav::app::{App, StartError};
use bhav::base::{Clock, ManualClock};
use bhav::config::Config;
use bhav::market::{MarketCalendar, Origin};
use bhav::rt::coroutines::Parker;
use bhav::sim::{Sessions, Sim, SimSettings};
use rust_decimal::Decimal;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::contract::openapi::expect_listed;
pub use crate::market::figures::{number, percent, raw, shortest};

/// A Friday in the middle of trading.
pub const TRADING: &str = "2026-11-20T11:00:00+05:30";
pub const SNAPSHOT: &str = "/api/index/snapshot";
pub const PRICES: &str = "/api/portfolio/live-prices?symbols=";
/// A few shares in place of the fifty whose candles each start would fetch.
pub const UNIVERSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/universe.txt");
/// Far more than anything takes; only a failure lasts this long.
const PATIENCE_MS: u64 = 60_000;
/// Between two looks at a condition.
const LOOK_EVERY_MS: u64 = 20;

/// A simulated outside world and what an application needs to live in it.
pub struct Scene {
    pub sim: Sim,
    pub clock: Clock,
    /// `None` where the clock runs by itself.
    by_hand: Option<ManualClock>,
    pub state: tempfile::TempDir,
}

impl Scene {
    pub fn at(now: &str) -> Self {
        Self::with(now, SimSettings { rate_limits: false, ..SimSettings::default() })
    }

    pub fn with(now: &str, settings: SimSettings) -> Self {
        Self::on(Clock::starting_at(now.parse().unwrap()), settings)
    }

    pub fn on(clock: Clock, settings: SimSettings) -> Self {
        let calendar = MarketCalendar::load(None).unwrap();
        let sessions = Sessions::new(move |date| calendar.is_trading_date(date));
        let sim = bhav::sim::start(SimSettings { sessions, ..settings }, clock.clone()).unwrap();
        Self { sim, clock, by_hand: None, state: tempfile::tempdir().unwrap() }
    }

    /// On a clock that stands still until it is [advanced](Self::advance_ms).
    pub fn by_hand(clock: ManualClock, settings: SimSettings) -> Self {
        let scene = Self::on(clock.clone(), settings);
        Self { by_hand: Some(clock), ..scene }
    }

    /// Moves the clock of a scene [by hand](Self::by_hand).
    #[track_caller]
    pub fn advance_ms(&self, by_ms: i64) {
        self.by_hand.as_ref().expect("the clock of this scene runs by itself").advance_ms(by_ms);
    }

    /// Settings with both feeds at the simulator, quick rounds, and a token that it accepts.
    pub fn config(&self) -> Config {
        let mut config = Config::default();
        config.http.listen = "127.0.0.1:0".into();
        config.admin.listen = "off".into();
        // A test that ends with a connection open need not wait for what it might still bring.
        config.http.drain_timeout_ms = 100;
        config.state_dir = self.state.path().into();
        config.market.universe_file = Some(UNIVERSE.into());
        config.broker_a.url = self.sim.broker_a_url();
        config.broker_a.api_key = Some("simkeya".into());
        config.broker_a.access_token = Some("simtokena".into());
        config.broker_a.quote_interval_ms = 250;
        config.broker_a.lane_threads = 2;
        config.public.url = self.sim.public_url();
        config.public.batch_interval_ms = 250;
        config.upstream.breaker_open_ms = 200;
        config.upstream.breaker_open_max_ms = 400;
        // Tests register many users from one address; those of the limit set it.
        config.auth.login_attempts_per_minute = 0;
        config.auth.registration_attempts_per_minute = 0;
        config.upstream.sync_attempts_per_minute = 0;
        config.store.writes_per_user_per_minute = 0;
        config
    }

    /// The same with the operator's listener.
    pub fn watched(&self) -> Config {
        let mut config = self.config();
        config.admin.listen = "127.0.0.1:0".into();
        config
    }

    /// Both brokers' apps are known to the service; nobody has logged in.
    pub fn config_without_tokens(&self) -> Config {
        let mut config = self.config();
        config.broker_a.access_token = None;
        config.broker_a.api_secret = Some("simsecreta".into());
        config.broker_b.url = self.sim.broker_b_url();
        config.broker_b.api_key = Some("sim+key=b&1".into());
        config.broker_b.api_secret = Some("simsecretb".into());
        config
    }

    /// The same world as flags of a program that keeps its state in `state`.
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

    /// The same of broker B's.
    pub fn api_session(&self) -> String {
        let json = self.control("POST", "broker_b/api_session", "").json();
        json["api_session"].as_str().unwrap().to_owned()
    }

    pub fn start(&self) -> Service {
        self.start_with(&self.config())
    }

    pub fn start_with(&self, config: &Config) -> Service {
        Self::started(config, &self.clock)
    }

    /// On a machine whose clock is not the world's.
    pub fn start_by(&self, machine: &Clock) -> Service {
        Self::started(&self.config(), machine)
    }

    fn started(config: &Config, clock: &Clock) -> Service {
        // A program that another test starts just now holds this process's locks for a moment.
        until("the state directory", || match App::start(config, clock) {
            Err(StartError::StateInUse { .. }) => None,
            started => Some(Service(started.unwrap())),
        })
    }

    /// `route` as the simulator names it, `fault` as JSON.
    pub fn fault(&self, route: &str, fault: &str) {
        let body = format!(r#"{{"route":"{route}","fault":{fault}}}"#);
        assert_eq!(self.control("POST", "faults", &body).status, 200);
    }

    /// Every upstream resets every connection from now on.
    pub fn refuse_all(&self) {
        self.fault("*", r#"{"kind":"refuse"}"#);
    }

    pub fn control(&self, method: &str, path: &str, body: &str) -> Answer {
        let length = body.len();
        let text = format!(
            "{method} /sim/control/{path} HTTP/1.1\r\nHost: sim\r\nContent-Length: {length}\r\n\
             \r\n{body}"
        );
        Client::connect(&self.sim.addr().to_string()).exchange(&text, true)
    }

    pub fn stats(&self) -> Value {
        self.control("GET", "stats", "").json()
    }

    /// What broker A itself says about `symbol` now: last price and previous close.
    pub fn said(&self, symbol: &str) -> (Decimal, Decimal) {
        let query = symbol.replace(' ', "%20").replace('&', "%26");
        let answer = Client::connect(&self.sim.addr().to_string()).exchange(
            &format!(
                "GET /a/quote?i={query} HTTP/1.1\r\nHost: sim\r\nX-Kite-Version: 3\r\n\
                 Authorization: token simkeya:simtokena\r\n\r\n"
            ),
            true,
        );
        let text = answer.text();
        (number(text, "last_price"), number(text, "close"))
    }
}

/// A running application.
pub struct Service(pub App);

impl Service {
    pub fn client(&self) -> Client {
        Client::connect(self.0.address())
    }

    pub fn get(&self, target: &str) -> Answer {
        self.client().get(target)
    }

    /// A connection to the operator's listener, for a [`Scene::watched`].
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
        let body = format!(r#"{{"email":"{email}","password":"{password}"}}"#);
        let answer = self.post("/api/auth/register", "", &body);
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["access_token"].as_str().unwrap().to_owned()
    }

    pub fn health(&self) -> Value {
        self.get("/api/health").json()
    }

    /// The first snapshot of which `holds` is true.
    pub fn snapshot_where(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Answer {
        let mut client = self.client();
        until(what, || {
            Some(client.get(SNAPSHOT)).filter(|got| got.status == 200 && holds(&got.json()))
        })
    }

    pub fn fresh_snapshot(&self) -> Answer {
        self.snapshot_where("a fresh snapshot", |json| json["market"]["stale"] == false)
    }

    /// Until broker A's own list of instruments is in force.
    pub fn await_instruments(&self) {
        // Health would tell too, but only once a second.
        let instruments = &self.0.server().shared().service.state().instruments;
        until("broker A's instruments", || {
            (instruments.load().origin() == Origin::BrokerA).then_some(())
        });
    }
}

/// Looks again and again until there is something.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let (clock, parker) = (Clock::system(), Parker::current());
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(clock.monotonic_ms() < PATIENCE_MS, "never came: {what}");
        parker.park(LOOK_EVERY_MS);
    }
}

/// One keep-alive connection.
pub struct Client(BufReader<TcpStream>);

impl Client {
    pub fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS))).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn get(&mut self, target: &str) -> Answer {
        self.send("GET", target, "")
    }

    /// `headers` are whole lines.
    #[track_caller]
    pub fn send(&mut self, method: &str, target: &str, headers: &str) -> Answer {
        let text = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        let answer = self.exchange(&text, method != "HEAD");
        expect_listed(method, target, answer.status, &answer.body);
        answer
    }

    /// With a JSON body; `headers` are whole lines.
    #[track_caller]
    pub fn send_json(&mut self, method: &str, target: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        let text = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        );
        let answer = self.exchange(&text, true);
        expect_listed(method, target, answer.status, &answer.body);
        answer
    }

    pub fn exchange(&mut self, request: &str, body: bool) -> Answer {
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        self.answer(body).expect("the connection ended before an answer")
    }

    /// On a connection that was made otherwise.
    pub fn over(stream: TcpStream) -> Self {
        Self(BufReader::new(stream))
    }

    /// The next answer; `None` where the connection ends before its first byte.
    pub fn answer(&mut self, body: bool) -> Option<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).unwrap() == 0 {
                assert_eq!(head, "", "cut off");
                return None;
            }
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: Vec::new() };
        let length = answer.header("content-length").map_or(0, |text| text.parse().unwrap());
        if body && !matches!(status, 204 | 304) {
            answer.body = vec![0; length];
            self.0.read_exact(&mut answer.body).unwrap();
        }
        Some(answer)
    }
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers(name).into_iter().next()
    }

    pub fn headers(&self, name: &str) -> Vec<&str> {
        let pairs = self.head.lines().filter_map(|line| line.split_once(": "));
        pairs.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        sonic_rs::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.head, self.text()))
    }

    /// The symbols of its quotes, in order.
    pub fn quoted(&self) -> Vec<String> {
        let json = self.json();
        let quotes = json["quotes"].as_array().unwrap();
        quotes.iter().map(|quote| quote["symbol"].as_str().unwrap().to_owned()).collect()
    }

    pub fn unavailable(&self) -> Vec<String> {
        let json = self.json();
        let symbols = json["unavailable"].as_array().unwrap();
        symbols.iter().map(|symbol| symbol.as_str().unwrap().to_owned()).collect()
    }

    /// Checks that it is a problem document with this status and code.
    #[track_caller]
    pub fn expect_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}{}", self.head, self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert!(self.header("x-request-id").is_some_and(|id| !id.is_empty()));
        let json = self.json();
        assert_eq!(json["type"], "about:blank");
        assert_eq!(json["status"].as_u64(), Some(u64::from(status)));
        assert_eq!(json["code"], code);
        assert!(json["title"].is_str() && json["detail"].is_str());
        json
    }
}

/// The header line that carries a token.
pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// The names of an object's members, in order.
pub fn members(object: &Value) -> Vec<String> {
    object.as_object().unwrap().iter().map(|(name, _)| name.to_owned()).collect()
}
