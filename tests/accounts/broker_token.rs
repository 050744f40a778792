//! `GET /brokera/status`: the shared token from unset to dead and back.

use crate::support::{Scene, Service, TRADING, members, until};
use bhav::base::Broker;
use bhav::sim::SimSettings;
use sonic_rs::{JsonValueTrait, Value};

fn status(service: &Service) -> Value {
    let answer = service.get("/brokera/status");
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    answer.json()
}

#[test]
fn never_set() {
    let (_scene, service) = Scene::trading_on(Scene::config_without_tokens);
    let json = status(&service);
    assert_eq!(members(&json), ["initialized", "valid", "token_type"]);
    assert!(json["initialized"] == false && json["valid"] == false && json["token_type"].is_str());
    // Only the public provider serves, and health names the cause.
    service.snapshot_where("public", |json| json["market"]["source"] == "public");
    assert_eq!(service.health()["feeds"]["broker_a"]["state"], "no_token");
}

/// Without an app at broker A only the public provider was wanted, so nothing is wrong.
#[test]
fn without_an_app() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    (config.broker_a.access_token, config.broker_a.api_key) = (None, None);
    let service = scene.start_with(&config);
    service.snapshot_where("public", |json| json["market"]["source"] == "public");
    until("all to be well", || {
        let health = service.health();
        assert_eq!(health["feeds"]["broker_a"]["state"], "off");
        (health["status"] == "ok").then_some(())
    });
}

#[test]
fn set() {
    let (_scene, service) = Scene::trading();
    let json = status(&service);
    let expected = ["initialized", "valid", "token_type", "set_at", "expires_at"];
    assert_eq!(members(&json), expected);
    assert!(json["initialized"] == true && json["valid"] == true);
    assert!(
        json["set_at"]
            .as_str()
            .unwrap()
            .starts_with("2026-11-20T11:00:")
    );
    assert_eq!(json["expires_at"], "2026-11-21T06:00:00+05:30");
}

#[test]
fn refused_by_the_broker_it_is_dead_until_there_is_another() {
    let settings = SimSettings {
        rate_limits: false,
        public_delay_s: 1,
        ..SimSettings::default()
    };
    let scene = Scene::with(TRADING, settings);
    let service = scene.start();
    service.snapshot_where("broker A", |json| json["market"]["source"] == "broker_a");
    assert_eq!(scene.control("POST", "broker_a/expire", "").status, 200);
    until("an invalid token", || {
        let json = status(&service);
        assert_eq!(json["initialized"], true);
        (json["valid"] == false).then_some(())
    });
    service.snapshot_where("public", |json| {
        json["market"]["source"] == "public" && json["market"]["stale"] == false
    });
    until("health to name it", || {
        let report = service.health();
        (report["feeds"]["broker_a"]["state"] == "token_dead").then(|| {
            assert_eq!(report["status"], "degraded");
        })
    });
    let calls = || {
        scene.stats()["requests"]["broker_a.quote"]
            .as_u64()
            .unwrap()
    };
    let before = calls();
    let rounds = |report: &Value| report["feeds"]["public"]["rounds"].as_u64().unwrap();
    let seen = rounds(&service.health());
    until("more public rounds", || (rounds(&service.health()) > seen + 2).then_some(()));
    assert_eq!(calls(), before, "a dead token is not tried again");

    let body = r#"{"access_token":"fresh1"}"#;
    assert_eq!(scene.control("POST", "broker_a/token", body).status, 200);
    let state = service.0.server().shared().service.state();
    let token = state.brokers[Broker::A].client.token();
    token.set("fresh1".into(), "simkeya".into(), scene.clock.now());
    assert_eq!(status(&service)["valid"], true);
    service.snapshot_where("broker A again", |json| json["market"]["source"] == "broker_a");
}

#[test]
fn every_token_ends_at_six_in_the_morning() {
    let scene = Scene::at("2026-11-20T05:59:55+05:30");
    let six = "2026-11-20T06:00:00+05:30".parse().unwrap();
    let service = scene.start();
    until("the end of the token", || {
        let before = scene.clock.now();
        let json = status(&service);
        assert_eq!(json["expires_at"], "2026-11-20T06:00:00+05:30");
        let valid = json["valid"] == true;
        assert!(
            if valid {
                before < six
            } else {
                scene.clock.now() >= six
            },
            "{json}"
        );
        (!valid).then_some(())
    });
    until("health to name it", || {
        (service.health()["feeds"]["broker_a"]["state"] == "token_dead").then_some(())
    });
}

#[test]
fn a_plan_without_market_data_is_a_state_of_its_own() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a.quote", r#"{"kind":"no_permission"}"#);
    scene.fault("broker_a.ohlc", r#"{"kind":"no_permission"}"#);
    let service = scene.start();
    service.snapshot_where("public", |json| json["market"]["source"] == "public");
    assert_eq!(status(&service)["valid"], true, "the token itself is fine");
    until("health to name it", || {
        (service.health()["feeds"]["broker_a"]["state"] == "no_permission").then_some(())
    });
}
