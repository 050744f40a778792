//! Many requests at once on one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::{Harness, small, until};
use bhav::http::settings::HttpSettings;
use bhav::rt::threads;

/// Output gathered in one pass before it is written.
const FLUSH_BYTES: usize = 64 * 1024;

fn get(number: usize) -> String {
    format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")
}

#[test]
fn a_thousand_requests_in_one_write_are_answered_in_order() {
    let (harness, mut wire) = Harness::connected();
    let all: String = (0..1_000).map(get).collect();
    wire.write(all);
    for number in 0..1_000 {
        assert_eq!(wire.answer().field("path"), format!("/{number}"));
    }
    assert_eq!(wire.pending(), 0);
    assert_eq!(harness.shared().slots.requests(), 1_000);
}

#[test]
fn answers_larger_than_a_flush_keep_their_order() {
    let (_harness, mut wire) = Harness::connected();
    let sizes = [1, 70_000, 3, 500_000, 0, 65_536, 2];
    let all: String = sizes
        .iter()
        .map(|size| format!("GET /large?{size} HTTP/1.1\r\nHost: a\r\n\r\n"))
        .collect();
    wire.write(all + &get(7));
    for size in sizes {
        assert_eq!(wire.answer().body.len(), size);
    }
    assert_eq!(wire.answer().field("path"), "/7");
}

#[test]
fn a_mixture_of_framings_stays_in_step() {
    let (_harness, mut wire) = Harness::connected();
    let mut all = String::new();
    for number in 0..100 {
        all += &get(number);
        all += "POST /l HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET ";
        all += "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        all += "3\r\nabc\r\n0\r\n\r\n";
    }
    wire.write(all);
    for number in 0..100 {
        assert_eq!(wire.answer().field("path"), format!("/{number}"));
        assert_eq!(wire.answer().field("body"), "GET ");
        assert_eq!(wire.answer().field("body"), "abc");
    }
}

#[test]
fn a_client_that_always_has_a_request_begun_is_not_slow() {
    // Each deadline belongs to one request: an answered one has used up only its own.
    let settings = HttpSettings {
        head_timeout_ms: 1_000,
        body_timeout_ms: 1_000,
        ..small()
    };
    let harness = Harness::with(&settings);
    let clock = bhav::base::Clock::system();
    let mut heads = harness.connect();
    let mut bodies = harness.connect();
    let (begin, end) = ("GET /h HTTP/1.1\r\n", "Host: a\r\n\r\n");
    let (first, second) = ("POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx", "y");
    heads.write(begin);
    bodies.write(first);
    while clock.monotonic_ms() < 2_500 {
        assert_eq!(heads.ask(format!("{end}{begin}")).field("path"), "/h");
        assert_eq!(bodies.ask(format!("{second}{first}")).field("body"), "xy");
    }
    assert_eq!(heads.ask(end).field("path"), "/h");
    assert_eq!(bodies.ask(second).field("body"), "xy");
}

#[test]
fn a_flood_on_every_worker_does_not_starve_the_others() {
    let harness = Harness::start();
    let stop = Arc::new(AtomicBool::new(false));
    let begun = Arc::new(AtomicUsize::new(0));
    let mut floods = Vec::new();
    for _ in 0..4 {
        let (mut wire, stop, begun) = (harness.connect(), Arc::clone(&stop), Arc::clone(&begun));
        let batch: String = (0..200).map(get).collect();
        let flood = move || {
            for round in 0.. {
                wire.write(&batch);
                (0..200).for_each(|_| assert_eq!(wire.answer().status, 200));
                begun.fetch_add(usize::from(round == 0), Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        };
        floods.push(threads::spawn("flood", flood).unwrap());
    }
    let mut others: Vec<_> = (0..4).map(|_| harness.connect()).collect();
    until("all floods have begun", || begun.load(Ordering::Relaxed) == 4);
    for number in 0..25 {
        for wire in &mut others {
            assert_eq!(wire.ask(get(number)).field("path"), format!("/{number}"));
        }
    }
    stop.store(true, Ordering::Relaxed);
    for flood in floods {
        flood.join().unwrap();
    }
}

#[test]
fn one_client_pipelining_deeply_waits_for_its_neighbours_after_each_flush() {
    let harness = Harness::start();
    let slots = &harness.shared().slots;
    let mut wire = harness.connect();
    // Answers of one pass do not make the connection wait.
    let answers = 16;
    wire.write("GET /large?1500 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(answers));
    (0..answers).for_each(|_| assert_eq!(wire.answer().body.len(), 1_500));
    wire.ask("GET /large?200000 HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.ask(get(1));
    assert_eq!(slots.yields(), 0);
    // 450 KiB take several passes.
    let answers = 300;
    wire.write("GET /large?1500 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(answers));
    (0..answers).for_each(|_| assert_eq!(wire.answer().body.len(), 1_500));
    let turns = answers * 1_500 / FLUSH_BYTES;
    assert!(slots.yields() >= turns as u64, "{} yields", slots.yields());
}
