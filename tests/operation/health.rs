//! `GET /api/health`: its fields, and its status when parts are broken.

use crate::support::{Scene, TRADING, until};
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

const WARMER_STATES: [&str; 5] = ["starting", "ok", "stale", "failing", "paused"];

#[test]
fn the_fields_of_the_contract() {
    let (_scene, service) = Scene::trading();
    let json = until("ok", || Some(service.health()).filter(|json| json["status"] == "ok"));
    assert!(json["version"] == env!("CARGO_PKG_VERSION") && json["database"] == "ok");
    assert!(json["uptime_s"].is_u64());
    for name in ["size", "hits", "misses", "evictions"] {
        assert!(json["cache_l1"][name].is_u64(), "cache_l1.{name}");
    }
    for name in ["hits", "misses", "errors"] {
        assert!(json["cache_l2"][name].is_u64(), "cache_l2.{name}");
    }
    assert_eq!(json["cache_l2"]["backend"], "sqlite");
    let warmers = json["warmers"].as_object().unwrap();
    assert!(!warmers.is_empty());
    for (name, state) in warmers.iter() {
        assert!(WARMER_STATES.contains(&state.as_str().unwrap()), "{name}: {state}");
    }
    assert!(
        json["disclaimer"]
            .as_str()
            .unwrap()
            .contains("not investment advice")
    );
    let answer = service.get("/api/health");
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
}

#[test]
fn clear_text_to_another_machine_is_told() {
    let (_scene, service) = Scene::trading_with(|config| {
        config.broker_b.url = "http://broker.example".to_owned();
    });
    let json = until("ok", || Some(service.health()).filter(|json| json["status"] == "ok"));
    let exposed = json["exposed"].as_array().unwrap();
    assert_eq!(exposed.len(), 1, "{json}");
    assert_eq!(exposed[0]["setting"], "BHAV_BROKERB_URL");
    assert_eq!(exposed[0]["reason"], "clear_text");
}

#[test]
fn down_is_503() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let service = scene.start();
    let answer = until("the failures to show", || {
        let answer = service.get("/api/health");
        (answer.json()["warmers"]["index"] == "failing").then_some(answer)
    });
    assert_eq!((answer.status, answer.json()["status"].as_str()), (503, Some("down")));
    assert!(answer.header("retry-after").is_some());
    assert_eq!(answer.json()["database"], "ok", "the database is not what is down");
}

#[test]
fn without_broker_a_it_is_degraded() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a", r#"{"kind":"refuse"}"#);
    let service = scene.start();
    service.snapshot_where("public", |json| json["market"]["source"] == "public");
    let settled = |json: &Value| json["status"] == "degraded" && json["warmers"]["index"] == "ok";
    let json = until("degraded", || Some(service.health()).filter(settled));
    assert_ne!(json["feeds"]["broker_a"]["state"], "ok");
    assert_eq!(json["feeds"]["public"]["state"], "ok");
    assert_eq!(service.get("/api/health").status, 200);
}

/// A refusal is the request's fault, and a broker that refuses every call has a fault of its own.
#[test]
fn the_circuit_of_a_broker_that_refuses_every_quote_call_opens() {
    const OPEN_MS: i64 = 60_000;
    let scene = Scene::still_at(TRADING);
    let mut config = scene.config();
    config.upstream.breaker_open_ms = OPEN_MS as u64;
    config.upstream.breaker_open_max_ms = OPEN_MS as u64;
    let service = scene.start_with(&config);
    let health_where = |what: &str, holds: &dyn Fn(&Value) -> bool| {
        until(what, || {
            scene.advance_ms(250);
            let health = service.health();
            if holds(&health) {
                Ok(health)
            } else {
                Err(health["feeds"].to_string())
            }
        })
    };
    let state = |health: &Value| {
        health["feeds"]["broker_a"]["state"]
            .as_str()
            .map(str::to_owned)
    };
    health_where("broker A", &|health| state(health).as_deref() == Some("ok"));
    scene.fault("broker_a", r#"{"kind":"bad_request"}"#);
    let rounds = |health: &Value| health["feeds"]["public"]["rounds"].as_u64().unwrap();
    let open = health_where("the circuit", &|health| state(health).as_deref() == Some("open"));
    let calls = || {
        scene.stats()["requests"]["broker_a.quote"]
            .as_u64()
            .unwrap()
    };
    let before = calls();
    assert!(before >= 10, "only {before} calls");
    let later = health_where("calls of the other", &|health| rounds(health) > rounds(&open) + 5);
    assert_eq!((calls(), state(&later).as_deref()), (before, Some("open")), "{later}");
    assert_eq!(later["status"], "degraded", "{later}");
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    scene.advance_ms(OPEN_MS);
    health_where("broker A again", &|health| state(health).as_deref() == Some("ok"));
}

/// Broker A leaves an index out of its answers and has all else.
#[test]
fn an_index_that_broker_a_lacks_comes_from_the_public_provider_and_degrades_nothing() {
    for lacking in [
        "NSE:NIFTY 50",
        "NSE:NIFTY BANK",
        "BSE:SENSEX",
        "NSE:NIFTY IT",
    ] {
        let scene = Scene::at(TRADING);
        let order = format!(r#"{{"unquoted":["{lacking}"]}}"#);
        assert_eq!(scene.control("POST", "broker_a/instruments", &order).status, 200);
        let service = scene.start();
        let field = match lacking {
            "NSE:NIFTY 50" => Some("index1_price"),
            "NSE:NIFTY BANK" => Some("bankindex_price"),
            "BSE:SENSEX" => Some("index2_price"),
            _ => None,
        };
        let is_whole = |json: &Value| {
            let lead = |name: &str| json[name].is_number();
            json["market"]["stale"] == false && field.is_none_or(lead)
        };
        service.snapshot_where("each index", is_whole);
        let ok = |json: &Value| {
            json["status"] == "ok" && json["feeds"]["broker_a"]["failures"].as_i64() == Some(0)
        };
        let json = until("health", || Some(service.health()).filter(ok));
        assert_eq!(json["feeds"]["broker_a"]["state"], "ok", "{lacking}: {json}");
        // Shares go on to come from broker A.
        let share = until("a share", || {
            let answer = service.prices("NSE:INFY");
            (answer.status == 200).then(|| answer.json()["quotes"][0].clone())
        });
        assert_eq!(share["source"], "broker_a", "{lacking}: {share}");
    }
}

#[test]
fn a_state_directory_that_breaks_is_reported_and_prices_go_on() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.state_dir = scene.state.path().join("state");
    std::fs::create_dir_all(config.state_dir.join("l2.sqlite")).unwrap();
    std::fs::create_dir_all(config.state_dir.join("bhav.sqlite")).unwrap();
    let service = scene.start_with(&config);
    service.fresh_snapshot();
    let json = until("a report", || {
        Some(service.health()).filter(|json| json["warmers"]["index"] == "ok")
    });
    assert_eq!(
        (json["status"].as_str(), json["database"].as_str()),
        (Some("degraded"), Some("unavailable"))
    );
    assert_eq!(json["cache_l2"]["backend"], "none");
}
