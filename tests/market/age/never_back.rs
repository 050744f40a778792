//! Of two prices of one symbol the later one is shown, whatever its source. The seeded days
//! (`tests/days`) hold this over failures and restarts; here is what they do not play.

use jiff::{SignedDuration, Timestamp};
use sonic_rs::JsonValueTrait;

use super::{Lapse, QUARTER_S, time};
use crate::support::{PRICES, SNAPSHOT, Scene, TRADING, until};

/// Broker A's spare route sends rows without a time. They count as no newer than the index.
#[test]
fn rows_without_a_time_look_no_newer_than_the_index_beside_them() {
    let mut lapse = Lapse::with(QUARTER_S as i64);
    lapse.step_until(100, "broker A", |seen| seen.is_fresh_of("broker_a"));
    lapse.breaks("broker_a.quote", "wrong_types");
    lapse.scene.halt("NSE:SBIN", true);
    let scene = &lapse.scene;
    let asked = || {
        scene.stats()["requests"]["broker_a.ohlc"]
            .as_u64()
            .unwrap_or(0)
    };
    let clock = lapse.clock.share();
    let mut client = lapse.service.client();
    until("the spare route", || {
        clock.advance_ms(100);
        drop(client.get(SNAPSHOT));
        (asked() > 3).then_some(())
    });
    // The clock stands when the service stops, so no connection would be closed as idle.
    drop(client);
    lapse.step_until(100, "fresh by the spare route", |seen| {
        let index = time(&seen.quote("NSE:NIFTY 50")["as_of"]);
        for symbol in ["NSE:INFY", "NSE:SBIN"] {
            let share = seen.quote(symbol);
            assert!(time(&share["as_of"]) <= index, "{share} beside {index}");
        }
        seen.is_fresh_of("broker_a")
    });
    // A share without trades is no older for that: the answer confirms its price.
    let began = clock.now();
    lapse.step_until(200, "some time without a trade", |seen| {
        let (share, index) = (seen.quote("NSE:SBIN"), seen.quote("NSE:NIFTY 50"));
        // Quotes are applied one after the other, so at most a round behind. On a very busy machine
        // a round takes longer, and then the price must be marked.
        let behind_s = time(&index["as_of"])
            .duration_since(time(&share["as_of"]))
            .as_secs();
        let is_marked = behind_s > 3 && share["stale"] == true;
        assert!((0..=3).contains(&behind_s) || is_marked, "{share} beside {index}");
        clock.now().duration_since(began).as_secs() > 20
    });
    // A price that stands still has a time that does not move.
    lapse.breaks("broker_a.ohlc", "mute_price");
    let muted_at = lapse.clock.now();
    lapse.step_until(100, "the mark", |seen| {
        for quote in &seen.quotes {
            let newest = muted_at + SignedDuration::from_secs(1);
            assert!(time(&quote["as_of"]) <= newest, "{quote}, all stands since {muted_at}");
        }
        seen.market()["stale"] == true && seen.quotes.iter().all(|quote| quote["stale"] == true)
    });
}

/// Like `bhav demo` on an earlier run's state: its clock starts again at eleven.
#[test]
fn kept_prices_of_the_future_are_dropped() {
    let late = "2026-11-20T11:05:00+05:30";
    let scene = Scene::at(late);
    let service = scene.start();
    service.await_instruments();
    service.fresh_snapshot();
    assert_eq!(service.prices("NSE:INFY").quoted(), ["NSE:INFY"]);
    service.stop();
    let mut again = Scene::at(TRADING);
    again.state = scene.state;
    again.fault("*", r#"{"kind":"refuse"}"#);
    let service = again.start();
    service
        .get(SNAPSHOT)
        .expect_problem(503, "snapshot_not_ready");
    service
        .prices("NSE:INFY")
        .expect_problem(503, "quotes_unavailable");
    assert_eq!(again.control("DELETE", "faults", "").status, 200);
    let market = service.fresh_snapshot().json()["market"].clone();
    assert!(time(&market["as_of_ist"]) < late.parse::<Timestamp>().unwrap(), "{market}");
}

/// Reads an index's quote and then the snapshot, as fast as possible.
#[test]
fn the_snapshot_is_never_behind_a_quote_of_its_index() {
    let (_scene, service) = Scene::trading();
    service.fresh_snapshot();
    let mut client = service.client();
    let mut seconds = Vec::new();
    until("some seconds of prices", || {
        let quotes = client.get(&format!("{PRICES}NSE:NIFTY%2050")).json();
        let market = client.get(SNAPSHOT).json()["market"].clone();
        let (quote, shown) = (time(&quotes["quotes"][0]["as_of"]), time(&market["as_of_ist"]));
        assert!(shown >= quote, "{quotes} and then {market}");
        seconds.push(shown);
        seconds.dedup();
        (seconds.len() > 5).then_some(())
    });
}
