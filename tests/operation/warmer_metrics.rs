//! `/metrics` of the warmers: their runs, the failed ones, and the last success.

use bhav::base::Clock;

use crate::support::scrape::{SUCCEEDED, Scrape};
use crate::support::{Scene, TRADING};

const NAMES: [&str; 6] = [
    "index",
    "quotes",
    "instruments",
    "persist",
    "close",
    "signals",
];

fn count(scrape: &Scrape, figure: &str, warmer: &str) -> f64 {
    scrape.value(&format!("bhav_warmer_{figure}_total{{warmer=\"{warmer}\"}}"))
}

fn succeeded(scrape: &Scrape, warmer: &str) -> Option<f64> {
    scrape.find(&format!("{SUCCEEDED}{{warmer=\"{warmer}\"}}"))
}

fn machine_s() -> f64 {
    Clock::system().now_ms() as f64 / 1_000.0
}

#[test]
fn each_warmer_counts_its_runs_and_the_time_of_its_last_success_stands_when_it_fails() {
    let before_s = machine_s();
    let (scene, service) = Scene::trading_on(Scene::watched);
    let busy = ["index", "quotes", "instruments", "persist", "signals"];
    let well = Scrape::until(&service, "every busy warmer's success", |scrape| {
        busy.iter()
            .all(|warmer| succeeded(scrape, warmer).is_some())
    });
    for warmer in NAMES {
        let (runs, failures) = (count(&well, "runs", warmer), count(&well, "failures", warmer));
        assert_eq!(runs > 0.0, busy.contains(&warmer), "{warmer}");
        assert!(failures <= runs, "{warmer}");
    }
    // By the machine's clock, as for Prometheus. The service's clock reads another day.
    let at_s = succeeded(&well, "quotes").unwrap();
    assert!((before_s..=machine_s()).contains(&at_s), "{at_s}");
    assert_eq!(succeeded(&well, "close"), None, "no close is due at eleven");
    scene.refuse_all();
    let ill = Scrape::until(&service, "failed rounds and a stale snapshot", |scrape| {
        count(scrape, "failures", "quotes") >= count(&well, "failures", "quotes") + 2.0
            && count(scrape, "failures", "index") > count(&well, "failures", "index")
    });
    let last_s = succeeded(&ill, "quotes").unwrap();
    let later = Scrape::until(&service, "another failed round", |scrape| {
        count(scrape, "failures", "quotes") > count(&ill, "failures", "quotes")
    });
    assert_eq!(succeeded(&later, "quotes"), Some(last_s));
}

#[test]
fn what_never_succeeded_has_no_time_of_it() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let service = scene.start_with(&scene.watched());
    let scrape = Scrape::until(&service, "failed rounds", |scrape| {
        scrape.0.contains_key("bhav_warmer_runs_total") && count(scrape, "runs", "index") >= 1.0
    });
    for warmer in ["index", "quotes"] {
        assert_eq!(count(&scrape, "runs", warmer), count(&scrape, "failures", warmer));
        assert_eq!(succeeded(&scrape, warmer), None, "{warmer}");
    }
}

#[test]
fn the_close_counts_its_steps_in_the_evening() {
    let scene = Scene::at("2026-11-20T18:30:00+05:30");
    let service = scene.start_with(&scene.watched());
    let scrape =
        Scrape::until(&service, "the close", |scrape| succeeded(scrape, "close").is_some());
    assert!(count(&scrape, "runs", "close") >= 1.0);
    assert_eq!(count(&scrape, "failures", "close"), 0.0);
}

#[test]
fn writes_to_a_second_level_that_is_not_there_are_no_runs() {
    let scene = Scene::at(TRADING);
    std::fs::create_dir(scene.state.path().join("l2.sqlite")).unwrap();
    let service = scene.start_with(&scene.watched());
    let written = Scrape::until(&service, "a write that went nowhere", |scrape| {
        scrape.value("bhav_lane_jobs_total{lane=\"cache\",result=\"completed\"}") >= 1.0
    });
    // The end of that run has been processed by then.
    let of_quotes = |scrape: &Scrape| scrape.find("bhav_warmer_runs_total{warmer=\"quotes\"}");
    let later = Scrape::until(&service, "rounds after it", |scrape| {
        of_quotes(scrape) > of_quotes(&written).map(|runs| runs + 1.0).or(Some(1.0))
    });
    assert_eq!(count(&later, "runs", "persist"), 0.0);
    assert_eq!(succeeded(&later, "persist"), None);
}
