//! Reconnecting: the current state, and nothing that the client has already.

use super::stage::Stage;
use crate::support::{Event, EventParser, EventReader, SNAPSHOT, STREAM};

const HAS: &str = "Last-Event-ID: ";

/// The snapshot and its tag, as polled.
fn polled(stage: &Stage) -> (String, String) {
    let answer = stage.service.get(SNAPSHOT);
    (
        answer.text().to_owned(),
        answer.header("etag").unwrap().trim_matches('"').to_owned(),
    )
}

#[test]
fn who_has_the_current_snapshot_gets_the_next_one_only() {
    let stage = Stage::running(|_| {});
    stage.publish(1, 10);
    let (_, tag) = polled(&stage);
    let by_header = stage.open(&format!("{HAS}{tag}\r\n"));
    let by_query = EventReader::open(&stage.service, &format!("{STREAM}?last_event_id={tag}"), "");
    // The header takes precedence over the query.
    let other = EventReader::open(
        &stage.service,
        &format!("{STREAM}?last_event_id=other"),
        &format!("{HAS}{tag}\r\n"),
    );
    let json = stage.publish(2, 10);
    for mut reader in [by_header, by_query, other] {
        assert_eq!(reader.event_named("snapshot").data, json);
    }
}

#[test]
fn who_has_anything_else_gets_the_current_snapshot_once() {
    let stage = Stage::running(|_| {});
    stage.publish(1, 10);
    let (_, old) = polled(&stage);
    stage.publish(2, 10);
    let (current, tag) = polled(&stage);
    let longest = "x".repeat(10_000);
    for lines in [
        String::new(),
        format!("{HAS}{old}\r\n"),
        format!("{HAS}\r\n"),
        format!("{HAS}\"{tag}\"\r\n"),
        format!("{HAS}{}\r\n", tag.to_uppercase()),
        format!("{HAS}{longest}\r\n"),
        format!("{HAS}{tag}\r\n{HAS}{tag}\r\n"),
        format!("{HAS}{tag}\r\nlast-event-id: x\r\n"),
    ] {
        let mut reader = stage.open(&lines);
        let event = reader.event_named("snapshot");
        assert_eq!((&event.data, &event.id), (&current, &tag), "{}", &lines[..lines.len().min(60)]);
    }
    // The header is present, so the query does not count.
    let target = format!("{STREAM}?last_event_id={tag}");
    let mut reader = EventReader::open(&stage.service, &target, &format!("{HAS}x\r\n"));
    assert_eq!(reader.event_named("snapshot").data, current);
    for query in [
        "last_event_id=%zz",
        "last_event_id",
        "last_event_id=a&last_event_id=b",
        &format!("last_event_id={tag}&last_event_id={old}"),
        &format!("last_event_id={tag}&lastEventId={old}"),
        &format!("last_event={tag}"),
        &format!("my_last_event_id={tag}"),
        &format!("id={tag}"),
    ] {
        let mut reader = EventReader::open(&stage.service, &format!("{STREAM}?{query}"), "");
        assert_eq!(reader.event_named("snapshot").data, current, "{query}");
    }
}

/// Polyfills of `EventSource` and servers of other makes have each their own name for it.
#[test]
fn the_id_of_the_last_event_comes_under_the_names_that_clients_send() {
    let stage = Stage::running(|_| {});
    stage.publish(1, 10);
    let (_, old) = polled(&stage);
    stage.publish(2, 10);
    let (_, tag) = polled(&stage);
    let open = |query: &str, lines: &str| {
        EventReader::open(&stage.service, &format!("{STREAM}?{query}"), lines)
    };
    let mut readers = Vec::new();
    for name in [
        "last_event_id",
        "lastEventId",
        "lastEventID",
        "LastEventId",
        "lasteventid",
        "last-event-id",
        "Last-Event-ID",
        "Last-Event-Id",
        "LAST_EVENT_ID",
        "Last%2DEvent%2DID",
    ] {
        readers.push((name.to_owned(), open(&format!("{name}={tag}"), "")));
    }
    for query in [
        // Appended to the address that the page made before.
        format!("last_event_id={old}&lastEventId={tag}"),
        format!("lastEventId={tag}&last_event_id="),
        format!("lastEventId={}", tag.replace('a', "%61")),
        format!("r=0.123&lastEventId={tag}&padding=1"),
    ] {
        readers.push((query.clone(), open(&query, "")));
    }
    // An empty header says nothing, and a filled one is newer than the address.
    readers
        .push(("empty header".into(), open(&format!("lastEventId={tag}"), "Last-Event-ID:\r\n")));
    let lines = format!("LAST-EVENT-ID: {tag}\r\n");
    readers.push(("header".into(), open(&format!("lastEventId={old}"), &lines)));
    let json = stage.publish(3, 10);
    for (name, reader) in &mut readers {
        assert_eq!(reader.event_named("snapshot").data, json, "{name}");
    }
}

#[test]
fn an_id_that_is_no_header_value_is_refused_before_the_route() {
    let stage = Stage::running(|_| {});
    for (id, status) in [("a\0b", 400), (&*"x".repeat(20_000), 431)] {
        let request = format!("GET {STREAM} HTTP/1.1\r\nHost: a\r\n{HAS}{id}\r\n\r\n");
        assert_eq!(stage.service.client().ask(request).status, status);
    }
    assert_eq!(stage.streams().open(), 0);
}

/// The events in the first `count` bytes of a stream's body, which is at least that long.
fn cut_after(stage: &Stage, count: usize, last_id: &str) -> Vec<Event> {
    let request = format!(
        "GET {STREAM} HTTP/1.0\r\nHost: a\r\nAccept-Encoding: identity\r\n{HAS}{last_id}\r\n\r\n"
    );
    let mut client = stage.service.client();
    client.write(request).head();
    let mut body = client.take_pending();
    while body.len() < count && client.more() {
        body.extend(client.take_pending());
    }
    let mut parser = EventParser::default();
    parser.feed(&body[..count]);
    parser.events
}

#[test]
fn a_client_that_is_cut_anywhere_ends_in_the_polled_state() {
    let stage = Stage::running(|_| {});
    let (mut state, mut id) = (String::new(), String::new());
    for number in 0..200 {
        stage.publish(number, 100 + number);
        let (current, tag) = polled(&stage);
        let event = format!("event: snapshot\nid: {tag}\ndata: {current}\n\n");
        let whole = "retry: 3000\n: bhav\n".len() + event.len();
        for event in cut_after(&stage, number * 37 % (whole + 1), &id) {
            (state, id) = (event.data, event.id);
        }
        assert_eq!(id == tag, state == current);
        if number % 10 == 9 && id != tag {
            let event = stage
                .open(&format!("{HAS}{id}\r\n"))
                .event_named("snapshot");
            (state, id) = (event.data, event.id);
            assert_eq!((&state, &id), (&current, &tag));
        }
    }
}

#[test]
fn after_a_restart_the_current_snapshot_comes_with_its_tag() {
    let scene = crate::support::Scene::at(crate::support::TRADING);
    let service = scene.start();
    service.fresh_snapshot();
    let before = EventReader::open(&service, STREAM, "").event_named("snapshot");
    service.stop();
    scene.refuse_all();
    let service = scene.start();
    service.snapshot_where("the one of before", |json| {
        sonic_rs::JsonValueTrait::as_bool(&json["market"]["stale"]) == Some(true)
    });
    let mut reader = EventReader::open(&service, STREAM, &format!("{HAS}{}\r\n", before.id));
    let after = reader.event_named("snapshot");
    assert_ne!(before.id, after.id, "it is marked stale now");
    let answer = service.get(SNAPSHOT);
    assert_eq!(answer.header("etag"), Some(&*format!("\"{}\"", after.id)));
    assert_eq!(answer.text(), after.data);
}
