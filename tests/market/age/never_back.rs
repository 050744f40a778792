//! Of two prices of one symbol the later one is shown, whatever its source.

use jiff::{SignedDuration, Timestamp};
use sonic_rs::JsonValueTrait;

use super::{Lapse, MEASURED_S, QUARTER_S, UNMARKED_MS_MAX, Watch, expect_delay, settings, time};
use crate::support::wait::at_once;
use crate::support::{PRICES, SNAPSHOT, Scene, TRADING, until};

/// Runs from the fault until the public provider, with a delay of two minutes here, has newer
/// prices than broker A.
#[test]
fn at_a_failover_the_later_price_stays_until_the_other_source_has_passed_it() {
    const DELAY_S: u64 = 120;
    at_once(["refuse", "mute_price", "nulls", "rate_limit"], |fault| {
        let mut lapse = Lapse::with(DELAY_S as i64);
        lapse.step_until(100, "broker A", |seen| seen.is_fresh_of("broker_a"));
        lapse.breaks("broker_a", fault);
        let broken_at = lapse.clock.now();
        lapse.step_until(100, "the mark", |seen| {
            seen.market()["stale"] == true && seen.quotes.iter().all(|quote| quote["stale"] == true)
        });
        let marked_ms = lapse.clock.now().duration_since(broken_at).as_millis() as i64;
        assert!(marked_ms <= UNMARKED_MS_MAX + 2_000, "{fault}: marked after {marked_ms} ms");
        let mut client = lapse.service.client();
        let clock = lapse.clock.share();
        lapse.step_until(20, "a share nobody asked for before", |seen| {
            assert_eq!(seen.market()["source"], "broker_a", "{fault}: nothing has passed it");
            clock.advance_ms(20);
            let other = client.get(&format!("{PRICES}NSE:TCS"));
            if other.status != 200 {
                return false;
            }
            let quote = other.json()["quotes"][0].clone();
            if quote["source"] == "public" {
                expect_delay(&quote, DELAY_S);
            } else {
                // A mute feed answers too.
                assert_eq!(fault, "mute_price", "{quote}");
            }
            // Whichever source was asked before broker A was given up.
            assert_eq!(quote["stale"], quote["source"] != "public", "{quote}");
            true
        });
        lapse.step_until(1_000, "the public provider", |seen| seen.is_fresh_of("public"));
        let passed_s = lapse.clock.now().duration_since(broken_at).as_secs() as u64;
        assert!(passed_s + MEASURED_S >= DELAY_S, "{fault}: after {passed_s} s");
        assert_eq!(lapse.scene.control("DELETE", "faults", "").status, 200);
        lapse.step_until(100, "broker A again", |seen| seen.is_fresh_of("broker_a"));
        lapse.service.stop();
    });
}

#[test]
fn no_time_goes_back_over_a_restart_either() {
    let scene = Scene::with(TRADING, settings(QUARTER_S as i64));
    let service = scene.start();
    service.await_instruments();
    let mut watch = Watch::default();
    until("broker A", || {
        watch.look(&mut service.client()).filter(|seen| seen.is_fresh_of("broker_a"))
    });
    scene.fault("broker_a", r#"{"kind":"refuse"}"#);
    service.stop();
    let service = scene.start();
    let first = watch.look(&mut service.client()).unwrap();
    assert!(first.market()["stale"] == true && first.market()["source"] == "broker_a");
    until("the public provider is asked, and its answers are older", || {
        let seen = watch.look(&mut service.client()).unwrap();
        assert_eq!(seen.market()["source"], "broker_a");
        (service.health()["feeds"]["public"]["rounds"].as_u64() > Some(4)).then_some(())
    });
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    until("broker A", || {
        watch.look(&mut service.client()).filter(|seen| seen.is_fresh_of("broker_a"))
    });
    service.stop();
}

/// Broker A's spare route sends rows without a time. They count as no newer than the index.
#[test]
fn rows_without_a_time_look_no_newer_than_the_index_beside_them() {
    let mut lapse = Lapse::with(QUARTER_S as i64);
    lapse.step_until(100, "broker A", |seen| seen.is_fresh_of("broker_a"));
    lapse.breaks("broker_a.quote", "wrong_types");
    let halt = r#"{"symbol":"NSE:SBIN","halted":true}"#;
    assert_eq!(lapse.scene.control("POST", "trading", halt).status, 200);
    let scene = &lapse.scene;
    let asked = || scene.stats()["requests"]["broker_a.ohlc"].as_u64().unwrap_or(0);
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
        let behind_s = time(&index["as_of"]).duration_since(time(&share["as_of"])).as_secs();
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
    lapse.service.stop();
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
    service.get(SNAPSHOT).expect_problem(503, "snapshot_not_ready");
    service.prices("NSE:INFY").expect_problem(503, "quotes_unavailable");
    assert_eq!(again.control("DELETE", "faults", "").status, 200);
    let market = service.fresh_snapshot().json()["market"].clone();
    assert!(time(&market["as_of_ist"]) < late.parse::<Timestamp>().unwrap(), "{market}");
    service.stop();
}

/// Reads an index's quote and then the snapshot, as fast as possible.
#[test]
fn the_snapshot_is_never_behind_a_quote_of_its_index() {
    let scene = Scene::at(TRADING);
    let service = scene.start();
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
    service.stop();
}

/// Also for a source without any price yet.
#[test]
fn a_first_price_of_the_future_is_not_believed() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a.quote", r#"{"kind":"future_time","by_s":60,"count":5}"#);
    let service = scene.start();
    let mut watch = Watch::default();
    let mut client = service.client();
    until("broker A", || {
        let seen = watch.look(&mut client)?;
        let newest = scene.clock.now() + SignedDuration::from_secs(5);
        assert!(time(&seen.market()["as_of_ist"]) <= newest, "{}", seen.market());
        Some(seen).filter(|seen| seen.is_fresh_of("broker_a"))
    });
    service.stop();
}

/// A time ahead of everything else is rejected, and keeps nothing out.
#[test]
fn a_wrong_time_blocks_no_price() {
    let scene = Scene::at(TRADING);
    let service = scene.start();
    service.await_instruments();
    let mut watch = Watch::default();
    let mut client = service.client();
    until("broker A", || watch.look(&mut client).filter(|seen| seen.is_fresh_of("broker_a")));
    let rounds = || service.health()["feeds"]["broker_a"]["rounds"].as_u64().unwrap();
    // A feed's delay is known once its times have moved.
    let known = scene.clock.now() + SignedDuration::from_secs(3);
    until("the feed to be known", || {
        let seen = watch.look(&mut client)?;
        (time(&seen.market()["as_of_ist"]) >= known).then_some(())
    });
    for by_s in [30, 240, 86_400] {
        scene.fault(
            "broker_a.quote",
            &format!(r#"{{"kind":"future_time","by_s":{by_s},"count":2}}"#),
        );
        let before = rounds();
        until("broker A is fresh after it", || {
            let seen = watch.look(&mut client)?;
            for quote in &seen.quotes {
                let newest = scene.clock.now() + SignedDuration::from_secs(1);
                assert!(time(&quote["as_of"]) <= newest, "by {by_s} s: {quote}");
            }
            (rounds() > before + 4 && seen.is_fresh_of("broker_a")).then_some(())
        });
    }
    service.stop();
}
