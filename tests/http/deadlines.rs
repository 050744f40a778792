//! Slow clients. With these settings every deadline passes within a second.

use bhav::base::Clock;
use bhav::http::settings::HttpSettings;

use crate::support::wait::PATIENCE_MS;
use crate::support::{Client, Harness, small, until};

/// Sends `text` a byte at a time, with a short wait after each, until the server closes.
fn drip(wire: &mut Client, text: &str) {
    let clock = Clock::system();
    let mut bytes = text.bytes().cycle();
    while wire.try_write(&[bytes.next().unwrap()]).is_ok() && !readable(wire) {
        assert!(clock.monotonic_ms() < PATIENCE_MS, "a slow client was never refused");
    }
}

/// Whether the server has sent something or closed, waited for a few milliseconds.
fn readable(wire: &Client) -> bool {
    let mut byte = [std::mem::MaybeUninit::new(0u8)];
    wire.socket
        .set_read_timeout(Some(std::time::Duration::from_millis(5)))
        .unwrap();
    let peeked = wire.socket.peek(&mut byte);
    wire.socket
        .set_read_timeout(Some(std::time::Duration::from_millis(PATIENCE_MS)))
        .unwrap();
    !matches!(peeked, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

#[track_caller]
fn timed_out(wire: &mut Client) {
    let answer = wire.answer();
    assert_eq!((answer.status, answer.field("code").as_str()), (408, "request_timeout"));
    assert!(answer.says_close());
    wire.closes();
}

#[test]
fn a_head_that_drips_in_is_408() {
    let harness = Harness::with(&small());
    let mut wire = harness.connect();
    wire.write("GET / HTTP/1.1\r\nHost: a\r\n");
    drip(&mut wire, "X-Slow: y\r\n");
    timed_out(&mut wire);
    // The same after a quick request on the connection.
    let mut wire = harness.connect();
    assert_eq!(wire.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET ").status, 200);
    timed_out(&mut wire);
    assert_eq!(harness.shared().stats.read_timeouts.value(), 2);
    assert_eq!(harness.probe.served(), 1);
}

#[test]
fn a_body_that_drips_in_is_408() {
    let harness = Harness::with(&small());
    let mut wire = harness.connect();
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n");
    drip(&mut wire, "a");
    timed_out(&mut wire);
    let mut wire = harness.connect();
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    drip(&mut wire, "1\r\na\r\n");
    timed_out(&mut wire);
    let mut wire = harness.connect();
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabc");
    timed_out(&mut wire);
    assert_eq!(harness.probe.served(), 0);
}

#[test]
fn a_head_does_not_lend_its_time_to_a_body() {
    let harness = Harness::with(&HttpSettings {
        head_timeout_ms: PATIENCE_MS * 10,
        ..small()
    });
    let mut wire = harness.connect();
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
    timed_out(&mut wire);
}

#[test]
fn silent_and_idle_connections_are_closed_without_a_word() {
    let harness = Harness::with(&small());
    harness.connect().closes();
    let mut idle = harness.connect();
    assert_eq!(idle.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    idle.closes();
    assert_eq!(harness.shared().stats.idle_closed.value(), 2);
    until("the table is empty", || harness.shared().slots.open() == 0);
}

#[test]
fn a_stray_line_end_after_a_request_is_not_a_slow_request() {
    let harness = Harness::with(&small());
    let mut wire = harness.connect();
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx\r\n";
    assert_eq!(wire.ask(post).status, 200);
    assert_eq!(
        wire.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n\r\n\r\n")
            .field("path"),
        "/n"
    );
    // Closed as idle, without a 408 that a client could take for its next answer.
    wire.closes();
}

#[test]
fn a_client_that_keeps_asking_is_not_idle() {
    let harness = Harness::with(&HttpSettings {
        idle_timeout_ms: 1_000,
        ..small()
    });
    let clock = Clock::system();
    let mut wire = harness.connect();
    while clock.monotonic_ms() < 2_000 {
        assert_eq!(wire.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    }
}

#[test]
fn a_handler_may_take_longer_than_any_deadline_of_the_wire() {
    let harness = Harness::with(&small());
    let mut wire = harness.connect();
    wire.write("GET /lane HTTP/1.1\r\nHost: a\r\n\r\n");
    harness.probe.waiting.recv().unwrap();
    // A silent connection that came later has been closed, so deadlines have passed.
    harness.connect().closes();
    harness.probe.release.send(()).unwrap();
    assert_eq!(wire.answer().body, b"Ok(Ok(true))");
    assert_eq!(wire.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n").field("path"), "/n");
}
