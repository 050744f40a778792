//! The members that describe the age of prices while sources are delayed or differ.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bhav::base::{Clock, ManualClock};
use bhav::sim::SimSettings;
use jiff::{SignedDuration, Timestamp};
use sonic_rs::{JsonValueTrait, Value};

use super::checker::Checker;
use super::walk::Walk;
use crate::support::upstream::{Asked, Said, Upstream};
use crate::support::{SNAPSHOT, Scene, TRADING, until};

const LOGIN: &str = r#"{"email":"age@example.com","password":"nine green parrots"}"#;

/// Only the public provider serves, and holdings have its prices.
pub fn delayed_prices(checker: &mut Checker) {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let settings = SimSettings {
        rate_limits: false,
        public_delay_s: 120,
        ..SimSettings::default()
    };
    let scene = Scene::by_hand(clock.share(), settings);
    let mut config = scene.config();
    (config.broker_a.access_token, config.broker_a.api_key) = (None, None);
    let service = scene.start_with(&config);
    let walk = &mut Walk::new(&service, checker);
    let new = walk.expect(201, "POST", "/api/auth/register", LOGIN);
    walk.enter(&new);
    let code = scene.request_token();
    let body =
        format!(r#"{{"api_key":"simkeya-1","api_secret":"simsecreta","request_token":"{code}"}}"#);
    walk.expect(200, "POST", "/api/portfolio/sync", &body);
    // The prices come two minutes after the sync.
    clock.advance_ms(130_000);
    stepping(&clock, "a first snapshot", || service.get(SNAPSHOT).status == 200);
    stepping(&clock, "a holding at a delayed price", || {
        walk.get(SNAPSHOT);
        walk.get("/api/portfolio/live-prices?symbols=NSE:NIFTY%2050");
        walk.get("/api/health");
        walk.get("/api/portfolio/holdings?live=true")
            .text()
            .contains("\"delay_s\":")
    });
    assert!(service.get(SNAPSHOT).text().contains("\"delay_s\":120"));
}

/// Broker A is gone, and the public provider's prices are newer for some indices and older for
/// others.
pub fn indices_of_their_own_times(checker: &mut Checker) {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let passes = Arc::new(AtomicBool::new(false));
    let (world, has_passed) = (clock.clone(), Arc::clone(&passes));
    let public = Upstream::start(move |asked| {
        let now = world.now();
        let at = |ago_s: i64| now - SignedDuration::from_secs(ago_s);
        let primary = if has_passed.load(Ordering::SeqCst) {
            at(840)
        } else {
            at(3_600)
        };
        let [bank, second]: [Timestamp; 2] =
            ["2026-11-20T11:04:00+05:30", "2026-11-20T11:05:00+05:30"].map(|t| t.parse().unwrap());
        let sector = primary - SignedDuration::from_secs(3);
        let all = [
            ("%5ENSEI", primary),
            ("%5ENSEBANK", bank),
            ("%5EBSESN", second),
            ("%5ECNXIT", sector),
        ];
        rows(asked, &all)
    });
    let settings = SimSettings {
        rate_limits: false,
        ..SimSettings::default()
    };
    let scene = Scene::by_hand(clock.share(), settings);
    let mut config = scene.config();
    config.public.url = public.url();
    let service = scene.start_with(&config);
    stepping(&clock, "broker A", || {
        let json = service.get(SNAPSHOT).json();
        json["market"]["source"] == "broker_a" && json["market"]["stale"] == false
    });
    scene.fault("broker_a", r#"{"kind":"refuse"}"#);
    clock.advance_ms(20 * 60_000);
    let walk = &mut Walk::new(&service, checker);
    stepping(&clock, "two indices of the public provider", || {
        let json = walk.get(SNAPSHOT).json();
        assert_eq!(json["market"]["source"], "broker_a");
        ["bankindex", "index2"]
            .iter()
            .all(|name| of_public(&json, name))
    });
    passes.store(true, Ordering::SeqCst);
    stepping(&clock, "a fresh index beside one that stands", || {
        let json = walk.get(SNAPSHOT).json();
        let market = &json["market"];
        market["source"] == "public" && market["stale"] == true && of_public(&json, "index1")
    });
}

fn of_public(json: &Value, name: &str) -> bool {
    let of = |what: &str| json[&*format!("{name}_{what}")].clone();
    of("source") == "public" && of("stale").is_boolean() && of("delay_s").is_number()
}

/// Rows of the requested indices, each with its own time.
fn rows(asked: &Asked, indices: &[(&str, Timestamp)]) -> Said {
    let row = |(name, at): &(&str, Timestamp)| {
        asked.target.contains(name).then(|| {
            let symbol = name.replace("%5E", "^");
            let at = at.as_second();
            format!(
                r#"{{"symbol":"{symbol}","response":[{{"meta":{{"currency":"INR",
                "symbol":"{symbol}","regularMarketTime":{at},"regularMarketPrice":20000.5,
                "previousClose":19900,"range":"1d"}}}}]}}"#
            )
        })
    };
    let rows: Vec<String> = indices.iter().filter_map(row).collect();
    Said::json(format!(r#"{{"spark":{{"result":[{}],"error":null}}}}"#, rows.join(",")))
}

fn stepping(clock: &ManualClock, what: &str, mut holds: impl FnMut() -> bool) {
    until(what, || {
        clock.advance_ms(500);
        holds().then_some(())
    });
}
