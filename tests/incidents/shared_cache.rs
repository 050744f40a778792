//! The second cache level on a server that nodes share: another node's reads, and the effect on
//! clients when the server dies or stops.

use bhav::base::Clock;
use bhav::nodes::valkey::Namespace;
use rustix::process::Signal;
use sonic_rs::{JsonValueTrait, Value};

use crate::support::{SNAPSHOT, Scene, SharedServer, TRADING, until};

#[test]
fn what_one_node_knew_another_serves_at_once() {
    let Some(server) = SharedServer::start("what_one_node_knew_another_serves_at_once") else {
        return;
    };
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.valkey.url = Some(server.address());
    // A namespace or a key of its own would be another installation's.
    config.valkey.namespace = Some(Namespace::parse("shared").unwrap());
    config.auth.jwt_secret = Some("the same secret on both machines".into());
    let service = scene.start_with(&config);
    service.fresh_snapshot();
    assert_eq!(service.prices("NSE:INFY,NSE:M%26M").quoted().len(), 2);
    let backend = service.health()["cache_l2"]["backend"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(["redis", "valkey"].contains(&&*backend), "{backend}");
    scene.refuse_all();
    let last = service.snapshot_where("stale", |json| json["market"]["stale"] == true);
    service.stop();

    // Another machine shares only the server.
    let other = tempfile::tempdir().unwrap();
    config.state_dir = other.path().into();
    let service = scene.start_with(&config);
    let first = service.get(SNAPSHOT);
    // Each node makes its signals itself.
    let of_signals = |text: &str| text.replace(r#""2026-11-19","sectors""#, r#"null,"sectors""#);
    assert_eq!((first.status, of_signals(first.text())), (200, of_signals(last.text())));
    let quotes = service.prices("NSE:M%26M,NSE:INFY");
    assert_eq!(quotes.quoted(), ["NSE:M&M", "NSE:INFY"]);
    assert_eq!(quotes.text().matches("\"stale\":true").count(), 2, "{}", quotes.text());
}

#[test]
fn a_shared_server_that_dies_shows_in_health_and_prices_go_on() {
    let name = "a_shared_server_that_dies_shows_in_health_and_prices_go_on";
    let Some(mut server) = SharedServer::start(name) else {
        return;
    };
    let (_scene, service) = Scene::trading_with(|config| {
        config.valkey.url = Some(server.address());
    });
    service.fresh_snapshot();
    let health = |what: &str, holds: fn(&Value) -> bool| {
        until(what, || Some(service.health()).filter(holds));
    };
    health("a write", |json| json["warmers"]["persist"] == "ok");
    server.kill();
    health("the failure", |json| {
        json["warmers"]["persist"] == "failing" && json["cache_l2"]["errors"].as_u64() > Some(0)
    });
    service.fresh_snapshot();
    server.restart();
    health("a write again", |json| json["warmers"]["persist"] == "ok");
}

#[test]
fn a_shared_server_that_stopped_holds_up_neither_start_nor_end() {
    let name = "a_shared_server_that_stopped_holds_up_neither_start_nor_end";
    let Some(server) = SharedServer::start(name) else {
        return;
    };
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.valkey.url = Some(server.address());
    server.signal(Signal::STOP);
    let timer = Clock::system();
    let service = scene.start_with(&config);
    service.fresh_snapshot();
    assert!(timer.monotonic_ms() < 15_000, "{}", timer.monotonic_ms());
    service.stop();
    server.signal(Signal::CONT);
}
