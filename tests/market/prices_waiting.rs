//! `GET /api/portfolio/live-prices` on a cache miss: waiting, giving up, remembering.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::scrape::Scrape;
use crate::support::{PRICES, Scene, Service, TRADING, until};
use bhav::base::Clock;
use bhav::cache::pending::Class;
use bhav::cache::pending::unlisted::PER_CLIENT_MAX;
use bhav::sim::SimSettings;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

/// Every upstream answers long after any client has gone.
const HANGS: &str = r#"{"kind":"delay","delay_ms":600000}"#;

#[test]
fn symbols_that_nobody_asked_for_before_arrive_within_the_wait() {
    let (_scene, service) = Scene::trading();
    service.await_instruments();
    let first = service.prices("NSE:INFY,NSE:RELIANCE,BSE:RELIANCE");
    assert_eq!(first.quoted(), ["NSE:INFY", "NSE:RELIANCE", "BSE:RELIANCE"]);
    let more = service.prices("NSE:TCS,NSE:INFY,NSE:WIPRO");
    assert_eq!(more.quoted(), ["NSE:TCS", "NSE:INFY", "NSE:WIPRO"]);
}

/// While the market rests, rounds are half a minute apart. A waiting client does not wait so long.
#[test]
fn on_a_sunday_quotes_arrive_within_the_wait_too() {
    let scene = Scene::at("2026-11-22T11:00:00+05:30");
    let service = scene.start();
    service.await_instruments();
    let answer = service.prices("NSE:INFY,NSE:M%26M");
    assert_eq!(answer.quoted(), ["NSE:INFY", "NSE:M&M"]);
    let quote = &answer.json()["quotes"][0];
    assert!(
        quote["as_of"]
            .as_str()
            .unwrap()
            .starts_with("2026-11-20T15:"),
        "{quote}"
    );
    assert_eq!(quote["stale"], false, "Friday's close is the price until Monday");
}

/// A list may lack a symbol that exists, since a row of it may be broken.
#[test]
fn a_symbol_that_the_list_lacks_is_tried_once_and_then_remembered() {
    for has_brokers_list in [true, false] {
        let (scene, service) = Scene::trading_with(|config| {
            if !has_brokers_list {
                config.broker_a.access_token = None;
            }
            config.cache.miss_wait_ms = 15_000;
        });
        if has_brokers_list {
            service.await_instruments();
        }
        let first = service.prices("NSE:NOSUCH");
        assert_eq!((first.status, first.unavailable()), (200, vec!["NSE:NOSUCH".to_owned()]));
        // From here on an upstream call never ends, and a new symbol waits in vain.
        scene.fault("*", HANGS);
        let tried = calls(&scene);
        for _ in 0..3 {
            let again = service.prices("NSE:NOSUCH");
            assert_eq!((again.status, again.unavailable()), (200, vec!["NSE:NOSUCH".to_owned()]));
        }
        assert!(calls(&scene) <= tried + 1, "only the warmer's own round may have gone out");
    }
}

/// The flood ends with the test, however that ends.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// With only the public provider, a batch tries just two unlisted names. A client that invents
/// names faster must not delay real ones.
#[test]
fn invented_names_do_not_keep_a_real_one_from_its_quote() {
    let (scene, service) = Scene::trading_with(|config| {
        config.broker_a.access_token = None;
        config.cache.miss_wait_ms = 200;
    });
    service.fresh_snapshot();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&done);
        // From the same address, in many simultaneous requests.
        for flood in 0..3 {
            let (service, done) = (&service, &done);
            scope.spawn(move || {
                let mut number = 0;
                while !done.load(Ordering::Relaxed) {
                    let names = (0..50).map(|at| format!("NSE:Z{flood}X{number}N{at}"));
                    service.prices(&names.collect::<Vec<_>>().join(","));
                    number += 1;
                }
            });
        }
        until("all places taken", || {
            let stats = service
                .0
                .server()
                .shared()
                .service
                .state()
                .pending
                .stats(Class::Unlisted);
            (stats.symbols >= PER_CLIENT_MAX && stats.refused > 50).then_some(())
        });
        let rounds = calls(&scene);
        until("the quote", || {
            let answer = service.prices("NSE:SIM001");
            (answer.status == 200 && answer.quoted() == ["NSE:SIM001"]).then_some(())
        });
        let rounds = calls(&scene) - rounds;
        // Two checks half a second apart are two rounds; the rest is for a busy machine.
        assert!(rounds <= 30, "{rounds}");
    });
}

fn calls(scene: &Scene) -> u64 {
    scene.stats()["requests"]["public.spark"]
        .as_u64()
        .unwrap_or(0)
}

#[test]
fn without_a_source_and_without_a_cache_it_is_503() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let service = scene.start();
    let answer = service.prices("NSE:INFY,NSE:TCS");
    answer.expect_problem(503, "quotes_unavailable");
    assert!(
        answer
            .header("retry-after")
            .unwrap()
            .parse::<u32>()
            .unwrap()
            >= 1
    );
}

#[test]
fn an_upstream_that_hangs_holds_a_request_for_the_miss_wait_only() {
    let scene = Scene::at(TRADING);
    scene.fault("*", HANGS);
    let mut config = scene.config();
    config.cache.miss_wait_ms = 300;
    // The stop waits for the running call.
    config.upstream.read_timeout_ms = 1_000;
    let service = scene.start_with(&config);
    service
        .prices("NSE:INFY")
        .expect_problem(503, "quotes_unavailable");
}

#[test]
fn what_is_cached_is_served_beside_what_cannot_be_had() {
    let (scene, service) = Scene::trading();
    service.await_instruments();
    assert_eq!(service.prices("NSE:INFY").quoted(), ["NSE:INFY"]);
    scene.refuse_all();
    let answer = until("an answer without TCS", || {
        let answer = service.prices("NSE:INFY,NSE:TCS");
        assert_eq!(answer.status, 200);
        (answer.unavailable() == ["NSE:TCS"]).then_some(answer)
    });
    assert_eq!(answer.quoted(), ["NSE:INFY"]);
}

/// Zero is no price: it neither answers a request nor makes the symbol unknown.
#[test]
fn nonsense_from_broker_a_leaves_the_question_to_the_public_provider() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a.quote", r#"{"kind":"zero_price"}"#);
    scene.fault("broker_a.ohlc", r#"{"kind":"zero_price"}"#);
    let service = scene.start();
    service.await_instruments();
    let answer = until("a quote of INFY", || {
        let answer = service.prices("NSE:INFY");
        assert!(answer.status == 503 || answer.quoted() == ["NSE:INFY"], "{}", answer.text());
        (answer.status == 200).then_some(answer)
    });
    assert_eq!(answer.json()["quotes"][0]["source"], "public");
}

#[test]
fn the_public_provider_answers_where_broker_a_does_not() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a.quote", r#"{"kind":"refuse"}"#);
    scene.fault("broker_a.ohlc", r#"{"kind":"refuse"}"#);
    let service = scene.start();
    let answer = until("a quote of INFY", || {
        Some(service.prices("NSE:INFY")).filter(|answer| answer.status == 200)
    });
    assert_eq!(answer.quoted(), ["NSE:INFY"]);
    let json = answer.json();
    assert!(json["quotes"][0]["source"] == "public" && json["quotes"][0]["simulated"] == true);
}

/// Advances the clock by `by_s`. What the public provider was asked for by then is answered, and
/// the answer is in the cache.
fn step(scene: &Scene, service: &Service, by_s: i64) {
    pass(scene, service, by_s - 1);
    // The scheduler has taken the answers in before it makes its next report.
    pass(scene, service, 1);
}

/// Waits for the answers of the calls under way, advances the clock, and waits until the scheduler
/// has run.
fn pass(scene: &Scene, service: &Service, by_s: i64) {
    Scrape::until(service, "no call under way", |scrape| {
        let jobs = ["waiting", "running"].map(|of| format!("bhav_lane_{of}_jobs{PUBLIC_LANE}"));
        jobs.iter().all(|jobs| scrape.value(jobs) == 0.0)
    });
    let uptime_s = || service.health()["uptime_s"].as_i64().unwrap();
    let then_s = uptime_s() + by_s;
    scene.advance_ms(1_000 * by_s);
    until("the scheduler", || {
        // The advance may fall into a second whose report was already made.
        scene.advance_ms(20);
        uptime_s() >= then_s
    });
}

const PUBLIC_LANE: &str = r#"{lane="public"}"#;

/// A watch list of the longest allowed length, read every five seconds for a quarter of an hour.
#[test]
fn with_the_public_provider_alone_a_long_list_fills_soon_and_is_fresh() {
    const STEP_S: i64 = 5;
    let clock = Clock::manual(TRADING.parse().unwrap());
    let settings = SimSettings {
        rate_limits: false,
        ..SimSettings::default()
    };
    let scene = Scene::by_hand(clock, settings);
    let mut config = scene.watched();
    (config.broker_a.access_token, config.broker_a.api_key) = (None, None);
    config.public.batch_interval_ms = 15_000;
    // A busy machine is no outage.
    (config.upstream.read_timeout_ms, config.upstream.total_timeout_ms) = (60_000, 60_000);
    // The clock stands while a request waits.
    config.cache.miss_wait_ms = 500;
    let service = scene.start_with(&config);
    until("the first prices", || {
        scene.advance_ms(20);
        service.get("/api/index/snapshot").status == 200
    });
    let shares = include_str!("../../src/market/data/nifty50.txt").lines();
    let shares = shares
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .take(49);
    let shares = shares.collect::<Vec<_>>().join(",").replace('&', "%26");
    let target = format!("{PRICES}NSE:NIFTY%2050,{shares}");
    let (mut filled_s, mut quotes, mut stale, mut sectors_null) = (None, 0, 0, 0);
    let began_ms = scene.clock.now_ms();
    loop {
        let at_s = (scene.clock.now_ms() - began_ms) / 1_000;
        if at_s > 900 {
            break;
        }
        let answer = service.client().get(&target).json();
        let shown = answer["quotes"].as_array().unwrap();
        if shown.len() == 50 {
            filled_s.get_or_insert(at_s);
        }
        quotes += shown.len();
        stale += shown.iter().filter(|quote| quote["stale"] == true).count();
        let snapshot = service.get("/api/index/snapshot").json();
        let sectors = snapshot["sectors"].as_array().unwrap();
        if at_s > 120 {
            sectors_null += sectors
                .iter()
                .filter(|sector| sector["change_pct"].is_null())
                .count();
        }
        step(&scene, &service, STEP_S);
    }
    let part = format!("{stale} of {quotes} stale, filled after {filled_s:?} s");
    // Three calls. A call and a check may each come a step late.
    assert!(filled_s.is_some_and(|filled_s| filled_s <= 45 + 2 * STEP_S), "{part}");
    assert!(10 * stale < quotes, "{part}");
    assert!(sectors_null < 100, "{sectors_null} of some 1,800 sectors are null");
}
