//! The drain: no request that reached the server is lost.

use bhav::http::settings::HttpSettings;
use bhav::rt::threads;

use crate::support::harness::settings;
use crate::support::{Client, Harness, until};

const GET: &str = "GET /g HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn requests_in_flight_and_requests_already_sent_are_answered() {
    let harness = Harness::start();
    let (address, probe) = (harness.address.clone(), harness.probe.clone());
    let mut on_lane = harness.connect();
    let mut queued = harness.connect();
    let mut begun = harness.connect();
    let mut idle = harness.connect();
    assert_eq!(idle.ask(GET).status, 200);
    on_lane.write("GET /lane HTTP/1.1\r\nHost: a\r\n\r\n");
    queued.write(format!("GET /lane HTTP/1.1\r\nHost: a\r\n\r\n{GET}{GET}"));
    probe.waiting.recv().unwrap();
    probe.waiting.recv().unwrap();
    begun.write("POST /g HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    until("all are inside", || harness.shared().slots.open() == 4);
    let server = harness.into_server();
    let shared = std::sync::Arc::clone(server.shared());
    let draining = threads::spawn("drain", move || server.drain()).unwrap();
    until("it drains", || shared.is_draining());
    until("new connections are refused", || Client::try_connect(&address).is_err());

    // A request on its way over an idle connection is answered.
    let answer = idle.ask(GET);
    assert_eq!((answer.status, answer.says_close()), (200, true));
    idle.closes();
    let answer = begun.ask("cd");
    assert_eq!((answer.field("body").as_str(), answer.says_close()), ("abcd", true));
    begun.closes();
    probe.release.send(()).unwrap();
    probe.release.send(()).unwrap();
    let answer = on_lane.answer();
    assert_eq!((answer.body.as_slice(), answer.says_close()), (&b"Ok(Ok(true))"[..], true));
    on_lane.closes();
    // The first answer announces that no other will follow, so the client can ask elsewhere.
    assert!(queued.answer().says_close());
    queued.closes();
    assert_eq!(draining.join().unwrap(), 0);
}

#[test]
fn idle_connections_do_not_hold_up_the_end() {
    let harness = Harness::start();
    let mut wires: Vec<_> = (0..50).map(|_| harness.connect()).collect();
    let (idle, silent) = wires.split_at_mut(25);
    for wire in idle.iter_mut() {
        assert_eq!(wire.ask(GET).status, 200);
    }
    until("all are inside", || harness.shared().slots.open() == 50);
    let clock = bhav::base::Clock::system();
    assert_eq!(harness.drain(), 0);
    assert!(clock.monotonic_ms() < 8_000, "took {} ms", clock.monotonic_ms());
    for wire in idle.iter_mut().chain(silent) {
        wire.closes();
    }
}

#[test]
fn a_connection_that_was_busy_writing_when_the_end_began_ends_too() {
    let (harness, mut wire) = Harness::connected();
    wire.write("GET /large?20000000 HTTP/1.1\r\nHost: a\r\n\r\n");
    until("output waits for the client", || harness.shared().unread.bytes() > 0);
    let server = harness.into_server();
    let shared = std::sync::Arc::clone(server.shared());
    let clock = bhav::base::Clock::system();
    let draining = threads::spawn("drain", move || server.drain()).unwrap();
    until("it drains", || shared.is_draining());
    assert_eq!(wire.answer().body.len(), 20_000_000);
    wire.closes();
    assert_eq!(draining.join().unwrap(), 0);
    assert!(clock.monotonic_ms() < 8_000, "took {} ms", clock.monotonic_ms());
}

#[test]
fn a_connection_that_waits_at_the_cap_is_served_before_the_end() {
    let harness = Harness::with(&HttpSettings {
        connections_max: 1,
        ..settings()
    });
    let probe = harness.probe.clone();
    let mut inside = harness.connect();
    inside.write("GET /lane HTTP/1.1\r\nHost: a\r\n\r\n");
    probe.waiting.recv().unwrap();
    let mut outside = harness.connect();
    outside.write(GET);
    until("accepting pauses", || harness.shared().stats.accept_pauses.value() > 0);
    let server = harness.into_server();
    let shared = std::sync::Arc::clone(server.shared());
    let draining = threads::spawn("drain", move || server.drain()).unwrap();
    let pauses = shared.stats.accept_pauses.value();
    until("it drains", || {
        shared.is_draining() && shared.stats.accept_pauses.value() > pauses
    });
    probe.release.send(()).unwrap();
    assert!(inside.answer().says_close());
    let answer = outside.answer();
    assert_eq!((answer.status, answer.says_close()), (200, true));
    assert_eq!(draining.join().unwrap(), 0);
}

#[test]
fn a_drain_that_takes_too_long_says_how_many_it_cut_off() {
    let harness = Harness::with(&HttpSettings {
        drain_timeout_ms: 300,
        ..settings()
    });
    let probe = harness.probe.clone();
    let mut wire = harness.connect();
    wire.write("GET /lane HTTP/1.1\r\nHost: a\r\n\r\n");
    probe.waiting.recv().unwrap();
    assert_eq!(harness.drain(), 1);
    probe.release.send(()).unwrap();
    assert_eq!(wire.answer().status, 200);
}
