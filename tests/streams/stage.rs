//! A service whose snapshot comes from the test: its feeds have no data.

use bhav::api::Choices;
use bhav::base::{Clock, Quote, json};
use bhav::cache::{Kept, Vouched};
use bhav::config::Config;
use bhav::http::server::places::Streams;
use bhav::sim::SimSettings;

use crate::support::{EventReader, STREAM, Scene, Service, TRADING, samples, until};

pub struct Stage {
    pub service: Service,
    pub scene: Scene,
}

impl Stage {
    /// A stage on a clock that runs, with frames sent as fast as they are made.
    pub fn running(change: impl FnOnce(&mut Config)) -> Self {
        Self::of(Scene::at(TRADING), |config| {
            config.http.stream_interval_ms = 1;
            change(config);
        })
    }

    /// A stage on a clock that stands still.
    pub fn by_hand(change: impl FnOnce(&mut Config)) -> Self {
        let clock = Clock::manual(TRADING.parse().unwrap());
        let settings = SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        };
        Self::of(Scene::by_hand(clock, settings), change)
    }

    /// Same as [`by_hand`](Self::by_hand), with upstreams that never answer.
    pub fn by_hand_hanging(change: impl FnOnce(&mut Config)) -> Self {
        let clock = Clock::manual(TRADING.parse().unwrap());
        let settings = SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        };
        let scene = Scene::by_hand(clock, settings);
        scene.fault("*", r#"{"kind":"delay","delay_ms":600000}"#);
        Self::started(scene, change)
    }

    fn of(scene: Scene, change: impl FnOnce(&mut Config)) -> Self {
        scene.refuse_all();
        Self::started(scene, change)
    }

    fn started(scene: Scene, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = scene.config();
        change(&mut config);
        let service = scene.start_with(&config);
        Self { scene, service }
    }

    /// Publishes a snapshot of about `bytes` with its number, and returns its text.
    pub fn publish(&self, number: usize, bytes: usize) -> String {
        let filler: String = (0..bytes)
            .map(|at| char::from(b'a' + (at % 26) as u8))
            .collect();
        let json = format!("{{\"number\":{number},\"filler\":\"{filler}\"}}");
        self.service
            .0
            .server()
            .shared()
            .service
            .state()
            .snapshot
            .publish(json.clone().into());
        json
    }

    /// Puts a quote of this second of the day into the cache. It stays fresh for `fresh_ms` longer
    /// than usual.
    pub fn quote(&self, symbol: &str, price: usize, second: i64, fresh_ms: i64) {
        let state = self.service.0.server().shared().service.state();
        let opened: jiff::Timestamp = "2026-11-20T03:45:00Z".parse().unwrap();
        let now_mono_ms = state.clock.monotonic_ms();
        let as_of = opened + jiff::SignedDuration::from_secs(second);
        let quote = Quote {
            previous_close: json::parse_decimal("100"),
            asked: opened,
            simulated: true,
            ..samples::quote(symbol, &price.to_string(), as_of)
        };
        let vouched = Vouched {
            mono_ms: now_mono_ms as i64 + fresh_ms,
            calls: 1,
        };
        assert_eq!(state.l1.insert(quote, vouched, now_mono_ms), Kept::Taken);
    }

    pub fn open(&self, headers: &str) -> EventReader {
        EventReader::open(&self.service, STREAM, headers)
    }

    /// Opens a stream with quotes of these symbols.
    pub fn open_with(&self, symbols: &str, headers: &str) -> EventReader {
        EventReader::open(&self.service, &format!("{STREAM}?symbols={symbols}"), headers)
    }

    pub fn choices(&self) -> &Choices {
        &self
            .service
            .0
            .server()
            .shared()
            .service
            .state()
            .event_streams
            .choices
    }

    pub fn streams(&self) -> &Streams {
        &self.service.0.server().shared().streams
    }

    /// Waits until `count` streams are open.
    #[track_caller]
    pub fn await_open(&self, count: usize) {
        until("streams to open or end", || {
            let open = self.streams().open();
            if open == count {
                Ok(())
            } else {
                Err(format!("{open} open"))
            }
        });
    }

    /// Waits until no connection is left and nothing is held for one.
    #[track_caller]
    pub fn await_nothing_held(&self) {
        let shared = self.service.0.server().shared();
        until("nothing to be held", || match (shared.slots.open(), shared.unread.bytes()) {
            (0, 0) => Ok(()),
            (open, unread) => Err(format!("{open} open, {unread} bytes unread")),
        });
    }

    /// Advances the clock by `ms`, and then in steps of the table's sweeps, until `seen`.
    #[track_caller]
    pub fn advance_until<T>(&self, what: &str, ms: i64, mut seen: impl FnMut() -> Option<T>) -> T {
        self.scene.advance_ms(ms);
        until(what, || {
            self.scene.advance_ms(50);
            seen()
        })
    }
}

/// The number in a published snapshot.
#[track_caller]
pub fn number_of(data: &str) -> usize {
    let digits = data.strip_prefix("{\"number\":").unwrap();
    digits.split(',').next().unwrap().parse().unwrap()
}
