//! Broker A misbehaving in every way that the simulator knows, and the service in between.

use bhav::base::Clock;
use bhav::sim::SimSettings;

use super::support::{SNAPSHOT, Scene, TRADING, number, raw, until};

const FAULTS: [&str; 10] = [
    r#"{"kind":"refuse"}"#,
    r#"{"kind":"delay","delay_ms":600000}"#,
    r#"{"kind":"drip","bytes_per_s":100}"#,
    r#"{"kind":"truncate"}"#,
    r#"{"kind":"rate_limit"}"#,
    r#"{"kind":"error_in_200"}"#,
    r#"{"kind":"html_5xx"}"#,
    r#"{"kind":"wrong_types"}"#,
    r#"{"kind":"missing_fields"}"#,
    r#"{"kind":"zero_price"}"#,
];

/// The public provider takes over with fresh prices, and broker A comes back by itself.
fn survives(fault: &str) {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.upstream.read_timeout_ms = 500;
    config.upstream.total_timeout_ms = 800;
    let service = scene.start_with(&config);
    let before = service.snapshot_where("broker A", |json| json["market"]["source"] == "broker_a");
    let price = number(before.text(), "index1_price");
    scene.fault("broker_a", fault);
    let mut client = service.client();
    let over = until(fault, || {
        let answer = client.get(SNAPSHOT);
        assert_eq!(answer.status, 200, "{fault}");
        let shown = number(answer.text(), "index1_price");
        let moved = ((shown - price) / price).abs();
        assert!(moved < rust_decimal::Decimal::new(5, 2), "{fault}: {price} became {shown}");
        let json = answer.json();
        (json["market"]["source"] == "public" && json["market"]["stale"] == false).then_some(answer)
    });
    assert_ne!(raw(over.text(), "index1_change"), "null", "{fault}");
    let prices = client.get("/api/portfolio/live-prices?symbols=NSE:NIFTY+50,BSE:SENSEX");
    assert_eq!(prices.quoted(), ["NSE:NIFTY 50", "BSE:SENSEX"], "{fault}");
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    service.snapshot_where("broker A again", |json| {
        json["market"]["source"] == "broker_a" && json["market"]["stale"] == false
    });
    service.0.stop();
}

#[test]
fn every_fault_of_broker_a_is_survived_and_left_behind() {
    std::thread::scope(|scope| {
        for fault in FAULTS {
            scope.spawn(move || survives(fault));
        }
    });
}

/// A source that answers, but with a price that has stood for a minute of trading, is not believed
/// to be fresh. The clock is moved by hand, a quarter of a second a look.
#[test]
fn a_mute_broker_hands_over_within_a_minute_and_a_half() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let settings = SimSettings { rate_limits: false, ..SimSettings::default() };
    let scene = Scene::on(clock.clone(), settings);
    let mut config = scene.config();
    config.broker_a.quote_interval_ms = 3_000;
    config.public.batch_interval_ms = 3_000;
    let service = scene.start_with(&config);
    let sources = |wanted: &str| {
        let mut client = service.client();
        until(wanted, || {
            clock.advance_ms(250);
            let answer = client.get(SNAPSHOT);
            let json = (answer.status == 200).then(|| answer.json())?;
            let fresh = json["market"]["stale"] == false;
            (fresh && json["market"]["source"] == wanted).then(|| clock.monotonic_ms())
        })
    };
    let began_ms = sources("broker_a");
    scene.fault("broker_a", r#"{"kind":"mute_price"}"#);
    let over_ms = sources("public");
    assert!((55_000..90_000).contains(&(over_ms - began_ms)), "{} ms", over_ms - began_ms);
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    sources("broker_a");
    service.0.stop();
}

/// Draining begins while a request waits for a quote that will not come in time.
#[test]
fn a_request_that_waits_is_answered_before_the_end() {
    let scene = Scene::at(TRADING);
    scene.fault("*", r#"{"kind":"delay","delay_ms":600000}"#);
    let mut config = scene.config();
    config.http.drain_timeout_ms = 20_000;
    config.cache.miss_wait_ms = 1_500;
    config.upstream.read_timeout_ms = 1_000;
    let service = scene.start_with(&config);
    let address = service.0.address().to_owned();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            super::support::Client::connect(&address)
                .get("/api/portfolio/live-prices?symbols=NSE:INFY")
        });
        let misses = &service.0.server().shared().service.state().misses.clone();
        until("the request to wait", || (misses.stats().waiters == 1).then_some(()));
        assert_eq!(service.0.stop(), 0, "connections were cut off");
        waiting.join().unwrap().expect_problem(503, "quotes_unavailable");
    });
}
