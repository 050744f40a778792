//! The rate of events: at most one in an interval, and never a long silence.

use super::stage::{Stage, number_of};
use crate::support::{EventReader, SNAPSHOT, STREAM, Scene, TRADING, until};

#[test]
fn many_changes_in_an_interval_are_two_frames_and_the_last_is_right() {
    let stage = Stage::by_hand(|_| {});
    stage.publish(0, 10);
    let mut reader = stage.open("");
    assert_eq!(number_of(&reader.event_named("snapshot").data), 0);
    (1..=100).for_each(|number| drop(stage.publish(number, 10)));
    // On a busy machine frames are made later than they are published, and each advances the clock.
    until("the last frame to be made", || {
        number_of(stage.service.get(SNAPSHOT).text()) == 100
    });
    let mut seen = Vec::new();
    stage.advance_until("the last change", 1_000, || {
        reader.look();
        seen.extend(reader.ready().map(|event| number_of(&event.data)));
        (seen.last() == Some(&100)).then_some(())
    });
    assert!(seen.len() <= 2 && seen.is_sorted(), "{seen:?}");
    let stats = &stage.streams().stats;
    assert_eq!(stats.frames.value(), 1 + seen.len() as u64);
    assert_eq!(stats.conflated.value(), 100 - seen.len() as u64);
    assert!(stats.fan_out.read(0).count() >= 1);
}

#[test]
fn a_quiet_stream_has_a_beat_every_fifteen_seconds_and_nothing_else() {
    let stage = Stage::by_hand(|_| {});
    stage.publish(0, 10);
    let mut readers = [stage.open(""), stage.open("Accept-Encoding: gzip\r\n")];
    for reader in &mut readers {
        reader.event_named("snapshot");
    }
    for beats in 1..=4 {
        stage.scene.advance_ms(13_000);
        for reader in &mut readers {
            (0..10).for_each(|_| reader.look());
            assert_eq!(reader.ready(), None, "before the time");
        }
        let events = stage.advance_until("a beat each", 0, || {
            readers.iter_mut().for_each(EventReader::look);
            let count = stage.streams().stats.heartbeats.value();
            (count == 2 * beats).then(|| readers.each_mut().map(EventReader::event))
        });
        for event in events.map(Option::unwrap) {
            assert_eq!((&*event.name, &*event.data), ("beat", "{}"));
            // The heartbeat keeps the id of the last snapshot.
            assert!(!event.id.is_empty());
        }
        assert_eq!(stage.streams().stats.heartbeats.value(), 2 * beats);
    }
    assert_eq!(stage.streams().stats.frames.value(), 2);
    let json = stage.publish(1, 10);
    for mut reader in readers {
        let event = stage.advance_until("the change", 0, || {
            reader.look();
            reader.ready()
        });
        assert_eq!((event.name, event.data), ("snapshot".into(), json.clone()));
    }
}

#[test]
fn before_the_first_data_there_are_beats() {
    let stage = Stage::by_hand(|_| {});
    let mut reader = stage.open("");
    let event = stage.advance_until("a beat", 15_000, || {
        reader.look();
        reader.ready()
    });
    assert_eq!((&*event.name, &*event.id), ("beat", ""));
}

/// In the evening no price moves.
#[test]
fn a_change_of_the_markets_phase_is_an_event_although_no_price_moved() {
    let scene = Scene::at("2026-11-20T15:49:55+05:30");
    let service = scene.start();
    let mut reader = EventReader::open(&service, STREAM, "");
    let mut before = None;
    let (before, after) = until("the post close", || {
        reader.look();
        let json: serde_json::Value = serde_json::from_str(&reader.ready()?.data).ok()?;
        let phase = json["market"]["phase"].as_str()?.to_owned();
        let last = before.replace(json.clone());
        (phase == "post_close").then_some((last?, json))
    });
    assert_eq!(before["market"]["phase"], "closed");
    for member in ["index1_price", "bankindex_price", "index2_price", "sectors"] {
        assert_eq!(before[member], after[member]);
    }
    assert_eq!(before["market"]["as_of_ist"], after["market"]["as_of_ist"]);
}

#[test]
fn a_change_of_the_source_is_an_event() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a", r#"{"kind":"refuse"}"#);
    let service = scene.start();
    let mut reader = EventReader::open(&service, STREAM, "");
    let mut from = |source: &str| {
        let mark = format!("\"source\":\"{source}\"");
        until(source, || {
            reader.look();
            reader
                .ready()
                .is_some_and(|event| event.data.contains(&mark))
        });
    };
    from("public");
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    from("broker_a");
}

#[test]
fn prices_that_become_stale_are_an_event_although_none_moved() {
    let (scene, service) = Scene::trading();
    service.fresh_snapshot();
    let mut reader = EventReader::open(&service, STREAM, "");
    until("fresh prices", || {
        reader.look();
        reader
            .ready()
            .is_some_and(|event| event.data.contains("\"stale\":false"))
    });
    scene.refuse_all();
    let mut last = String::new();
    until("the mark", || {
        reader.look();
        let event = reader.ready()?;
        let is_stale = event.data.contains("\"stale\":true");
        let before = std::mem::replace(&mut last, event.data);
        is_stale.then_some(before)
    });
    assert!(last.contains("\"simulated\":true"), "{last}");
}
