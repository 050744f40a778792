//! Every part of a request has a limit, and a status that names it.

use crate::support::{Client, Harness};
fn with_headers(count: usize) -> String {
    let lines: String = (1..count)
        .map(|number| format!("X-{number}: y\r\n"))
        .collect();
    format!("GET /h HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

#[track_caller]
fn refused(wire: &mut Client, status: u16, code: &str) {
    let answer = wire.answer();
    assert_eq!((answer.status, answer.field("code").as_str()), (status, code));
    assert!(answer.says_close());
    wire.closes();
}

#[test]
fn a_hundred_headers_pass_and_one_more_is_431() {
    let (_harness, mut wire) = Harness::connected();
    assert_eq!(wire.ask(with_headers(99)).status, 200);
    assert_eq!(wire.ask(with_headers(100)).status, 200);
    wire.write(with_headers(101));
    refused(&mut wire, 431, "head_too_large");
}

#[test]
fn a_head_of_16_kib_passes_and_more_is_431() {
    let (harness, mut wire) = Harness::connected();
    let frame = "GET / HTTP/1.1\r\nHost: a\r\nX-Seen: \r\n\r\n";
    let filled = |bytes: usize| {
        let value = "y".repeat(bytes - frame.len());
        format!("GET / HTTP/1.1\r\nHost: a\r\nX-Seen: {value}\r\n\r\n")
    };
    assert_eq!(wire.ask(filled(16 * 1024)).status, 200);
    wire.write(filled(16 * 1024 + 1));
    refused(&mut wire, 431, "head_too_large");
    // An endless header is refused at the limit and not collected.
    let mut endless = harness.connect();
    endless.write("GET / HTTP/1.1\r\nHost: a\r\nX: ");
    endless.try_write("y".repeat(17 * 1024).as_bytes()).ok();
    refused(&mut endless, 431, "head_too_large");
    let mut empty_lines = harness.connect();
    empty_lines
        .try_write("\r\n".repeat(9 * 1024).as_bytes())
        .ok();
    refused(&mut empty_lines, 431, "head_too_large");
}

#[test]
fn a_target_of_8_kib_passes_and_more_is_414() {
    let (harness, mut wire) = Harness::connected();
    let target = |bytes: usize| format!("/{}", "t".repeat(bytes - 1));
    let answer = wire.ask(format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", target(8 * 1024)));
    assert_eq!(answer.field("path").len(), 8 * 1024);
    wire.write(format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", target(8 * 1024 + 1)));
    refused(&mut wire, 414, "target_too_long");
    for bytes in [9 * 1024, 40 * 1024] {
        let mut endless = harness.connect();
        endless
            .try_write(format!("GET {}", target(bytes)).as_bytes())
            .ok();
        refused(&mut endless, 414, "target_too_long");
    }
}

#[test]
fn a_body_past_the_limit_is_413_and_readable_by_a_client_that_still_sends() {
    let harness = Harness::start();
    let megabyte = "b".repeat(1024 * 1024);
    for head in [
        "Content-Length: 1048576\r\n\r\n".to_owned(),
        format!("Transfer-Encoding: chunked\r\n\r\n10000\r\n{}\r\n1\r\n", "a".repeat(0x10000)),
        "Content-Length: 9999999999999999999\r\n\r\n".to_owned(),
    ] {
        let mut wire = harness.connect();
        wire.write(format!("POST / HTTP/1.1\r\nHost: a\r\n{head}"));
        // Well below the bytes that the server discards after its answer, so that it reads all of
        // this.
        wire.write(&megabyte[..100_000]);
        refused(&mut wire, 413, "body_too_large");
        // A client that sends more is cut off, and still finds its answer.
        let mut wire = harness.connect();
        wire.write(format!("POST / HTTP/1.1\r\nHost: a\r\n{head}"));
        wire.try_write(megabyte.as_bytes()).ok();
        refused(&mut wire, 413, "body_too_large");
    }
    // The server closes on a client that sends without end.
    let mut wire = harness.connect();
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576000\r\n\r\n");
    let stopped = (0..200).any(|_| wire.try_write(megabyte.as_bytes()).is_err());
    assert!(stopped, "200 MB were taken from a client that had been refused");
    assert_eq!(harness.probe.served(), 0);
}
