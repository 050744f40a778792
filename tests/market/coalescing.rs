//! Many clients at once: their cost in broker calls and in memory.

use crate::support::{PRICES, Scene, TRADING, until};
use bhav::sim::SimSettings;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

const CLIENTS: usize = 300;
const SYMBOLS: usize = 400;
const SYMBOLS_PER_REQUEST: usize = 50;

/// Symbols that the simulator trades, encoded for a query.
fn universe() -> Vec<String> {
    let rows = include_str!("../../src/sim/exchange/universe.csv")
        .lines()
        .skip(1);
    let symbols = rows.map(|row| {
        let mut columns = row.split(',');
        let (exchange, ticker) = (columns.next().unwrap(), columns.next().unwrap());
        format!("{exchange}:{ticker}")
            .replace(' ', "+")
            .replace('&', "%26")
    });
    symbols.take(SYMBOLS).collect()
}

#[test]
fn three_hundred_clients_cost_the_broker_one_call_a_second() {
    // The simulator is as strict as the broker, and the service has its normal interval.
    let scene = Scene::with(TRADING, SimSettings::default());
    let mut config = scene.config();
    config.broker_a.quote_interval_ms = 1_050;
    config.cache.miss_wait_ms = 10_000;
    let service = scene.start_with(&config);
    service.await_instruments();
    let symbols = universe();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (symbols, service) = (&symbols, &service);
            scope.spawn(move || {
                // Steps that share no factor with 400 reach all symbols.
                let asked = (0..SYMBOLS_PER_REQUEST).map(|at| &*symbols[(client * 7 + at) % 400]);
                let target = format!("{PRICES}{}", asked.collect::<Vec<_>>().join(","));
                let answer = service.client().get(&target).with_status(200);
                assert_eq!(answer.quoted().len(), SYMBOLS_PER_REQUEST, "{}", answer.text());
                assert!(answer.unavailable().is_empty());
            });
        }
    });
    let stats = scene.stats();
    assert_eq!(stats["max_quote_calls_in_1s"].as_u64(), Some(1), "{stats}");
    assert!(stats["rejected"].as_object().unwrap().is_empty(), "{stats}");
    assert_eq!(service.health()["feeds"]["broker_a"]["failures"].as_u64(), Some(0));
}

/// Only the public provider, whose budget is a batch of twenty every 15 seconds.
#[test]
fn no_number_of_clients_spends_the_public_budget() {
    let (scene, service) = Scene::trading_with(|config| {
        config.broker_a.access_token = None;
        config.public.batch_interval_ms = 15_000;
        config.cache.miss_wait_ms = 500;
    });
    service.fresh_snapshot();
    let symbols = universe();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS / 3 {
            let (symbols, service) = (&symbols, &service);
            scope.spawn(move || {
                let real = (0..20).map(|at| symbols[(client * 7 + at) % SYMBOLS].clone());
                let made_up = (0..20).map(|at| format!("NSE:MADEUP{client}X{at}"));
                let target =
                    format!("{PRICES}{}", real.chain(made_up).collect::<Vec<_>>().join(","));
                let mut connection = service.client();
                for _ in 0..2 {
                    let answer = connection.get(&target);
                    assert!(matches!(answer.status, 200 | 503), "{}", answer.text());
                }
            });
        }
    });
    let stats = scene.stats();
    let calls: u64 = ["public.spark", "public.spark_v8", "public.chart"]
        .iter()
        .map(|route| stats["requests"][*route].as_u64().unwrap_or(0))
        .sum();
    let elapsed_ms = service.health()["uptime_s"].as_u64().unwrap() * 1_000 + 1_000;
    assert!(calls <= 1 + elapsed_ms / 15_000, "{calls} calls in {elapsed_ms} ms: {stats}");
}

#[test]
fn the_first_level_never_holds_more_than_it_may() {
    const ENTRIES_MAX: u64 = 40;
    let (_scene, service) = Scene::trading_with(|config| {
        config.cache.l1_entries_max = ENTRIES_MAX as usize;
    });
    service.await_instruments();
    for chunk in universe().chunks(30) {
        let answer = service.prices(&chunk.join(","));
        assert_eq!(answer.status, 200);
        let size = service.health()["cache_l1"]["size"].as_u64().unwrap();
        assert!(size <= ENTRIES_MAX, "{size}");
    }
    until("evictions to show", || {
        let l1 = &service.health()["cache_l1"];
        assert!(l1["size"].as_u64().unwrap() <= ENTRIES_MAX);
        l1["evictions"]
            .as_u64()
            .filter(|evictions| *evictions > SYMBOLS as u64 / 2)
    });
}

/// Of docs/feeds.md: symbols that no list has in one call of broker A.
const UNLISTED_IN_A_CALL: u64 = 20;

#[test]
fn made_up_symbols_fill_no_more_than_their_part_of_the_calls() {
    let (scene, service) = Scene::trading();
    service.await_instruments();
    assert_eq!(service.prices("NSE:INFY").quoted(), ["NSE:INFY"]);
    let size = || service.health()["cache_l1"]["size"].as_u64().unwrap();
    let held = until("INFY to be counted", || Some(size()).filter(|size| *size > 0));
    let quote_calls = || {
        let requests = &scene.stats()["requests"];
        let of = |route: &str| requests[route].as_u64().unwrap_or(0);
        of("broker_a.quote") + of("broker_a.ohlc") + of("public.spark")
    };
    let before = quote_calls();
    for batch in 0..20 {
        let made_up: Vec<String> = (0..50)
            .map(|at| format!("NSE:MADEUP{batch}X{at}"))
            .collect();
        let answer = service.prices(&made_up.join(","));
        assert_eq!((answer.status, answer.unavailable().len()), (200, 50));
    }
    // Health is made each second, so wait for a later one.
    let misses = service.health()["cache_l1"]["misses"].as_u64().unwrap();
    until("health of a later second", || {
        let report = service.health();
        (report["cache_l1"]["misses"].as_u64().unwrap() >= misses.max(1_000)).then_some(())
    });
    // The few listed symbols of others' rounds come beside them.
    let tried = UNLISTED_IN_A_CALL * (quote_calls() - before);
    assert!(
        size() <= held + 20 + tried,
        "{} after {held}, {tried} may have been tried",
        size()
    );
    assert!(size() < 500, "{} of a thousand made-up symbols", size());
    assert_eq!(service.prices("NSE:INFY").quoted(), ["NSE:INFY"]);
}
