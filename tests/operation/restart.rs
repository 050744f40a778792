//! A restart while both feeds are dead: the last prices are served, marked as stale.

use crate::market::figures::number;
use crate::support::{Client, PRICES, Program, SNAPSHOT, Scene, TRADING, serve, until};
use sonic_rs::JsonValueTrait;

fn one(symbol: &str) -> Vec<String> {
    vec![symbol.to_owned()]
}

#[test]
fn after_a_stop_the_last_snapshot_and_quotes_are_there_at_once() {
    let (scene, service) = Scene::trading();
    service.await_instruments();
    // Its signals are made of candles, which nobody gives once both feeds are dead.
    service.snapshot_where("fresh and with the day's list", |json| {
        json["market"]["stale"] == false && json["signals_as_of"].is_str()
    });
    assert_eq!(service.prices("NSE:INFY,NSE:M%26M").quoted().len(), 2);
    scene.refuse_all();
    let last = service.snapshot_where("stale", |json| json["market"]["stale"] == true);
    service.stop();

    let service = scene.start();
    // The very first answer, without a wait.
    let first = service.get(SNAPSHOT).with_status(200);
    assert_eq!(first.json()["market"]["stale"], true);
    assert_eq!(first.json()["market"]["simulated"], true);
    assert_eq!(first.text(), last.text(), "the same prices, not merely some");
    let quotes = service.prices("NSE:M%26M,NSE:INFY");
    assert_eq!(quotes.quoted(), ["NSE:M&M", "NSE:INFY"]);
    assert_eq!(quotes.text().matches("\"stale\":true").count(), 2, "{}", quotes.text());
    assert_eq!(quotes.text().matches("\"simulated\":true").count(), 2, "{}", quotes.text());
    // The day's instrument list was kept as well. What it lacks would be tried, and nobody answers.
    assert_eq!(service.health()["market"]["instruments_origin"], "broker_a");
    let beside = service.prices("NSE:INFY,NSE:NOSUCH");
    assert_eq!((beside.quoted(), beside.unavailable()), (one("NSE:INFY"), one("NSE:NOSUCH")));
    service
        .prices("NSE:NOSUCH")
        .expect_problem(503, "quotes_unavailable");
}

#[test]
fn after_a_restart_a_feed_that_answers_makes_it_fresh() {
    let (scene, service) = Scene::trading();
    service.fresh_snapshot();
    service.stop();
    let service = scene.start();
    assert_eq!(service.get(SNAPSHOT).status, 200);
    service.fresh_snapshot();
}

#[test]
fn a_damaged_second_level_does_not_keep_the_service_down() {
    let scene = Scene::at(TRADING);
    std::fs::write(scene.state.path().join("l2.sqlite"), b"no database at all".repeat(400))
        .unwrap();
    let service = scene.start();
    service.fresh_snapshot();
}

/// The real program is killed without warning. Then `serve` starts on its state.
#[test]
fn after_a_kill_the_state_directory_serves() {
    let scene = Scene::at(TRADING);
    let mut first = Program::demo(scene.state.path());
    let mut client = Client::connect(&first.address);
    let target = format!("{PRICES}NSE:INFY");
    until("a quote", || (client.get(&target).status == 200).then_some(()));
    let mut written = || {
        let report = client.get("/api/health");
        let text = report.text();
        let at = text.find(r#""name":"cache""#)?;
        Some(number(&text[at..], "completed"))
    };
    let before = until("a report", &mut written);
    // One write may have begun already. The next one has the quote.
    let enough = before + rust_decimal::Decimal::TWO;
    until("its write to disk", || written().filter(|done| *done >= enough));
    first.kill();

    scene.refuse_all();
    let state = scene.state.path().join("demo");
    let second = Program::of(&mut serve(&scene, &state));
    let mut client = Client::connect(&second.address);
    let snapshot = client.get(SNAPSHOT).with_status(200);
    let json = snapshot.json();
    assert!(json["market"]["stale"] == true && json["market"]["simulated"] == true);
    let quotes = client.get(&target);
    assert_eq!(quotes.quoted(), ["NSE:INFY"]);
    assert!(quotes.text().contains("\"stale\":true"), "{}", quotes.text());
}
