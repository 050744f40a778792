//! `GET /api/index/snapshot`: its body, its headers, its variants.

use crate::market::figures::{percent, raw, shortest};
use crate::support::{SNAPSHOT, Scene, TRADING, members, until};
use bhav::http::message::date::imf_fixdate;
use bhav::sim::SimSettings;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

/// A Sunday: prices stand still, so two clients get the same.
const RESTING: &str = "2026-11-22T11:00:00+05:30";

/// As when a suspended machine wakes: the first answer comes before any thread has looked.
#[test]
fn the_first_answer_after_a_jump_of_time_shows_no_old_price_as_fresh() {
    let scene = Scene::still_at(TRADING);
    let service = scene.start();
    for jump_ms in [5_000, 10_000, 60_000, 600_000].repeat(5) {
        until("a fresh snapshot", || {
            scene.advance_ms(250);
            let answer = service.get(SNAPSHOT);
            (answer.status == 200 && answer.json()["market"]["stale"] == false).then_some(())
        });
        scene.refuse_all();
        scene.advance_ms(jump_ms);
        let first = service.get(SNAPSHOT).with_status(200);
        assert!(!first.text().contains("\"stale\":false"), "{jump_ms}: {}", first.text());
        assert_eq!(first.header("vary"), Some("Accept-Encoding"), "{jump_ms}");
        assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    }
}

#[test]
fn the_body_has_the_fields_of_the_contract() {
    let (_scene, service) = Scene::trading();
    let json = service.fresh_snapshot().json();
    let expected = [
        "index1_price",
        "index1_change",
        "bankindex_price",
        "bankindex_change",
        "index2_price",
        "index2_change",
        "signals",
        "signals_as_of",
        "sectors",
        "market",
    ];
    assert_eq!(members(&json), expected);
    for name in &expected[..6] {
        assert!(json[*name].is_number(), "{name}");
    }
    assert!(
        json["signals"]
            .as_array()
            .is_some_and(sonic_rs::Array::is_empty)
    );
    let sectors = json["sectors"].as_array().unwrap();
    assert!(!sectors.is_empty());
    for sector in sectors.iter() {
        assert_eq!(members(sector), ["name", "symbol", "change_pct"]);
        assert!(sector["name"].is_str() && sector["symbol"].is_str());
        assert!(sector["change_pct"].is_number(), "{sector}");
    }
    let market = &json["market"];
    let expected =
        "is_open phase next_transition_at calendar_known as_of_ist stale source simulated";
    assert_eq!(members(market).join(" "), expected);
    assert!(market["is_open"] == true && market["simulated"] == true);
    assert_eq!(market["source"], "broker_a");
    assert!(market["as_of_ist"].as_str().unwrap().ends_with("+05:30"));
}

#[test]
fn prices_and_changes_are_the_simulators() {
    let scene = Scene::at(RESTING);
    let service = scene.start();
    let answer = service.fresh_snapshot();
    for (name, symbol) in [
        ("index1", "NSE:NIFTY 50"),
        ("bankindex", "NSE:NIFTY BANK"),
        ("index2", "BSE:SENSEX"),
    ] {
        let (last, previous) = scene.said(symbol);
        assert_eq!(raw(answer.text(), &format!("{name}_price")), shortest(last));
        assert_eq!(raw(answer.text(), &format!("{name}_change")), percent(last, previous));
    }
    for sector in answer.json()["sectors"].as_array().unwrap().iter() {
        let (last, previous) = scene.said(sector["symbol"].as_str().unwrap());
        let text = sector.to_string();
        assert_eq!(raw(&text, "change_pct"), percent(last, previous), "{text}");
    }
}

#[test]
fn every_coding_has_its_tag_its_304_and_the_same_json() {
    let scene = Scene::at(RESTING);
    let service = scene.start();
    let mut client = service.client();
    let plain = service.fresh_snapshot();
    let mut tags = Vec::new();
    for coding in ["identity", "gzip", "br"] {
        let accept = format!("Accept-Encoding: {coding}\r\n");
        let full = client.request("GET", SNAPSHOT, &accept);
        assert_eq!(full.status, 200);
        let encoding = (coding != "identity").then_some(coding);
        assert_eq!(full.header("content-encoding"), encoding);
        assert_eq!(full.decoded(), plain.text(), "{coding}");
        let tag = full.header("etag").unwrap().to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"'), "not a strong tag: {tag}");
        let same = client.request("GET", SNAPSHOT, &format!("{accept}If-None-Match: {tag}\r\n"));
        assert_eq!((same.status, same.body.len()), (304, 0));
        assert_eq!(same.header("etag"), Some(&*tag));
        for shown in [&full, &same] {
            assert_eq!(shown.header("vary"), Some("Accept-Encoding"));
            assert_eq!(shown.header("cache-control"), Some("public, no-cache"));
        }
        tags.push(tag);
    }
    let other = format!("Accept-Encoding: br\r\nIf-None-Match: {}\r\n", tags[0]);
    assert_eq!(
        client.request("GET", SNAPSHOT, &other).status,
        200,
        "another variant's tag counted"
    );
    tags.dedup();
    assert_eq!(tags.len(), 3);
}

#[test]
fn head_is_get_without_a_body() {
    let scene = Scene::at(RESTING);
    let service = scene.start();
    let full = service.fresh_snapshot();
    let mut client = service.client();
    let head = client.request("HEAD", SNAPSHOT, "");
    assert_eq!(head.status, 200);
    for name in [
        "content-length",
        "content-type",
        "etag",
        "vary",
        "cache-control",
    ] {
        assert_eq!(head.header(name), full.header(name), "{name}");
    }
    // The next answer begins where the head ended.
    assert_eq!(client.get(SNAPSHOT).body.len(), full.body.len());
}

#[test]
fn the_date_is_the_clocks_and_moves() {
    let (scene, service) = Scene::trading();
    let first = service.fresh_snapshot().header("date").unwrap().to_owned();
    let mut client = service.client();
    until("another second", || {
        let before_ms = scene.clock.now_ms();
        let date = client.get(SNAPSHOT).header("date").unwrap().to_owned();
        // The warmer runs five times a second; the rest is for a busy machine.
        let mut recent = (0..5).map(|late_s| before_ms - late_s * 1_000);
        let current = imf_fixdate(scene.clock.now_ms()) == date.as_bytes();
        let found = recent.any(|at_ms| imf_fixdate(at_ms) == date.as_bytes());
        assert!(current || found, "{date}");
        (date != first).then_some(())
    });
}

#[test]
fn before_the_first_data_there_is_nothing_to_show() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let service = scene.start();
    let answer = service.get(SNAPSHOT);
    answer.expect_problem(503, "snapshot_not_ready");
    assert!(
        answer
            .header("retry-after")
            .unwrap()
            .parse::<u32>()
            .unwrap()
            >= 1
    );
}

#[test]
fn a_dead_broker_hands_over_to_the_public_provider_and_back() {
    let settings = SimSettings {
        rate_limits: false,
        public_delay_s: 1,
        ..SimSettings::default()
    };
    let scene = Scene::with(TRADING, settings);
    let service = scene.start();
    service.snapshot_where("broker A", |json| json["market"]["source"] == "broker_a");
    scene.fault("broker_a", r#"{"kind":"refuse"}"#);
    service.snapshot_where("the public provider", |json| {
        json["market"]["source"] == "public" && json["market"]["stale"] == false
    });
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    service.snapshot_where("broker A again", |json| {
        json["market"]["source"] == "broker_a" && json["market"]["stale"] == false
    });
}

#[test]
fn what_no_feed_confirms_any_more_is_stale() {
    let (scene, service) = Scene::trading();
    let fresh = service.fresh_snapshot();
    scene.refuse_all();
    let stale = service.snapshot_where("stale", |json| json["market"]["stale"] == true);
    assert_ne!(stale.header("etag"), fresh.header("etag"));
    assert_eq!(stale.json()["market"]["simulated"], true);
}
