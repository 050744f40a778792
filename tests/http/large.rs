//! Answers too large to be copied or written at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::{Harness, OWNED_BYTES, until};
use bhav::rt::threads;

const ASK: &str = "GET /owned HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_large_body_is_sent_from_where_it_stands_and_let_go_once_written() {
    let harness = Harness::start();
    let body = &harness.probe.owned;
    let unused = Arc::strong_count(body);
    let mut wire = harness.connect();
    wire.write(ASK);
    until("it waits for its reader", || harness.shared().unread.bytes() >= OWNED_BYTES);
    assert_eq!(Arc::strong_count(body), unused + 1, "held and not copied");
    let answer = wire.answer();
    assert_eq!((answer.status, answer.header("x-made")), (200, Some("apart")));
    assert!(answer.body == **body, "another body of {} bytes", answer.body.len());
    until("it is let go", || Arc::strong_count(body) == unused);
    assert_eq!(wire.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n").field("path"), "/n");
    assert_eq!(harness.shared().unread.bytes(), 0);
}

#[test]
fn large_and_small_bodies_keep_their_order_and_head_has_none() {
    let (harness, mut wire) = Harness::connected();
    let asked = [
        "GET /1",
        "GET /owned",
        "HEAD /owned",
        "GET /owned-small",
        "GET /large?500000",
    ];
    wire.write(
        asked
            .map(|line| format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"))
            .concat(),
    );
    wire.write("POST /owned HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    wire.write("GET /owned HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(wire.answer().field("path"), "/1");
    assert_eq!(wire.answer().body.len(), OWNED_BYTES);
    assert_eq!(wire.head().header("content-length"), Some(&*OWNED_BYTES.to_string()));
    assert_eq!(wire.answer().body, b"small");
    assert_eq!(wire.answer().body.len(), 500_000);
    assert!(wire.answer().body == *harness.probe.owned, "shared memory is not wiped");
    let last = wire.answer();
    assert!(last.says_close() && last.body.len() == OWNED_BYTES);
    wire.closes();
}

#[test]
fn a_large_body_of_a_panicking_handler_is_not_sent() {
    let harness = Harness::start();
    let unused = Arc::strong_count(&harness.probe.owned);
    let mut wire = harness.connect();
    let answer = wire.ask("GET /owned-panic HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((answer.status, answer.field("code").as_str()), (500, "internal_error"));
    wire.closes();
    assert_eq!(Arc::strong_count(&harness.probe.owned), unused);
}

#[test]
fn readers_of_large_bodies_do_not_starve_the_others() {
    let harness = Harness::start();
    let unused = Arc::strong_count(&harness.probe.owned);
    let stop = Arc::new(AtomicBool::new(false));
    let read_bodies = Arc::new(AtomicUsize::new(0));
    let mut readers = Vec::new();
    for _ in 0..4 {
        let (address, stop) = (harness.address.clone(), Arc::clone(&stop));
        let read_bodies = Arc::clone(&read_bodies);
        let read = move || {
            while !stop.load(Ordering::Relaxed) {
                let mut wire = crate::support::Client::connect(&address);
                assert_eq!(wire.ask(ASK).body.len(), OWNED_BYTES);
                read_bodies.fetch_add(1, Ordering::Relaxed);
            }
        };
        readers.push(threads::spawn("reader", read).unwrap());
    }
    until("large bodies are read", || read_bodies.load(Ordering::Relaxed) >= 8);
    let mut others: Vec<_> = (0..4).map(|_| harness.connect()).collect();
    for number in 0..25 {
        for wire in &mut others {
            let answer = wire.ask(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(answer.field("path"), format!("/{number}"));
        }
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    until("all is let go", || Arc::strong_count(&harness.probe.owned) == unused);
}
