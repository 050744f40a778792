//! The age of a price in a client's view: `as_of`, `delay_s` and `stale`, while feeds lag, fail,
//! recover and start again. This file has the parts that these scenarios share.

mod never_back;
mod said;
mod standing;

use crate::support::{Client, PRICES, SNAPSHOT, Scene, Service, TRADING, until};
use bhav::base::{Clock, ManualClock};
use bhav::sim::SimSettings;
use jiff::Timestamp;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

/// The public provider's own delay: a quarter of an hour.
const QUARTER_S: u64 = 900;
/// Tolerance of a measured delay: whole seconds, and a busy machine.
const MEASURED_S: u64 = 5;
/// Largest age without a mark: broker A may have missed one round of 250 ms, has 1.5 s of grace,
/// and sends whole seconds. The rest is for a busy machine.
const UNMARKED_MS_MAX: i64 = 2 * 250 + 1_500 + 1_000 + 600;
/// The public provider may have missed one round of 250 ms, and has 7 s of grace.
const PUBLIC_STALE_MS: i64 = 2 * 250 + 7_000;

/// The indices and two shares, encoded for a query.
const WATCHED: [&str; 5] = [
    "NSE:NIFTY%2050",
    "NSE:NIFTY%20BANK",
    "BSE:SENSEX",
    "NSE:INFY",
    "NSE:SBIN",
];
/// The snapshot's names of the first three.
const LEADS: [&str; 3] = ["index1", "bankindex", "index2"];

fn settings(public_delay_s: i64) -> SimSettings {
    SimSettings {
        rate_limits: false,
        public_delay_s,
        ..SimSettings::default()
    }
}

/// A scene and a service on one clock that the test advances.
struct Lapse {
    service: Service,
    clock: ManualClock,
    scene: Scene,
    watch: Watch,
}

impl Lapse {
    fn with(public_delay_s: i64) -> Self {
        Self::of(public_delay_s, true, &[])
    }

    /// A lapse with only the public provider, at its usual delay.
    fn public_alone() -> Self {
        Self::of(QUARTER_S as i64, false, &[])
    }

    /// A lapse with these faults from the start.
    fn of(public_delay_s: i64, broker_a: bool, broken: &[(&str, &str)]) -> Self {
        let clock = Clock::manual(TRADING.parse().unwrap());
        let scene = Scene::by_hand(clock.share(), settings(public_delay_s));
        let mut config = scene.config();
        // The clock stands while a request waits.
        config.cache.miss_wait_ms = 50;
        if !broker_a {
            (config.broker_a.access_token, config.broker_a.api_key) = (None, None);
        }
        for (route, kind) in broken {
            scene.fault(route, &format!(r#"{{"kind":"{kind}"}}"#));
        }
        let service = scene.start_with(&config);
        Self {
            clock,
            scene,
            service,
            watch: Watch::default(),
        }
    }

    /// Advances the clock by `step_ms` and checks a client's view, until `holds` is true.
    #[track_caller]
    fn step_until(&mut self, step_ms: i64, what: &str, mut holds: impl FnMut(&Seen) -> bool) {
        let Self {
            clock,
            service,
            watch,
            ..
        } = self;
        let mut client = service.client();
        until(what, || {
            clock.advance_ms(step_ms);
            let seen = watch.look(&mut client);
            seen.is_some_and(|seen| holds(&seen)).then_some(())
        });
    }

    fn breaks(&self, route: &str, kind: &str) {
        self.scene.fault(route, &format!(r#"{{"kind":"{kind}"}}"#));
    }
}

/// The last time seen for each symbol, to check that none goes back.
#[derive(Default)]
struct Watch {
    latest: Vec<(String, Timestamp)>,
}

/// A view of the snapshot and the watched quotes.
struct Seen {
    snapshot: Value,
    quotes: Vec<Value>,
}

impl Watch {
    /// `None` before there are prices. No time may have gone back.
    #[track_caller]
    fn look(&mut self, client: &mut Client) -> Option<Seen> {
        let snapshot = client.get(SNAPSHOT);
        let quotes = client.get(&format!("{PRICES}{}", WATCHED.join(",")));
        if snapshot.status != 200 || quotes.status != 200 {
            return None;
        }
        let seen = Seen {
            snapshot: snapshot.json(),
            quotes: quotes.json()["quotes"]
                .as_array()
                .unwrap()
                .iter()
                .cloned()
                .collect(),
        };
        self.note("snapshot", time(&seen.market()["as_of_ist"]), &seen.snapshot);
        for quote in &seen.quotes {
            self.note(quote["symbol"].as_str().unwrap(), time(&quote["as_of"]), quote);
        }
        Some(seen)
    }

    #[track_caller]
    fn note(&mut self, name: &str, as_of: Timestamp, shown: &Value) {
        match self.latest.iter_mut().find(|(known, _)| known == name) {
            None => self.latest.push((name.to_owned(), as_of)),
            Some((_, latest)) => {
                assert!(as_of >= *latest, "{name} went back from {latest} to {as_of}: {shown}");
                *latest = as_of;
            }
        }
    }
}

impl Seen {
    fn market(&self) -> &Value {
        &self.snapshot["market"]
    }

    fn quote(&self, symbol: &str) -> &Value {
        self.quotes
            .iter()
            .find(|quote| quote["symbol"] == symbol)
            .unwrap()
    }

    /// Whether all prices are fresh and from `source`.
    fn is_fresh_of(&self, source: &str) -> bool {
        let fresh = |shown: &Value| shown["source"] == source && shown["stale"] == false;
        self.quotes.len() == WATCHED.len() && fresh(self.market()) && self.quotes.iter().all(fresh)
    }
}

fn time(text: &Value) -> Timestamp {
    text.as_str().unwrap().parse().unwrap()
}

#[track_caller]
fn expect_delay(shown: &Value, delay_s: u64) {
    let said = shown["delay_s"].as_u64();
    assert!(said.is_some_and(|said| said.abs_diff(delay_s) <= MEASURED_S), "{shown}");
}
