//! A simulator and the service on one clock, on ports of their own, and what a client sees of them.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bhav::app::App;
use bhav::base::{Clock, ManualClock};
use bhav::config::Config;
use bhav::sim::{self, Sim, SimSettings};
use jiff::Timestamp;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::support::service::UNIVERSE;

/// A Friday in the middle of trading.
const OPEN: &str = "2026-11-20T11:00:00+05:30";

/// Longest wait for anything; several times what it takes on a busy machine.
const DEADLINE_MS: u64 = 20_000;

/// Between two looks.
const LOOK_MS: u64 = 5;

/// What broker A may be behind while it is shown as fresh: its limit under these settings is 1.6 s,
/// its times have whole seconds, and a busy machine takes some time.
const FRESH_MS_MAX: i64 = 4_500;

/// What the public provider is behind broker A: it passes broker A's last prices that much later.
const PUBLIC_DELAY_S: i64 = 1;

/// Two shares that are cached before anything goes wrong.
pub const CACHED: &str = "NSE:INFY,NSE:SBIN";

/// The service in its simulated world.
pub struct Stage {
    /// `None` where the clock runs by itself.
    by_hand: Option<Hand>,
    clock: Clock,
    watch: Clock,
    /// Broker A's time stands still on purpose.
    pub mute: bool,
    sim: Sim,
    app: App,
    _state_dir: tempfile::TempDir,
}

/// A clock that stands still but for what the test moves it.
struct Hand {
    clock: ManualClock,
    /// How far it moves at each look.
    step_ms: i64,
}

/// The `market` object of the snapshot.
#[derive(Debug, PartialEq, Eq)]
pub struct Market {
    pub source: String,
    pub stale: bool,
}

impl Stage {
    /// On a clock that runs.
    pub fn running(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::set(&Clock::starting_at(OPEN.parse().unwrap()), None, adjust)
    }

    /// On a clock that moves by `step_ms` at each look.
    pub fn stepping(step_ms: i64) -> Self {
        let clock = Clock::manual(OPEN.parse().unwrap());
        Self::set(&clock.clone(), Some(Hand { clock, step_ms }), |config| {
            // The clock stands while a request waits.
            config.cache.miss_wait_ms = 50;
        })
    }

    fn set(clock: &Clock, by_hand: Option<Hand>, adjust: impl FnOnce(&mut Config)) -> Self {
        let settings = SimSettings {
            rate_limits: false,
            public_delay_s: PUBLIC_DELAY_S,
            ..SimSettings::default()
        };
        let broker_a = settings.broker_a.clone();
        let sim = sim::start(settings, clock.clone()).unwrap();
        let state_dir = tempfile::tempdir().unwrap();
        let mut config = Config { state_dir: state_dir.path().to_owned(), ..Config::default() };
        config.market.universe_file = Some(UNIVERSE.into());
        config.http.listen = "127.0.0.1:0".into();
        config.admin.listen = "off".into();
        config.broker_a.url = sim.broker_a_url();
        config.broker_a.api_key = Some(broker_a.api_key.into());
        config.broker_a.api_secret = Some(broker_a.api_secret.into());
        config.broker_a.access_token = Some(broker_a.access_token.into());
        config.broker_a.quote_interval_ms = 50;
        config.public.url = sim.public_url();
        config.public.batch_interval_ms = 100;
        config.upstream.connect_timeout_ms = 300;
        config.upstream.read_timeout_ms = 300;
        config.upstream.total_timeout_ms = 400;
        config.upstream.breaker_open_ms = 100;
        config.upstream.breaker_open_max_ms = 300;
        adjust(&mut config);
        let app = App::start(&config, clock).unwrap();
        let watch = Clock::system();
        let stage = Self {
            by_hand,
            clock: clock.clone(),
            watch,
            mute: false,
            sim,
            app,
            _state_dir: state_dir,
        };
        stage.await_broker_a();
        stage
    }

    /// Broker A serves the snapshot and the cached shares, and nothing is stale.
    pub fn await_broker_a(&self) {
        self.until("broker A serves", || {
            let fresh = |quote: &Market| quote.source == "broker_a" && !quote.stale;
            let there = self.get("/api/index/snapshot").0 == 200;
            if !there || self.live_prices(CACHED).0 != 200 || !fresh(&self.market()) {
                return false;
            }
            let quotes = self.quotes(CACHED);
            quotes.len() == 2 && quotes.iter().all(fresh)
        });
    }

    /// Looks until `condition` holds.
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let deadline_ms = self.watch.monotonic_ms() + DEADLINE_MS;
        while !condition() {
            if self.watch.monotonic_ms() > deadline_ms {
                let health = self.get("/api/health").1;
                panic!("not within {DEADLINE_MS} ms: {what}; {health:?} {:?}", self.market());
            }
            self.look_again();
        }
    }

    /// Lets a moment pass.
    pub fn look_again(&self) {
        std::thread::park_timeout(Duration::from_millis(LOOK_MS));
        if let Some(hand) = &self.by_hand {
            hand.clock.advance_ms(hand.step_ms);
        }
    }

    /// Moves the clock of a [stepping](Self::stepping) stage.
    #[track_caller]
    pub fn advance_ms(&self, by_ms: i64) {
        let hand = self.by_hand.as_ref().expect("the clock of this stage runs by itself");
        hand.clock.advance_ms(by_ms);
    }

    /// Switches a fault on for a route or a group of them.
    pub fn break_with(&self, route: &str, fault: &str) {
        let body = format!(r#"{{"route":"{route}","fault":{fault}}}"#);
        let control = self.sim.addr().to_string();
        let (status, answer) = send(&control, "POST", "/sim/control/faults", &body).unwrap();
        assert_eq!(status, 200, "{answer:?}");
    }

    /// Requests that reached the simulator at routes called `prefix…`.
    pub fn asked(&self, prefix: &str) -> i64 {
        let control = self.sim.addr().to_string();
        let (_, stats) = send(&control, "GET", "/sim/control/stats", "").unwrap();
        let requests = stats["requests"].as_object().unwrap();
        let counted = requests.iter().filter(|(route, _)| route.starts_with(prefix));
        counted.map(|(_, count)| count.as_i64().unwrap()).sum()
    }

    /// Clears all faults.
    pub fn mend(&self) {
        let control = self.sim.addr().to_string();
        assert_eq!(send(&control, "DELETE", "/sim/control/faults", "").unwrap().0, 200);
    }

    /// The snapshot's source and staleness. It has to be there, and honest.
    pub fn market(&self) -> Market {
        let (status, answer) = self.get("/api/index/snapshot");
        assert_eq!(status, 200, "{answer:?}");
        let market = &answer["market"];
        assert!(answer["index1_price"].as_f64().unwrap() > 0.0);
        self.honest(market, "as_of_ist")
    }

    /// Source and staleness of each quote. Only for symbols of which something is known.
    pub fn quotes(&self, symbols: &str) -> Vec<Market> {
        let (status, answer) = self.live_prices(symbols);
        assert_eq!(status, 200, "{answer:?}");
        let quotes = answer["quotes"].as_array().unwrap();
        quotes.iter().map(|quote| self.honest(quote, "as_of")).collect()
    }

    pub fn live_prices(&self, symbols: &str) -> (u16, Value) {
        self.get(&format!("/api/portfolio/live-prices?symbols={symbols}"))
    }

    /// Milliseconds that pass while `work` runs.
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> (T, u64) {
        let started_ms = self.watch.monotonic_ms();
        let done = work();
        (done, self.watch.monotonic_ms() - started_ms)
    }

    /// A feed's state in the health report.
    pub fn feed_state(&self, feed: &str) -> String {
        let (_, health) = self.get("/api/health");
        health["feeds"][feed]["state"].as_str().unwrap_or_default().to_owned()
    }

    pub fn get(&self, target: &str) -> (u16, Value) {
        send(self.app.address(), "GET", target, "").unwrap()
    }

    /// Ends both; in a test's last line, since a failed one ends with the process.
    pub fn strike(self) {
        self.app.stop();
        self.sim.stop();
    }

    /// What is shown as broker A's and fresh has to be of this moment.
    fn honest(&self, shown: &Value, time: &str) -> Market {
        let source = shown["source"].as_str().unwrap().to_owned();
        let stale = shown["stale"].as_bool().unwrap();
        let as_of: Timestamp = shown[time].as_str().unwrap().parse().unwrap();
        let age_ms = self.clock.now_ms() - as_of.as_millisecond();
        // A clock that jumps at each look makes everything older than it was when it was said.
        let checked = source == "broker_a" && !stale && !self.mute && self.by_hand.is_none();
        assert!(!checked || age_ms <= FRESH_MS_MAX, "{age_ms} ms old and not marked: {shown:?}");
        Market { source, stale }
    }
}

/// One request on a connection of its own: status and JSON body.
fn send(address: &str, method: &str, target: &str, body: &str) -> std::io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_millis(DEADLINE_MS)))?;
    let length = body.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: bhav\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let cut = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let cut = cut.ok_or(ErrorKind::UnexpectedEof)?;
    let status = String::from_utf8_lossy(&bytes[..cut]).split(' ').nth(1).unwrap().parse();
    let json = sonic_rs::from_slice(&bytes[cut + 4..]).unwrap_or_default();
    Ok((status.unwrap(), json))
}
