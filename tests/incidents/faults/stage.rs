//! A simulator and the service on one clock, on ports of their own, and a client's view of them.

use crate::support::{PRICES, SNAPSHOT, Scene, Service, TRADING, until};
use bhav::base::Clock;
use bhav::config::Config;
use bhav::sim::SimSettings;
use jiff::Timestamp;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

/// Largest age of broker A's price while it is shown as fresh: its limit under these settings is
/// 1.6 s, its times have whole seconds, and a busy machine adds some time.
const FRESH_MS_MAX: i64 = 4_500;

/// Delay of the public provider behind broker A: it reaches broker A's last prices that much later.
const PUBLIC_DELAY_S: i64 = 1;

/// Checks per report of the state found instead.
const LOOKS_PER_WORD: u32 = 50;

/// Two shares that are cached before any fault.
pub const CACHED: &str = "NSE:INFY,NSE:SBIN";

/// The service in its simulated world.
pub struct Stage {
    service: Service,
    scene: Scene,
    watch: Clock,
    /// The clock's advance at each check; `None` if it runs by itself.
    step_ms: Option<i64>,
    /// Whether broker A's time stands still on purpose.
    pub mute: bool,
}

/// The `market` object of the snapshot.
#[derive(Debug, PartialEq, Eq)]
pub struct Market {
    pub source: String,
    pub stale: bool,
}

impl Stage {
    /// A stage on a clock that runs.
    pub fn running(adjust: impl FnOnce(&mut Config)) -> Self {
        let clock = Clock::starting_at(TRADING.parse().unwrap());
        Self::set(|settings| Scene::on(clock, settings), None, adjust)
    }

    /// A stage on a clock that advances by `step_ms` at each check.
    pub fn stepping(step_ms: i64) -> Self {
        let clock = Clock::manual(TRADING.parse().unwrap());
        Self::set(
            |settings| Scene::by_hand(clock, settings),
            Some(step_ms),
            |config| {
                // The clock stands while a request waits.
                config.cache.miss_wait_ms = 50;
            },
        )
    }

    fn set(
        scene: impl FnOnce(SimSettings) -> Scene,
        step_ms: Option<i64>,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        let settings = SimSettings {
            rate_limits: false,
            public_delay_s: PUBLIC_DELAY_S,
            ..SimSettings::default()
        };
        let scene = scene(settings);
        let mut config = scene.config();
        config.broker_a.quote_interval_ms = 50;
        config.public.batch_interval_ms = 100;
        config.upstream.connect_timeout_ms = 300;
        config.upstream.read_timeout_ms = 300;
        config.upstream.total_timeout_ms = 400;
        config.upstream.breaker_open_ms = 100;
        config.upstream.breaker_open_max_ms = 300;
        adjust(&mut config);
        let service = scene.start_with(&config);
        let stage = Self {
            scene,
            service,
            watch: Clock::system(),
            step_ms,
            mute: false,
        };
        stage.await_broker_a();
        stage
    }

    /// Broker A serves the snapshot and the cached shares, and nothing is stale.
    pub fn await_broker_a(&self) {
        self.until("broker A serves", || {
            let fresh = |quote: &Market| quote.source == "broker_a" && !quote.stale;
            let there = self.get(SNAPSHOT).0 == 200;
            if !there || self.live_prices(CACHED).0 != 200 || !fresh(&self.market()) {
                return false;
            }
            let quotes = self.quotes(CACHED);
            quotes.len() == 2 && quotes.iter().all(fresh)
        });
    }

    /// Checks until `condition` holds. A manual clock advances in between.
    #[track_caller]
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let mut looks = 0_u32;
        until(what, || {
            if condition() {
                return Ok(());
            }
            if let Some(step_ms) = self.step_ms {
                self.advance_ms(step_ms);
            }
            looks += 1;
            let told = looks.is_multiple_of(LOOKS_PER_WORD);
            let word = || format!("{:?} {:?}", self.get("/api/health").1, self.get(SNAPSHOT).1);
            Err(if told { word() } else { String::new() })
        });
    }

    /// Advances the clock of a [stepping](Self::stepping) stage.
    #[track_caller]
    pub fn advance_ms(&self, by_ms: i64) {
        self.scene.advance_ms(by_ms);
    }

    /// Switches a fault on for a route or a group of them.
    pub fn break_with(&self, route: &str, fault: &str) {
        self.scene.fault(route, fault);
    }

    /// Number of requests to the simulator's routes that begin with `prefix`.
    pub fn asked(&self, prefix: &str) -> i64 {
        let stats = self.scene.stats();
        let requests = stats["requests"].as_object().unwrap();
        let counted = requests
            .iter()
            .filter(|(route, _)| route.starts_with(prefix));
        counted.map(|(_, count)| count.as_i64().unwrap()).sum()
    }

    /// Clears all faults.
    pub fn mend(&self) {
        assert_eq!(self.scene.control("DELETE", "faults", "").status, 200);
    }

    /// The snapshot's source and staleness. It must exist, and mark old prices.
    pub fn market(&self) -> Market {
        let (status, answer) = self.get(SNAPSHOT);
        assert_eq!(status, 200, "{answer:?}");
        let market = &answer["market"];
        assert!(answer["index1_price"].as_f64().unwrap() > 0.0);
        self.honest(market, "as_of_ist")
    }

    /// Source and staleness of each quote, for known symbols.
    pub fn quotes(&self, symbols: &str) -> Vec<Market> {
        let (status, answer) = self.live_prices(symbols);
        assert_eq!(status, 200, "{answer:?}");
        let quotes = answer["quotes"].as_array().unwrap();
        quotes
            .iter()
            .map(|quote| self.honest(quote, "as_of"))
            .collect()
    }

    pub fn live_prices(&self, symbols: &str) -> (u16, Value) {
        self.get(&format!("{PRICES}{symbols}"))
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
        health["feeds"][feed]["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn get(&self, target: &str) -> (u16, Value) {
        let answer = self.service.get(target);
        (answer.status, answer.json())
    }

    /// A price shown as broker A's and fresh must be current.
    fn honest(&self, shown: &Value, time: &str) -> Market {
        let source = shown["source"].as_str().unwrap().to_owned();
        let stale = shown["stale"].as_bool().unwrap();
        let as_of: Timestamp = shown[time].as_str().unwrap().parse().unwrap();
        let age_ms = self.scene.clock.now_ms() - as_of.as_millisecond();
        // On a clock that jumps at each check, everything is older than when it was sent.
        let checked = source == "broker_a" && !stale && !self.mute && self.step_ms.is_none();
        assert!(!checked || age_ms <= FRESH_MS_MAX, "{age_ms} ms old and not marked: {shown:?}");
        Market { source, stale }
    }
}
