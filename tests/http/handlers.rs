//! Handlers that fail, and others that must not notice.

use crate::support::{Harness, until};
#[test]
fn a_panic_costs_one_request_and_one_connection() {
    let harness = Harness::start();
    let mut neighbour = harness.connect();
    assert_eq!(neighbour.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    for path in ["/panic", "/halfway", "/mute", "/twice"] {
        let mut wire = harness.connect();
        // Earlier answers are kept; later requests are not served.
        let text = format!(
            "GET /before HTTP/1.1\r\nHost: a\r\n\r\n\
             GET {path} HTTP/1.1\r\nHost: a\r\n\r\n\
             GET /after HTTP/1.1\r\nHost: a\r\n\r\n"
        );
        let served = harness.probe.served();
        assert_eq!(wire.ask(text).field("path"), "/before");
        let answer = wire.answer();
        assert_eq!(
            (answer.status, answer.field("code").as_str()),
            (500, "internal_error"),
            "{path}"
        );
        assert!(answer.says_close());
        assert!(!String::from_utf8_lossy(&answer.body).contains("on purpose"));
        wire.closes();
        assert_eq!(harness.probe.served(), served + 2);
        assert_eq!(neighbour.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    }
    assert_eq!(harness.shared().stats.handler_panics.value(), 4);
}

#[test]
fn hundreds_of_panics_leave_a_working_server() {
    let harness = Harness::start();
    for _ in 0..200 {
        let answer = harness
            .connect()
            .ask("GET /panic HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(answer.status, 500);
    }
    assert_eq!(
        harness
            .connect()
            .ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .status,
        200
    );
}

#[test]
fn a_request_that_waits_on_a_lane_delays_nobody_else() {
    let harness = Harness::start();
    let mut waits: Vec<_> = (0..4).map(|_| harness.connect()).collect();
    for wire in &mut waits {
        wire.write("GET /lane HTTP/1.1\r\nHost: a\r\n\r\nGET /then HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for _ in 0..4 {
        harness.probe.waiting.recv().unwrap();
    }
    let mut others: Vec<_> = (0..20).map(|_| harness.connect()).collect();
    for wire in &mut others {
        assert_eq!(wire.ask("GET /o HTTP/1.1\r\nHost: a\r\n\r\n").field("path"), "/o");
    }
    for _ in 0..4 {
        harness.probe.release.send(()).unwrap();
    }
    for wire in &mut waits {
        assert_eq!(wire.answer().body, b"Ok(Ok(true))");
        assert_eq!(wire.answer().field("path"), "/then");
    }
}

#[test]
fn a_client_that_leaves_while_its_handler_waits_leaves_nothing_behind() {
    let harness = Harness::start();
    let mut left = Vec::new();
    for number in 0..4 {
        let mut wire = harness.connect();
        wire.write("GET /lane HTTP/1.1\r\nHost: a\r\n\r\n");
        harness.probe.waiting.recv().unwrap();
        if number % 2 == 0 {
            // A close with this option set sends a reset.
            wire.socket
                .set_linger(Some(std::time::Duration::ZERO))
                .unwrap();
        }
        left.push(wire);
    }
    drop(left);
    assert_eq!(
        harness
            .connect()
            .ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .status,
        200
    );
    for _ in 0..4 {
        harness.probe.release.send(()).unwrap();
    }
    until("all are gone", || harness.shared().slots.open() == 0);
}
