//! Readers that are slow, silent, talkative or gone.

use std::io::Write;
use std::net::Shutdown;

use rustix::net::{RecvFlags, recv};

use super::stage::{Stage, number_of};
use crate::support::{Client, EventParser, EventReader, STREAM, until};

const ASK: &str = "GET /api/index/stream HTTP/1.1\r\nHost: a\r\n\r\n";

/// A client with a small receive buffer in the kernel, which has requested a stream.
fn narrow(stage: &Stage) -> Client {
    narrow_with(stage, ASK)
}

fn narrow_with(stage: &Stage, ask: &str) -> Client {
    let address = stage.service.0.address();
    let mut client = Client::unconnected(address).unwrap();
    client.socket.set_recv_buffer_size(4096).unwrap();
    client.knock(address).unwrap();
    client.write(ask);
    client
}

/// Publishes until output waits for a reader that does not read, and returns the last number.
fn stuff(stage: &Stage, bytes: usize) -> usize {
    let shared = stage.service.0.server().shared();
    let mut number = 0;
    until("output waits for the reader", || {
        number += 1;
        stage.publish(number, bytes);
        shared.unread.bytes() > 0
    });
    number
}

#[test]
fn a_reader_that_stops_gets_the_rest_of_one_frame_and_then_the_newest() {
    let stage = Stage::running(|_| {});
    stage.publish(0, 40_000);
    let client = narrow(&stage);
    stage.await_open(1);
    let stuck = stuff(&stage, 40_000);
    let last = stuck + 300;
    (stuck + 1..=last).for_each(|number| drop(stage.publish(number, 40_000)));
    let mut reader = EventReader::over(client);
    let mut seen = Vec::new();
    while seen.last() != Some(&last) {
        seen.push(number_of(&reader.event_named("snapshot").data));
    }
    assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
    let late: Vec<_> = seen.iter().filter(|number| **number > stuck).collect();
    assert!(late.len() <= 2, "one was under way, then the newest: {seen:?}");
    assert!(stage.streams().stats.conflated.value() >= 298);
    // The reader reads again.
    let json = stage.publish(last + 1, 10);
    assert_eq!(reader.event_named("snapshot").data, json);
}

#[test]
fn a_reader_that_never_reads_holds_little_and_is_cut_off() {
    let stage = Stage::running(|config| config.http.unread_output_timeout_ms = 700);
    let _client = narrow(&stage);
    stage.await_open(1);
    stuff(&stage, 2_000);
    let taken = stage.streams().stats.bytes.value();
    assert!(taken < 400_000, "the kernel took {taken} bytes for a reader that never reads");
    stage.await_open(0);
    assert_eq!(stage.streams().stats.slow_cuts.value(), 1);
    stage.await_nothing_held();
}

/// Takes at most `most` of the bytes that have arrived.
fn sip(client: &Client, most: usize) -> Vec<u8> {
    let mut room = vec![0; most];
    let (count, _) = recv(&client.socket, &mut room[..], RecvFlags::DONTWAIT).unwrap_or((0, 0));
    room.truncate(count);
    room
}

#[test]
fn a_reader_slower_than_the_changes_gets_whole_frames_and_ends_with_the_newest() {
    const FRAME: usize = 20_000;
    let stage = Stage::running(|_| {});
    stage.publish(0, FRAME);
    let mut client = narrow_with(&stage, &ASK.replace("1.1", "1.0"));
    client.head();
    let mut parser = EventParser::default();
    parser.feed(&client.take_pending());
    let shared = stage.service.0.server().shared();
    let (mut number, mut held_max) = (0, 0);
    // The reader takes a fifth of the published bytes.
    until("dozens of frames not to be sent", || {
        number += 1;
        stage.publish(number, FRAME);
        parser.feed(&sip(&client, FRAME / 5));
        held_max = shared.unread.bytes().max(held_max);
        (stage.streams().stats.conflated.value() > 50).then_some(())
    });
    assert!(held_max > 0 && held_max < FRAME + 200, "{held_max} bytes held for one reader");
    let last = format!("{{\"number\":{number},");
    until("the newest", || {
        parser.feed(&sip(&client, FRAME));
        parser
            .events
            .last()
            .is_some_and(|event| event.data.starts_with(&last))
            .then_some(())
    });
    let mut seen = Vec::new();
    for event in &parser.events {
        assert_eq!((&*event.name, event.data.ends_with("\"}")), ("snapshot", true));
        assert!(event.data.len() > FRAME, "{} bytes", event.data.len());
        seen.push(number_of(&event.data));
    }
    assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
    assert!(parser.is_between_events());
    assert_eq!(stage.streams().stats.slow_cuts.value(), 0);
}

#[test]
fn a_reader_that_takes_a_byte_now_and_then_is_cut_off_all_the_same() {
    let stage = Stage::running(|config| config.http.unread_output_timeout_ms = 1_000);
    let client = narrow(&stage);
    stage.await_open(1);
    let frame = 100_000;
    stuff(&stage, frame);
    let shared = stage.service.0.server().shared();
    let mut sips = 0;
    until("it to be cut off", || {
        sips += sip(&client, 1).len();
        let held = shared.unread.bytes();
        assert!(held < frame + 200, "{held} bytes held for one reader");
        (stage.streams().stats.slow_cuts.value() == 1).then_some(())
    });
    assert!(sips > 0, "it did read");
    stage.await_open(0);
    stage.await_nothing_held();
}

#[test]
fn a_client_that_goes_away_frees_its_place() {
    let stage = Stage::running(|_| {});
    stage.publish(0, 100);
    type Leave = fn(&Client);
    let ways: [Leave; 3] = [
        |client| client.socket.shutdown(Shutdown::Write).unwrap(),
        |client| client.socket.shutdown(Shutdown::Both).unwrap(),
        // Closes with a reset.
        |client| {
            client
                .socket
                .set_linger(Some(std::time::Duration::ZERO))
                .unwrap();
        },
    ];
    for (leave, resets) in ways.into_iter().zip([false, false, true]) {
        let readers: Vec<_> = (0..20).map(|_| stage.open("")).collect();
        stage.await_open(20);
        readers.iter().for_each(|reader| leave(&reader.client));
        if resets {
            drop(readers);
        }
        stage.await_open(0);
    }
    stage.await_nothing_held();
}

#[test]
fn a_client_that_goes_away_in_the_midst_of_a_frame_frees_everything() {
    // The deadline cuts nobody off meanwhile.
    let stage = Stage::running(|config| config.http.unread_output_timeout_ms = 600_000);
    let shared = stage.service.0.server().shared();
    let ways: [fn(Client); 3] = [
        |client| client.socket.shutdown(Shutdown::Both).unwrap(),
        |client| {
            client
                .socket
                .set_linger(Some(std::time::Duration::ZERO))
                .unwrap();
            drop(client);
        },
        // Unread data makes this close a reset as well.
        drop,
    ];
    for (way, leave) in ways.into_iter().enumerate() {
        for target in [STREAM.to_owned(), format!("{STREAM}?symbols=NSE:AA")] {
            let ask = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            let client = narrow_with(&stage, &ask);
            stage.await_open(1);
            stuff(&stage, 40_000 + way);
            leave(client);
            stage.await_open(0);
            until("all of it to be freed", || {
                let (unread, open) = (shared.unread.bytes(), shared.slots.open());
                let choices = stage.choices().count();
                match (unread, open, choices) {
                    (0, 0, 0) => Ok(()),
                    _ => Err(format!("{unread} bytes, {open} open, {choices} choices; way {way}")),
                }
            });
            assert_eq!(stage.streams().taken(), 0);
        }
    }
    let stats = &stage.streams().stats;
    assert_eq!((stats.slow_cuts.value(), stats.crowded_cuts.value()), (0, 0));
}

#[test]
fn two_thousand_comings_and_goings_leave_nothing() {
    let stage = Stage::running(|_| {});
    for number in 0..2_000 {
        if number % 10 == 0 {
            stage.publish(number, 500);
        }
        let mut client = stage.service.client();
        client.write(ASK);
        if number % 3 > 0 {
            client.head();
        }
    }
    stage.await_open(0);
    stage.await_nothing_held();
}

#[test]
fn a_second_request_is_dropped_and_too_much_input_ends_the_stream() {
    let stage = Stage::running(|_| {});
    stage.publish(0, 10);
    // A second request, in one write with the first, and later.
    let mut client = stage.service.client();
    client.write(format!("{ASK}{ASK}"));
    let mut reader = EventReader::over(client);
    reader.event_named("snapshot");
    let left = 4 * 1024 - ASK.len();
    (&reader.client.socket)
        .write_all(&vec![b'x'; left])
        .unwrap();
    for number in 1..4 {
        let json = stage.publish(number, 10);
        assert_eq!(reader.event_named("snapshot").data, json);
    }
    let stats = &stage.streams().stats;
    assert_eq!(stats.input_cuts.value(), 0);
    (&reader.client.socket).write_all(b"x").unwrap();
    reader.end();
    assert!(!reader.is_complete);
    until("it is counted", || stats.input_cuts.value() == 1);
    // A megabyte at once.
    let mut client = stage.service.client();
    client.write(format!("GET {STREAM} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let _ = client.try_write(&vec![b'x'; 1024 * 1024]);
    until("it is counted", || stats.input_cuts.value() == 2);
    stage.await_open(0);
}
