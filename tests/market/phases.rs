//! The market's phase in the snapshot, at fixed instants.

use crate::support::{Scene, members};
struct Expected {
    phase: &'static str,
    is_open: bool,
    next: &'static str,
}

#[track_caller]
fn expect(now: &str, expected: &Expected) {
    let scene = Scene::at(now);
    let service = scene.start();
    let json = service.fresh_snapshot().json();
    let market = &json["market"];
    assert_eq!(market["phase"], expected.phase, "{now}");
    assert_eq!(market["is_open"], expected.is_open, "{now}");
    assert_eq!(market["next_transition_at"], expected.next, "{now}");
    assert!(members(market).contains(&"as_of_ist".to_owned()));
    service.stop();
}

#[test]
fn pre_open() {
    let next = "2026-11-20T09:15:00+05:30";
    expect("2026-11-20T09:05:00+05:30", &Expected { phase: "pre_open", is_open: false, next });
}

#[test]
fn open() {
    let next = "2026-11-20T15:15:00+05:30";
    expect("2026-11-20T11:00:00+05:30", &Expected { phase: "open", is_open: true, next });
}

/// The indices stand still in the closing auction, and that is not stale.
#[test]
fn closing_auction() {
    let next = "2026-11-20T15:30:00+05:30";
    expect("2026-11-20T15:20:00+05:30", &Expected { phase: "closing", is_open: true, next });
}

#[test]
fn the_auction_goes_on_after_trading_has_ended() {
    let next = "2026-11-20T15:35:00+05:30";
    expect("2026-11-20T15:31:00+05:30", &Expected { phase: "closing", is_open: false, next });
}

#[test]
fn between_the_auction_and_the_post_close() {
    let next = "2026-11-20T15:50:00+05:30";
    expect("2026-11-20T15:40:00+05:30", &Expected { phase: "closed", is_open: false, next });
}

#[test]
fn post_close() {
    let next = "2026-11-20T16:00:00+05:30";
    expect("2026-11-20T15:55:00+05:30", &Expected { phase: "post_close", is_open: false, next });
}

#[test]
fn holiday() {
    let next = "2026-11-25T00:00:00+05:30";
    expect("2026-11-24T11:00:00+05:30", &Expected { phase: "holiday", is_open: false, next });
}

#[test]
fn sunday() {
    let next = "2026-11-23T09:00:00+05:30";
    expect("2026-11-22T11:00:00+05:30", &Expected { phase: "closed", is_open: false, next });
}

#[test]
fn the_phase_changes_under_a_running_service() {
    let scene = Scene::at("2026-11-20T09:14:57+05:30");
    let service = scene.start();
    let bell = "2026-11-20T09:15:00+05:30".parse().unwrap();
    let answer = service.snapshot_where("the opening bell", |json| {
        let before = scene.clock.now();
        assert!(json["market"]["is_open"] == (json["market"]["phase"] == "open"), "{json}");
        json["market"]["phase"] == "open" && before >= bell
    });
    assert_eq!(answer.json()["market"]["next_transition_at"], "2026-11-20T15:15:00+05:30");
    service.stop();
}
