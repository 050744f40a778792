//! Clients that send requests and do not read.

use std::io::ErrorKind;
use std::time::Duration;

use crate::support::harness::settings;
use crate::support::{Client, Harness, OWNED_BYTES, small, until};
use bhav::base::Clock;
use bhav::http::connection::backpressure::UNREAD_OUTPUT_TOTAL_BYTES_MAX;
use bhav::http::settings::HttpSettings;

const ASK: &str = "GET /owned HTTP/1.1\r\nHost: a\r\n\r\n";

/// A client with a small receive buffer in the kernel.
fn short_of_memory(harness: &Harness) -> Client {
    let wire = Client::unconnected(&harness.address).unwrap();
    wire.socket.set_recv_buffer_size(4096).unwrap();
    wire.knock(&harness.address).unwrap();
    wire
}

/// Reads up to `count` bytes, then waits until `time_ms` of this test.
fn read_until(wire: &Client, count: usize, clock: &Clock, time_ms: u64) -> usize {
    use std::io::Read;
    let mut room = vec![0; count];
    let mut at = 0;
    while at < count {
        match (&wire.socket).read(&mut room[at..]) {
            Ok(0) | Err(_) => return at,
            Ok(got) => at += got,
        }
    }
    until("time passes", || clock.monotonic_ms() >= time_ms);
    at
}

/// Sends requests until the server accepts no more, and returns the number of bytes accepted.
fn stuff(wire: &Client, request: &[u8]) -> usize {
    use std::io::Write;
    wire.socket
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let many = request.repeat(16 * 1024 / request.len());
    let mut taken = 0;
    loop {
        match (&wire.socket).write(&many) {
            Ok(count) => taken += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return taken,
            // Closed already: on a busy machine the deadline for unread output has passed.
            Err(_) => return taken,
        }
        assert!(taken < 256 * 1024 * 1024, "the server reads without end");
    }
}

#[test]
fn unread_output_is_bounded_and_its_owner_closed() {
    let settings = HttpSettings {
        unread_output_timeout_ms: 1_500,
        ..small()
    };
    let harness = Harness::with(&settings);
    let wire = harness.connect();
    stuff(&wire, b"GET /prepared HTTP/1.1\r\nHost: a\r\n\r\n");
    let held = || harness.shared().unread.bytes();
    assert!(held() <= settings.unread_output_bytes_max, "{} bytes held", held());
    let mut other = harness.connect();
    assert_eq!(
        other
            .ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n")
            .field("path"),
        "/n"
    );
    until("the reluctant reader is closed", || {
        harness.shared().stats.write_timeouts.value() == 1
    });
    drop(other);
    until("its place is free", || harness.shared().slots.open() == 0);
    assert_eq!(held(), 0);
}

#[test]
fn a_slow_reader_that_does_read_gets_everything() {
    let (harness, mut wire) = Harness::connected();
    let count = 200;
    let all = "GET /large?50000 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(count);
    wire.write(all);
    until("output waits for the client", || harness.shared().unread.bytes() > 0);
    for _ in 0..count {
        assert_eq!(wire.answer().body.len(), 50_000);
    }
    assert_eq!(wire.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n").field("path"), "/n");
}

#[test]
fn a_client_that_leaves_with_output_unread_leaves_nothing_behind() {
    let harness = Harness::start();
    for _ in 0..20 {
        let mut wire = harness.connect();
        wire.write("GET /large?8000000 HTTP/1.1\r\nHost: a\r\n\r\n");
        wire.head();
    }
    until("all are gone", || harness.shared().slots.open() == 0);
    assert_eq!(harness.shared().unread.bytes(), 0);
}

#[test]
fn a_client_that_reads_on_has_all_the_time_it_needs() {
    let settings = HttpSettings {
        unread_output_timeout_ms: 1_500,
        ..small()
    };
    let harness = Harness::with(&settings);
    let mut wire = short_of_memory(&harness);
    wire.write(ASK);
    let clock = Clock::system();
    let (mut all, mut now_ms) = (0, 0);
    while now_ms < 4_000 {
        now_ms += 100;
        all += read_until(&wire, OWNED_BYTES / 50, &clock, now_ms);
    }
    assert_eq!(all, OWNED_BYTES / 50 * 40, "cut off on the way");
    all += read_until(&wire, OWNED_BYTES - all, &clock, 0);
    assert_eq!(all, OWNED_BYTES);
    assert_eq!(harness.shared().stats.write_timeouts.value(), 0);
}

#[test]
fn a_client_that_drips_is_cut_off() {
    let harness = Harness::with(&small());
    let mut wire = short_of_memory(&harness);
    wire.write(ASK);
    let (clock, mut now_ms) = (Clock::system(), 0);
    let slow = || harness.shared().stats.write_timeouts.value();
    while slow() == 0 {
        now_ms += 20;
        assert!(now_ms < 10_000, "it may drip for ever");
        assert_eq!(read_until(&wire, 1_000, &clock, now_ms), 1_000);
    }
    until("its place is free", || harness.shared().slots.open() == 0);
    assert_eq!((slow(), harness.shared().unread.bytes()), (1, 0));
}

#[test]
fn when_all_hold_too_much_the_slowest_loses_and_not_the_newest() {
    // No connection is cut off before all have unread output, however busy the machine is.
    let patient = HttpSettings {
        unread_output_timeout_ms: 600_000,
        ..settings()
    };
    let harness = Harness::with(&patient);
    let shared = harness.shared();
    let mut wires = Vec::new();
    for number in 1..=UNREAD_OUTPUT_TOTAL_BYTES_MAX / OWNED_BYTES {
        let mut wire = short_of_memory(&harness);
        wire.write(ASK);
        until("it holds", || shared.unread.bytes() >= number * OWNED_BYTES);
        wires.push(wire);
    }
    let clock = Clock::system();
    let idle = wires.remove(0);
    // More than the kernel keeps of a connection, so the server has written while this was read.
    // The idle one's buffers in the kernel have long been full then.
    let begun_bytes = OWNED_BYTES / 2;
    for wire in &wires {
        assert_eq!(read_until(wire, begun_bytes, &clock, clock.monotonic_ms() + 2), begun_bytes);
    }
    assert_eq!(shared.stats.unread_cuts.value(), 0);
    let mut newest = harness.connect();
    assert_eq!(newest.ask(ASK).body.len(), OWNED_BYTES);
    assert_eq!(shared.stats.unread_cuts.value(), 1);
    assert!(
        read_until(&idle, OWNED_BYTES, &clock, 0) < OWNED_BYTES,
        "the slowest is not cut off"
    );
    for wire in &wires {
        let rest_bytes = OWNED_BYTES - begun_bytes;
        assert_eq!(read_until(wire, rest_bytes, &clock, 0), rest_bytes);
    }
    assert_eq!(shared.stats.unread_cuts.value(), 1);
    drop((idle, wires));
    until("nothing is held", || shared.unread.bytes() == 0);
}
