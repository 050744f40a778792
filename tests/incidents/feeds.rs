//! Feeds that die at the opening bell.

use super::morning::Morning;
use crate::support::{SNAPSHOT, until};

/// The provider's delay is some seconds here, and a quarter of an hour in the world.
#[test]
fn broker_a_dies_at_the_open_and_the_public_provider_serves_once_it_has_passed_it() {
    let morning = Morning::with_public_delay("2026-11-20T09:14:58+05:30", 4);
    let program = morning.start();
    let mut client = program.client();
    until("the opening", || {
        let answer = client.get(SNAPSHOT);
        (answer.status == 200 && answer.json()["market"]["phase"] == "open").then_some(())
    });
    morning.serves(&mut client, "broker_a", false);
    morning.scene.fault("broker_a", r#"{"kind":"html_5xx"}"#);
    morning.serves(&mut client, "broker_a", true);
    morning.serves(&mut client, "public", false);
    let status = morning.told(&program.address, "broker_a_fails");
    assert_eq!(status.code, Some(1), "{}", status.screen);
    assert!(status.screen.contains("it is tried again by itself"), "{}", status.screen);
    assert_eq!(morning.scene.control("DELETE", "faults", "").status, 200);
    morning.serves(&mut client, "broker_a", false);
    morning.well(&program.address);
}

#[test]
fn both_feeds_die_and_every_price_says_that_it_is_old() {
    let morning = Morning::at("2026-11-20T11:00:00+05:30");
    let program = morning.start();
    let mut client = program.client();
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    morning.serves(&mut client, "broker_a", false);
    morning.scene.refuse_all();
    morning.serves(&mut client, "broker_a", true);
    let status = morning.told(&program.address, "snapshot_old");
    assert_eq!(status.code, Some(1), "old prices are served: {}", status.screen);
    assert!(status.names("feeds_dead"), "{}", status.screen);
    assert!(status.screen.contains("; OLD prices of 2026-11-20 11:00"), "{}", status.screen);
    assert_eq!(morning.scene.control("DELETE", "faults", "").status, 200);
    morning.serves(&mut client, "broker_a", false);
    morning.well(&program.address);
}
