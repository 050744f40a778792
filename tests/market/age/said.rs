//! All members that describe an age.

use bhav::base::Clock;
use bhav::cache::Peek;
use jiff::SignedDuration;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::{
    LEADS, Lapse, MEASURED_S, PUBLIC_STALE_MS, QUARTER_S, UNMARKED_MS_MAX, Watch, expect_delay,
    settings, time,
};
use crate::support::wait::at_once;
use crate::support::{PRICES, SNAPSHOT, Scene, TRADING, bhav, run, state_flag, until};

#[test]
fn the_public_provider_alone_says_how_far_it_is_behind() {
    let scene = Scene::with(TRADING, settings(QUARTER_S as i64));
    let mut config = scene.config();
    config.broker_a.access_token = None;
    config.broker_a.api_key = None;
    let service = scene.start_with(&config);
    let market = service.fresh_snapshot().json()["market"].clone();
    assert_eq!(market["source"], "public");
    expect_delay(&market, QUARTER_S);
    let behind = scene
        .clock
        .now()
        .duration_since(time(&market["as_of_ist"]))
        .as_secs() as u64;
    assert!(behind.abs_diff(QUARTER_S) <= MEASURED_S, "{market}");
    let quote = until("a quote", || {
        let answer = service.prices("NSE:INFY");
        (answer.status == 200).then(|| answer.json()["quotes"][0].clone())
    });
    assert_eq!(quote["stale"], false);
    expect_delay(&quote, QUARTER_S);
    let health = until("health", || {
        let health = service.health();
        (health["feeds"]["public"]["state"] == "ok").then_some(health)
    });
    expect_delay(&health["feeds"]["public"], QUARTER_S);
    expect_delay(&health["market"], QUARTER_S);
    let url = format!("--url=http://{}", service.0.address());
    let now = format!("--now={}", scene.clock.now());
    let state = state_flag(scene.state.path());
    let screen = run(&mut bhav(&["status", &url, &now, &state])).out;
    let row = screen
        .lines()
        .find(|line| line.starts_with("public"))
        .unwrap();
    assert!(row.contains("15 min") && row.contains("behind"), "{row}");
}

#[test]
fn broker_a_runs_behind_nothing_and_says_no_delay() {
    let (_scene, service) = Scene::trading();
    let market = service.snapshot_where("broker A", |json| {
        json["market"]["source"] == "broker_a" && json["market"]["stale"] == false
    });
    assert!(market.json()["market"]["delay_s"].is_null());
    let quote = service.prices("NSE:INFY").json()["quotes"][0].clone();
    assert!(quote["source"] == "broker_a" && quote["delay_s"].is_null(), "{quote}");
}

/// While a call carries only one index, each index has its own time.
#[test]
fn one_symbol_a_call_leaves_each_index_with_a_time_of_its_own() {
    let broken = [("broker_a", "refuse"), ("public.spark", "error_in_200")];
    let mut lapse = Lapse::of(QUARTER_S as i64, true, &broken);
    let mut client = lapse.service.client();
    let mut differed = 0;
    lapse.step_until(50, "three indices of three times", |seen| {
        let as_of = time(&seen.market()["as_of_ist"]);
        // Between the two answers a later call may have fetched the same price.
        let stands = client.get(SNAPSHOT).json() == seen.snapshot;
        for (name, symbol) in LEADS
            .iter()
            .zip(["NSE:NIFTY 50", "NSE:NIFTY BANK", "BSE:SENSEX"])
        {
            let own = &seen.snapshot[&*format!("{name}_as_of")];
            let own = if own.is_null() { as_of } else { time(own) };
            differed += usize::from(own != as_of);
            let quote = seen.quote(symbol);
            if stands && seen.snapshot[&*format!("{name}_price")] == quote["last_price"] {
                assert_eq!(own, time(&quote["as_of"]), "{name}: {}", seen.snapshot);
            }
        }
        differed > 20 && seen.market()["stale"] == false
    });
}

/// At the first failover after a start, and later: a sector's value comes from the feed that leads.
#[test]
fn a_sector_comes_from_the_feed_that_leads_or_is_null() {
    let mut lapse = Lapse::with(30);
    lapse.step_until(100, "broker A", |seen| seen.is_fresh_of("broker_a"));
    lapse.breaks("broker_a", "refuse");
    let mut client = lapse.service.client();
    let mut nulls = 0;
    lapse.step_until(200, "the public provider with every sector", |seen| {
        let sectors = seen.snapshot["sectors"].as_array().unwrap();
        let symbols: Vec<String> = sectors
            .iter()
            .map(|sector| sector["symbol"].as_str().unwrap().replace(' ', "%20"))
            .collect();
        let answer = client.get(&format!("{PRICES}{}", symbols.join(",")));
        let json = answer.json();
        // Between the two answers the other feed may have taken over.
        let again = client.get(SNAPSHOT).json();
        let stands = again["sectors"] == seen.snapshot["sectors"]
            && again["market"]["source"] == seen.market()["source"];
        for sector in sectors
            .iter()
            .filter(|sector| stands && !sector["change_pct"].is_null())
        {
            let quotes = json["quotes"].as_array().unwrap();
            let quote = quotes
                .iter()
                .find(|quote| quote["symbol"] == sector["symbol"])
                .unwrap();
            if quote["change_pct"] == sector["change_pct"] {
                assert_eq!(quote["source"], seen.market()["source"], "{sector} {quote}");
            }
        }
        nulls += sectors
            .iter()
            .filter(|sector| sector["change_pct"].is_null())
            .count();
        seen.market()["source"] == "public"
            && seen.market()["stale"] == false
            && sectors
                .iter()
                .all(|sector| sector["change_pct"].is_number())
    });
}

#[test]
fn signals_are_of_no_date_until_there_is_a_list() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a.historical", r#"{"kind":"refuse"}"#);
    scene.fault("public.chart", r#"{"kind":"refuse"}"#);
    let service = scene.start();
    let json = service.fresh_snapshot().json();
    assert!(json.as_object().unwrap().contains_key(&"signals_as_of"), "{json}");
    assert!(json["signals_as_of"].is_null() && json["signals"].as_array().unwrap().is_empty());
}

#[test]
fn a_stale_quote_that_nobody_kept_fresh_is_waited_for() {
    const DEMAND_MS: u64 = 1_000;
    let (scene, service) = Scene::trading_with(|config| {
        config.cache.demand_ttl_ms = DEMAND_MS;
        config.cache.miss_wait_ms = 10_000;
    });
    service.await_instruments();
    assert_eq!(service.prices("NSE:INFY").json()["quotes"][0]["stale"], false);
    let l1 = &service.0.server().shared().service.state().l1;
    let asked_ms = scene.clock.monotonic_ms();
    until("a quote that is stale and not in demand", || {
        let now_ms = scene.clock.monotonic_ms();
        let stale = matches!(l1.peek("NSE:INFY", now_ms), Peek::Known { stale: true, .. });
        (stale && now_ms > asked_ms + 2 * DEMAND_MS).then_some(())
    });
    let before = scene.clock.now();
    let quote = service.prices("NSE:INFY").json()["quotes"][0].clone();
    assert_eq!(quote["stale"], false, "{quote}");
    assert!(time(&quote["as_of"]) >= before - SignedDuration::from_secs(2), "{quote}");
    // Without an answer from any feed, the request waits no longer than for an unknown symbol.
    scene.refuse_all();
    let bounded = Clock::system();
    until("an old quote all the same", || {
        let quote = service.prices("NSE:INFY").json()["quotes"][0].clone();
        (quote["stale"] == true).then_some(())
    });
    assert!(bounded.monotonic_ms() < 2 * 10_000);
}

#[test]
fn nonsense_of_the_public_provider_is_a_failure_within_its_limit() {
    let faults = [
        "nulls",
        "wrong_types",
        "missing_fields",
        "zero_price",
        "html_5xx",
        "error_in_200",
    ];
    at_once(faults, |fault| {
        let mut lapse = Lapse::public_alone();
        lapse.step_until(50, "the public provider", |seen| seen.is_fresh_of("public"));
        lapse.breaks("public", fault);
        let broken_at = lapse.clock.now();
        lapse.step_until(50, "the mark", |seen| {
            seen.market()["stale"] == true && seen.quotes.iter().all(|quote| quote["stale"] == true)
        });
        let marked_ms = lapse.clock.now().duration_since(broken_at).as_millis() as i64;
        // The scheduler runs five times a second by the machine's clock, and the service's clock is
        // faster here.
        assert!(marked_ms <= PUBLIC_STALE_MS + 2_500, "{fault}: marked after {marked_ms} ms");
        let health = until("health", || {
            lapse.clock.advance_ms(100);
            let health = lapse.service.health();
            (health["status"] != "ok").then_some(health)
        });
        assert_ne!(health["feeds"]["public"]["state"], "ok", "{fault}: {health}");
    });
}

/// Health reports the failure before prices are old.
#[test]
fn rounds_that_fail_are_not_ok_while_prices_are_still_fresh() {
    let (scene, service) = Scene::trading_with(|config| {
        config.broker_a.access_token = None;
        config.broker_a.api_key = None;
    });
    until("health", || (service.health()["status"] == "ok").then_some(()));
    scene.fault("public", r#"{"kind":"nulls"}"#);
    until("health tells it", || {
        let health = service.health();
        let failing = health["feeds"]["public"]["state"] == "failing"
            || health["feeds"]["public"]["state"] == "open";
        (failing && health["status"] == "degraded").then(|| {
            assert_eq!(service.get(SNAPSHOT).json()["market"]["stale"], false);
        })
    });
}

/// A slow answer has the prices of the moment at which it was requested.
#[test]
fn a_slow_answer_is_as_old_as_its_question() {
    let (scene, service) = Scene::trading();
    service.await_instruments();
    let mut watch = Watch::default();
    let mut client = service.client();
    until("broker A", || {
        watch
            .look(&mut client)
            .filter(|seen| seen.is_fresh_of("broker_a"))
    });
    scene.fault("broker_a.quote", r#"{"kind":"delay","delay_ms":3000}"#);
    let rounds = || {
        service.health()["feeds"]["broker_a"]["rounds"]
            .as_u64()
            .unwrap()
    };
    let before = rounds();
    until("some slow answers", || {
        let seen = watch.look(&mut client)?;
        let shown = std::iter::once((seen.market(), "as_of_ist"))
            .chain(seen.quotes.iter().map(|quote| (quote, "as_of")));
        for (shown, name) in shown.filter(|(shown, _)| shown["source"] == "broker_a") {
            let age = scene.clock.now().duration_since(time(&shown[name]));
            let unmarked = shown["stale"] == false;
            assert!(
                !unmarked || age.as_millis() as i64 <= UNMARKED_MS_MAX,
                "{age:?} old, unmarked: {shown}"
            );
        }
        (rounds() >= before + 3).then_some(())
    });
}
