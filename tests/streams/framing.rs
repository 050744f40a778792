//! Heads, chunks and codings of streams.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::stage::Stage;
use crate::support::{EventReader, SNAPSHOT, STREAM, Scene};

/// Names of the headers, in order.
fn names(reader: &EventReader) -> Vec<String> {
    reader
        .head
        .headers
        .iter()
        .map(|(name, _)| name.to_lowercase())
        .collect()
}

#[test]
fn the_head_is_as_described_and_bytes_come_at_once() {
    let stage = Stage::running(|_| {});
    let reader = stage.open("");
    let head = &reader.head;
    assert_eq!(
        names(&reader),
        [
            "date",
            "content-type",
            "cache-control",
            "vary",
            "x-accel-buffering",
            "transfer-encoding",
            "x-content-type-options",
        ]
    );
    assert_eq!(head.version, "HTTP/1.1");
    assert_eq!(head.header("cache-control"), Some("no-store, no-transform"));
    assert_eq!(head.header("vary"), Some("Accept-Encoding"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    // Nothing has been published.
    let mut reader = stage.open("");
    crate::support::until("the opening", || {
        reader.look();
        reader.text() == "retry: 3000\n: bhav\n"
    });
    assert_eq!(
        (reader.parser.retry, reader.parser.comments, reader.chunks),
        (Some(3_000), 1, 1)
    );
    let json = stage.publish(1, 10);
    assert_eq!(reader.event_named("snapshot").data, json);
}

#[test]
fn a_client_of_http_1_0_gets_bare_events_until_the_end() {
    let stage = Stage::running(|_| {});
    let json = stage.publish(1, 1_000);
    for (coding, headers) in [("", 7), ("Accept-Encoding: gzip\r\n", 8)] {
        let request = format!("GET {STREAM} HTTP/1.0\r\nHost: a\r\n{coding}\r\n");
        let mut reader = EventReader::ask(stage.service.client(), &request);
        assert_eq!(reader.head.header("transfer-encoding"), None);
        assert_eq!(reader.head.header("connection"), Some("close"));
        assert_eq!(names(&reader).len(), headers, "{}", reader.head.head());
        assert_eq!(reader.event_named("snapshot").data, json);
    }
}

#[test]
fn a_head_request_gets_the_head_alone_and_the_connection_goes_on() {
    let stage = Stage::running(|_| {});
    stage.publish(1, 10);
    let mut client = stage.service.client();
    let head = client.request("HEAD", STREAM, "Accept-Encoding: gzip\r\n");
    let get = stage.open("Accept-Encoding: gzip\r\n").head;
    let without_date = |answer: &crate::support::Answer| {
        let lines = answer.headers.iter().filter(|(name, _)| name != "Date");
        lines.cloned().collect::<Vec<_>>()
    };
    assert_eq!((head.status, without_date(&head)), (200, without_date(&get)));
    assert_eq!(client.get(SNAPSHOT).status, 200, "the same connection");
    client.write(format!("HEAD {STREAM} HTTP/1.0\r\nHost: a\r\n\r\n"));
    assert_eq!(client.head().header("connection"), Some("close"));
    client.closes();
}

#[test]
fn other_methods_are_refused() {
    let stage = Stage::running(|_| {});
    let mut client = stage.service.client();
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let answer = client.request(method, STREAM, "Content-Length: 0\r\n");
        answer.expect_problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("GET, HEAD, OPTIONS"));
    }
    assert_eq!(client.request("OPTIONS", STREAM, "").status, 204);
    assert_eq!(stage.streams().open(), 0);
}

#[test]
fn the_coding_is_what_the_client_takes() {
    let stage = Stage::running(|_| {});
    let json = stage.publish(1, 20_000);
    for (accepted, coding) in [
        ("gzip", Some("gzip")),
        ("gzip, deflate, br, zstd", Some("gzip")),
        ("br, *;q=0.1", Some("gzip")),
        ("*", Some("gzip")),
        ("gzip;q=0.5, identity;q=0.4", Some("gzip")),
        ("gzip;q=0.5, identity", None),
        ("gzip;q=0", None),
        ("br", None),
        ("identity", None),
        ("", None),
    ] {
        let before = stage.streams().stats.bytes.value();
        let mut reader = stage.open(&format!("Accept-Encoding: {accepted}\r\n"));
        assert_eq!(reader.head.header("content-encoding"), coding, "{accepted}");
        assert_eq!(reader.event_named("snapshot").data, json, "{accepted}");
        let sent = stage.streams().stats.bytes.value() - before;
        assert_eq!(sent < 2_000, coding.is_some(), "{accepted}: {sent} bytes");
    }
}

#[test]
fn every_framing_and_coding_gives_the_same_events() {
    let stage = Stage::running(|_| {});
    stage.publish(0, 10);
    let mut readers = Vec::new();
    for version in ["1.0", "1.1"] {
        for coding in ["gzip", "identity"] {
            let request = format!(
                "GET {STREAM} HTTP/{version}\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n"
            );
            readers.push(EventReader::ask(stage.service.client(), &request));
        }
    }
    for reader in &mut readers {
        reader.event_named("snapshot");
    }
    for number in 1..20 {
        let json = stage.publish(number, 7 * number * number);
        let events: Vec<_> = readers
            .iter_mut()
            .map(|reader| reader.event_named("snapshot"))
            .collect();
        assert!(events.iter().all(|event| *event == events[0]), "{number}: {events:?}");
        assert_eq!(events[0].data, json);
    }
}

#[test]
fn an_event_is_the_snapshot_of_the_tag_that_is_its_id() {
    let (_scene, service) = Scene::trading();
    service.fresh_snapshot();
    let mut reader = EventReader::open(&service, STREAM, "Accept-Encoding: gzip\r\n");
    let mut client = service.client();
    // Another snapshot may be published between the two.
    let same = (0..20).any(|_| {
        let event = reader.event_named("snapshot");
        let answer = client.get(SNAPSHOT);
        let is_same = answer.header("etag") == Some(&format!("\"{}\"", event.id));
        assert!(!is_same || answer.text() == event.data);
        is_same
    });
    assert!(same);
}

#[test]
fn tokens_and_cookies_are_not_looked_at() {
    let stage = Stage::running(|_| {});
    let json = stage.publish(1, 10);
    let lines = "Authorization: Bearer nonsense\r\nCookie: access_token_cookie=x\r\n";
    assert_eq!(stage.open(lines).event_named("snapshot").data, json);
}

#[test]
fn a_page_of_an_allowed_origin_may_read_and_another_not() {
    let stage = Stage::running(|config| {
        config.http.allowed_origins = vec!["https://app.example".into()];
    });
    for (origin, allowed) in [
        ("https://app.example", Some("https://app.example")),
        ("https://evil.example", None),
    ] {
        let reader = stage.open(&format!("Origin: {origin}\r\n"));
        assert_eq!(reader.head.header("access-control-allow-origin"), allowed);
        let mut vary = reader.head.headers("vary");
        vary.sort_unstable();
        assert_eq!(vary, ["Accept-Encoding", "Origin"]);
    }
}

#[test]
fn any_query_and_id_gets_a_stream_or_a_refusal() {
    let stage = Stage::running(|_| {});
    let json = stage.publish(1, 10);
    let tried = AtomicUsize::new(0);
    let mut runner = TestRunner::new(Config {
        cases: 100,
        ..Config::default()
    });
    let query = "[!-\"$-~]{0,40}";
    let id = "[ -~\\x80-\\xff]{0,40}";
    let outcome = runner.run(&(query, id), |(query, id)| {
        tried.fetch_add(1, Ordering::Relaxed);
        let mut client = stage.service.client();
        client.write(format!(
            "GET {STREAM}?{query} HTTP/1.1\r\nHost: a\r\nLast-Event-ID: {id}\r\n\r\n"
        ));
        let mut reader = EventReader::over(client);
        prop_assert_eq!(reader.event_named("snapshot").data, json.as_str());
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(tried.into_inner() >= 100);
}
