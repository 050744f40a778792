//! The tests' own parser of events, on the cases of the web platform tests
//! (`eventsource/format-*`).

use crate::support::{Event, EventParser};

fn parsed(bytes: &[u8]) -> EventParser {
    let mut whole = EventParser::default();
    whole.feed(bytes);
    // The same events when fed byte by byte.
    let mut slow = EventParser::default();
    bytes.chunks(1).for_each(|byte| slow.feed(byte));
    assert_eq!((&slow.events, slow.retry), (&whole.events, whole.retry));
    whole
}

fn data(bytes: &[u8]) -> Vec<String> {
    parsed(bytes)
        .events
        .into_iter()
        .map(|event| event.data)
        .collect()
}

#[test]
fn events_are_what_the_standard_says() {
    for (bytes, expected) in [
        (&b"data:test\n\n"[..], &["test"][..]),
        (b"data: test\r\n\r\n", &["test"]),
        (b"data:test\r\r", &["test"]),
        (b"data:test\rdata:b\n\r\n", &["test\nb"]),
        (b"\xef\xbb\xbfdata:1\n\n", &["1"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata:1\n\ndata:2\n\n\xef\xbb\xbfdata:3\n\n", &["2"]),
        (b"data:1\n\n\xef\xbb\xbfdata:2\n\ndata:3\n\n", &["1", "3"]),
        (b":comment\ndata:a\n:\ndata\n:b\n\n", &["a\n"]),
        (b"data:\n\ndata\ndata\n\ndata:test\n\n", &["", "\n", "test"]),
        (b"data:test", &[]),
        (b"data:test\n", &[]),
        (b"data:test1\ndata:test2\n\n", &["test1\ntest2"]),
        (b"data test\ndata\ndata:test\n\n", &["\ntest"]),
        (b"data:  spaced\n\n", &[" spaced"]),
        (b"data:\ttab\n\n", &["\ttab"]),
        (b"data:ok\xe2\x80\xa6\n\n", &["ok\u{2026}"]),
        (b"data:\xff\n\n", &["\u{fffd}"]),
        (b" data:no\ndata:yes\n\n", &["yes"]),
        (b"DATA:no\nDat:no\ndata:yes\n\n", &["yes"]),
        (b"data:\0\n\n", &["\0"]),
        (b"\n\n\ndata:x\n\n", &["x"]),
    ] {
        assert_eq!(data(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn names_ids_and_times_to_reconnect_are_what_the_standard_says() {
    let event = |name: &str, data: &str, id: &str| Event {
        name: name.into(),
        data: data.into(),
        id: id.into(),
    };
    for (bytes, expected) in [
        (
            &b"event:test\ndata:x\n\ndata:x\n\n"[..],
            vec![event("test", "x", ""), event("message", "x", "")],
        ),
        (b"event:a\nevent: b\ndata:x\n\n", vec![event("b", "x", "")]),
        (b"event:a\n\ndata:x\n\n", vec![event("message", "x", "")]),
        (
            b"id:1\ndata:x\n\ndata:y\n\n",
            vec![event("message", "x", "1"), event("message", "y", "1")],
        ),
        (
            b"id:1\ndata:x\n\nid\ndata:y\n\n",
            vec![event("message", "x", "1"), event("message", "y", "")],
        ),
        (b"id:1\n\nid:2\0\ndata:y\n\n", vec![event("message", "y", "1")]),
    ] {
        assert_eq!(parsed(bytes).events, expected, "{:?}", String::from_utf8_lossy(bytes));
    }
    for (bytes, expected) in [
        (&b"retry:3000\n"[..], Some(3000)),
        (b"retry: 03\n", Some(3)),
        (b"retry:3000\nretry:1000x\n", Some(3000)),
        (b"retry:3000\nretry\n", Some(3000)),
        (b"retry:-1\n", None),
    ] {
        assert_eq!(parsed(bytes).retry, expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}
