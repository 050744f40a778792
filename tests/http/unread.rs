//! Clients that ask and do not read.

use std::io::ErrorKind;
use std::time::Duration;

use bhav::config::HttpSettings;

use crate::support::{Harness, Wire, eventually, small};

/// Sends requests until the server takes no more; gives how many bytes it took.
fn stuff(wire: &Wire, request: &[u8]) -> usize {
    use std::io::Write;
    wire.socket.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let many = request.repeat(16 * 1024 / request.len());
    let mut taken = 0;
    loop {
        match (&wire.socket).write(&many) {
            Ok(count) => taken += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return taken,
            // Closed already: the unread deadline has passed on a busy machine.
            Err(_) => return taken,
        }
        assert!(taken < 256 * 1024 * 1024, "the server reads without end");
    }
}

#[test]
fn unread_output_is_bounded_and_its_owner_closed() {
    let settings = HttpSettings { unread_output_timeout_ms: 1_500, ..small() };
    let harness = Harness::with(&settings);
    let wire = harness.connect();
    stuff(&wire, b"GET /prepared HTTP/1.1\r\nHost: a\r\n\r\n");
    let held = || {
        let held = &harness.shared().unread_output_bytes;
        held.load(std::sync::atomic::Ordering::Relaxed)
    };
    assert!(held() <= settings.unread_output_bytes_max, "{} bytes held", held());
    let mut other = harness.connect();
    assert_eq!(other.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n").text("path"), "/n");
    eventually("the reluctant reader is closed", || {
        harness.shared().stats.write_timeouts.value() == 1
    });
    drop(other);
    eventually("its place is free", || harness.shared().slots.open() == 0);
    assert_eq!(held(), 0);
}

#[test]
fn a_slow_reader_that_does_read_gets_everything() {
    let harness = Harness::start();
    let mut wire = harness.connect();
    let count = 200;
    let all = "GET /large?50000 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(count);
    wire.send(all);
    eventually("output waits for the client", || {
        harness.shared().unread_output_bytes.load(std::sync::atomic::Ordering::Relaxed) > 0
    });
    for _ in 0..count {
        assert_eq!(wire.answer().body.len(), 50_000);
    }
    assert_eq!(wire.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n").text("path"), "/n");
}

#[test]
fn a_client_that_leaves_with_output_unread_leaves_nothing_behind() {
    let harness = Harness::start();
    for _ in 0..20 {
        let mut wire = harness.connect();
        wire.send("GET /large?8000000 HTTP/1.1\r\nHost: a\r\n\r\n");
        wire.head();
    }
    eventually("all are gone", || harness.shared().slots.open() == 0);
    assert_eq!(harness.shared().unread_output_bytes.load(std::sync::atomic::Ordering::Relaxed), 0);
}
