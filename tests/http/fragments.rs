//! The answers to a stream of requests do not depend on how it is cut into packets.

use std::net::Shutdown;

use crate::support::{Answer, Harness};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// Cases over real connections; each takes a few milliseconds.
const CASES: u32 = 60;

fn request() -> impl Strategy<Value = String> {
    let method = prop::sample::select(vec!["GET", "POST", "PUT", "DELETE", "OPTIONS"]);
    let path = "/[a-z0-9%/.]{0,20}(\\?[a-z=&]{0,10})?";
    let extra = prop::collection::vec("[A-WY-Z][a-z]{0,8}", 0..6);
    let body = prop::option::of("[ -~\r\n]{0,80}");
    (method, path, extra, body, 1usize..30).prop_map(|(method, path, extra, body, chunk)| {
        let lines: String = extra
            .iter()
            .map(|name| format!("X-{name}: {name}\r\n"))
            .collect();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: a\r\nX-Seen: {}\r\n{lines}", path.len());
        match body {
            None => format!("{head}\r\n"),
            Some(body) if chunk < 15 => {
                format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
            }
            Some(body) => {
                let chunks: String = body
                    .as_bytes()
                    .chunks(chunk)
                    .map(|part| {
                        format!("{:x};n\r\n{}\r\n", part.len(), String::from_utf8_lossy(part))
                    })
                    .collect();
                format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\nT: r\r\n\r\n")
            }
        }
    })
}

fn answers(harness: &Harness, pieces: &[&[u8]], count: usize) -> Vec<Answer> {
    let mut wire = harness.connect();
    for piece in pieces {
        // A valid request that is refused shows in its answer, not in a failed send.
        wire.try_write(piece).ok();
    }
    let mut answers: Vec<Answer> = (0..count).map(|_| wire.answer()).collect();
    for answer in &mut answers {
        answer.headers.retain(|(name, _)| name != "Date");
    }
    assert_eq!(wire.pending(), 0);
    answers
}

fn pieces<'a>(stream: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| &stream[pair[0]..pair[1]])
        .collect()
}

/// Statuses of all answers until the server closes.
fn statuses(harness: &Harness, pieces: &[&[u8]]) -> Vec<u16> {
    let mut wire = harness.connect();
    for piece in pieces {
        wire.try_write(piece).ok();
    }
    // If the server has closed already, there is nothing to shut down.
    wire.socket.shutdown(Shutdown::Write).ok();
    wire.statuses_to_the_end()
}

#[test]
fn any_fragmentation_gives_the_same_answers() {
    let harness = Harness::start();
    let streams = (
        prop::collection::vec(request(), 1..8),
        prop::collection::vec(any::<prop::sample::Index>(), 0..24),
    );
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&streams, |(requests, cuts)| {
        let stream = requests.concat().into_bytes();
        let pieces = pieces(&stream, &cuts);
        let whole = answers(&harness, &[&stream], requests.len());
        prop_assert!(whole.iter().all(|answer| answer.status == 200), "{whole:?}");
        let cut = answers(&harness, &pieces, requests.len());
        (whole == cut)
            .then_some(())
            .ok_or_else(|| TestCaseError::fail(format!("{whole:?}\n{cut:?}")))
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn any_fragmentation_of_a_damaged_stream_is_refused_at_the_same_request() {
    let harness = Harness::start();
    let damage = (
        any::<prop::sample::Index>(),
        prop::sample::select(b"\0\r\n :;,/09aH\xff".to_vec()),
    );
    let streams = (
        prop::collection::vec(request(), 1..4),
        prop::collection::vec(damage, 1..4),
        prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    );
    let config = Config {
        cases: CASES * 3,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&streams, |(requests, damage, cuts)| {
        let mut stream = requests.concat().into_bytes();
        for (at, byte) in damage {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        let whole = statuses(&harness, &[&stream]);
        let cut = statuses(&harness, &pieces(&stream, &cuts));
        prop_assert_eq!(&whole, &cut);
        let refused = whole.iter().position(|status| *status != 200);
        prop_assert!(refused.is_none_or(|at| at == whole.len() - 1), "{whole:?}");
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_byte_in_a_packet_of_its_own() {
    let harness = Harness::start();
    let stream = "GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n\
                  POST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz\
                  GET / HTTP/1.0\r\n\r\n";
    let pieces: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
    let whole = answers(&harness, &[stream.as_bytes()], 3);
    assert_eq!(answers(&harness, &pieces, 3), whole);
}
