//! A simulator and the service on one clock, on ports of their own, and what a client sees of them.

use crate::support::{PRICES, SNAPSHOT, Scene, Service, TRADING, until};
use bhav::base::Clock;
use bhav::config::Config;
use bhav::sim::SimSettings;
use jiff::Timestamp;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

/// What broker A may be behind while it is shown as fresh: its limit under these settings is 1.6 s,
/// its times have whole seconds, and a busy machine takes some time.
const FRESH_MS_MAX: i64 = 4_500;

/// What the public provider is behind broker A: it passes broker A's last prices that much later.
const PUBLIC_DELAY_S: i64 = 1;

/// One look in so many asks what there is instead.
const LOOKS_PER_WORD: u32 = 50;

/// Two shares that are cached before anything goes wrong.
pub const CACHED: &str = "NSE:INFY,NSE:SBIN";

/// The service in its simulated world.
pub struct Stage {
    scene: Scene,
    service: Service,
    watch: Clock,
    /// How far the clock moves at each look; `None` where it runs by itself.
    step_ms: Option<i64>,
    /// Broker A's time stands still on purpose.
    pub mute: bool,
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
        let clock = Clock::starting_at(TRADING.parse().unwrap());
        Self::set(|settings| Scene::on(clock, settings), None, adjust)
    }

    /// On a clock that moves by `step_ms` at each look.
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
        let stage = Self { scene, service, watch: Clock::system(), step_ms, mute: false };
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

    /// Looks until `condition` holds; a manual clock moves in between.
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

    /// Moves the clock of a [stepping](Self::stepping) stage.
    #[track_caller]
    pub fn advance_ms(&self, by_ms: i64) {
        self.scene.advance_ms(by_ms);
    }

    /// Switches a fault on for a route or a group of them.
    pub fn break_with(&self, route: &str, fault: &str) {
        self.scene.fault(route, fault);
    }

    /// Requests that reached the simulator at routes called `prefix…`.
    pub fn asked(&self, prefix: &str) -> i64 {
        let stats = self.scene.stats();
        let requests = stats["requests"].as_object().unwrap();
        let counted = requests.iter().filter(|(route, _)| route.starts_with(prefix));
        counted.map(|(_, count)| count.as_i64().unwrap()).sum()
    }

    /// Clears all faults.
    pub fn mend(&self) {
        assert_eq!(self.scene.control("DELETE", "faults", "").status, 200);
    }

    /// The snapshot's source and staleness. It has to be there, and honest.
    pub fn market(&self) -> Market {
        let (status, answer) = self.get(SNAPSHOT);
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
        health["feeds"][feed]["state"].as_str().unwrap_or_default().to_owned()
    }

    pub fn get(&self, target: &str) -> (u16, Value) {
        let answer = self.service.get(target);
        (answer.status, answer.json())
    }

    /// Ends both; in a test's last line, since a failed one ends with the process.
    pub fn strike(self) {
        self.service.stop();
        self.scene.sim.stop();
    }

    /// What is shown as broker A's and fresh has to be of this moment.
    fn honest(&self, shown: &Value, time: &str) -> Market {
        let source = shown["source"].as_str().unwrap().to_owned();
        let stale = shown["stale"].as_bool().unwrap();
        let as_of: Timestamp = shown[time].as_str().unwrap().parse().unwrap();
        let age_ms = self.scene.clock.now_ms() - as_of.as_millisecond();
        // A clock that jumps at each look makes everything older than it was when it was said.
        let checked = source == "broker_a" && !stale && !self.mute && self.step_ms.is_none();
        assert!(!checked || age_ms <= FRESH_MS_MAX, "{age_ms} ms old and not marked: {shown:?}");
        Market { source, stale }
    }
}
