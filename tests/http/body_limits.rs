//! A path may have limits of its own for bodies, which the probe gives to some.

use bhav::base::Clock;

use crate::support::{Answer, Client, Harness, small};

const KIB: usize = 1024;

fn with_length(path: &str, bytes: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\n")
}

fn in_chunks(path: &str, bytes: usize) -> String {
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunks = (0..bytes / 256).map(|_| format!("100\r\n{}\r\n", "b".repeat(256)));
    let rest = bytes % 256;
    let last = if rest > 0 {
        format!("{rest:x}\r\n{}\r\n", "b".repeat(rest))
    } else {
        String::new()
    };
    head + &chunks.collect::<String>() + &last + "0\r\n\r\n"
}

/// Sends a body of so many bytes in both framings, and passes each answer to `judge`.
fn post(harness: &Harness, path: &str, bytes: usize, judge: impl Fn(&mut Client, &Answer)) {
    for text in [
        with_length(path, bytes) + &"b".repeat(bytes),
        in_chunks(path, bytes),
    ] {
        let mut wire = harness.connect();
        // A server that refuses may close while the client still sends.
        wire.try_write(text.as_bytes()).ok();
        let answer = wire.answer();
        judge(&mut wire, &answer);
    }
}

#[test]
fn a_body_up_to_its_paths_limit_is_taken_and_one_more_byte_is_413_with_the_limit() {
    let harness = Harness::start();
    for (path, bytes_max, words) in [
        ("/narrow", KIB, "at most 1 KiB"),
        ("/odd", 1000, "at most 1000 bytes"),
        ("/wide", KIB * KIB, "at most 1 MiB"),
        ("/none", 0, "none is taken"),
        ("/usual", 64 * KIB, "at most 64 KiB"),
    ] {
        post(&harness, path, bytes_max, |wire, answer| {
            assert_eq!(answer.field("body").len(), bytes_max, "{path}");
            // What follows on the connection has limits of its own again.
            let next = with_length("/usual", 2 * KIB) + &"c".repeat(2 * KIB);
            assert_eq!(wire.ask(next).field("body").len(), 2 * KIB, "{path}");
        });
        post(&harness, path, bytes_max + 1, |wire, answer| {
            assert_eq!(answer.status, 413, "{path}");
            assert_eq!(answer.field("code"), "body_too_large");
            assert!(answer.field("detail").contains(words), "{path}: {}", answer.text());
            assert!(answer.says_close(), "{path}");
            wire.closes();
        });
    }
}

#[test]
fn pipelined_requests_have_each_the_limit_of_its_path() {
    let (harness, mut wire) = Harness::connected();
    let text = |path, bytes| with_length(path, bytes) + &"b".repeat(bytes);
    let get = "GET /n HTTP/1.1\r\nHost: a\r\n\r\n";
    let wide = text("/wide", 300 * KIB);
    let all = [
        &text("/narrow", KIB),
        get,
        &wide,
        &in_chunks("/wide", 200 * KIB),
        get,
    ];
    wire.write(all.concat()).write(text("/narrow", KIB + 1));
    for bytes in [KIB, 0, 300 * KIB, 200 * KIB, 0] {
        assert_eq!(wire.answer().field("body").len(), bytes);
    }
    assert_eq!(wire.answer().status, 413);
    wire.closes();
    assert_eq!(harness.probe.served(), 5);
}

#[test]
fn the_go_ahead_follows_the_limit_of_the_path() {
    let (harness, mut wire) = Harness::connected();
    let expect = "Host: a\r\nExpect: 100-continue\r\n";
    let ask = |path, bytes| with_length(path, bytes).replace("Host: a\r\n", expect);
    assert_eq!(wire.ask(ask("/wide", 100 * KIB)).status, 100);
    assert_eq!(wire.ask("b".repeat(100 * KIB)).field("body").len(), 100 * KIB);
    for (path, bytes) in [("/usual", 100 * KIB), ("/narrow", KIB + 1)] {
        let mut wire = harness.connect();
        assert_eq!(wire.ask(ask(path, bytes)).status, 413, "{path}");
        wire.closes();
    }
}

#[test]
fn a_slow_body_ends_at_the_deadline_of_its_path() {
    let harness = Harness::start();
    for text in [
        with_length("/hasty", 4),
        in_chunks("/hasty", 4).replace("\r\n0\r\n\r\n", ""),
    ] {
        let mut wire = harness.connect();
        let clock = Clock::system();
        assert_eq!(wire.ask(text).status, 408);
        // The usual deadline of these settings is 20 s.
        assert!(clock.monotonic_ms() < 10_000, "{} ms", clock.monotonic_ms());
        wire.closes();
    }
    // A deadline longer than the usual one: a connection that came later has passed that.
    let harness = Harness::with(&small());
    let mut wire = harness.connect();
    wire.write(with_length("/patient", 4) + "ab");
    let mut usual = harness.connect();
    assert_eq!(usual.ask(with_length("/usual", 4) + "ab").status, 408);
    assert_eq!(wire.ask("cd").field("body"), "abcd");
    // The next request does not inherit it.
    assert_eq!(wire.ask(with_length("/usual", 4) + "ab").status, 408);
    wire.closes();
}

#[test]
fn only_a_request_with_a_body_asks_for_limits() {
    let (harness, mut wire) = Harness::connected();
    for _ in 0..5 {
        wire.ask("GET /narrow HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    assert_eq!(harness.probe.asked_for_limits(), 0);
    wire.write(with_length("/narrow", 2)).write("a").ask("b");
    wire.ask(in_chunks("/narrow", 2));
    assert_eq!(harness.probe.asked_for_limits(), 2, "once for each body");
}
