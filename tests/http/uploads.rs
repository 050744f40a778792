//! Files: admitted by their head, collected in pieces of a shared budget, and handed over whole.

use bhav::http::message::upload::UPLOADS_BYTES_MAX;
use bhav::http::settings::HttpSettings;
use sonic_rs::JsonValueTrait;

use crate::support::harness::settings;
use crate::support::{Answer, Client, Harness, until};

const MIB: usize = 1024 * 1024;

fn head(path: &str, user: u32, framing: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nX-User: {user}\r\n{framing}\r\n\r\n")
}

fn with_length(path: &str, user: u32, bytes: usize) -> String {
    head(path, user, &format!("Content-Length: {bytes}"))
}

/// So many bytes that no shift of a part goes unseen.
fn file(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 253) as u8).collect()
}

fn in_chunks(path: &str, user: u32, file: &[u8]) -> Vec<u8> {
    let mut wire = head(path, user, "Transfer-Encoding: chunked").into_bytes();
    for chunk in file.chunks(77_777) {
        wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        wire.extend_from_slice(chunk);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b"0\r\n\r\n");
    wire
}

#[track_caller]
fn expect_file(answer: &Answer, file: &[u8]) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    assert_eq!(json["bytes"].as_u64(), Some(file.len() as u64));
    let sum: u64 = (1..)
        .zip(file)
        .map(|(at, byte): (u64, _)| at * u64::from(*byte))
        .sum();
    assert_eq!(json["sum"].as_u64(), Some(sum));
}

#[test]
fn a_file_arrives_whole_in_both_framings_and_requests_follow_it() {
    let (harness, mut wire) = Harness::connected();
    for bytes in [0, 1, 65_535, 65_536, 65_537, 3 * MIB + 5] {
        let file = file(bytes);
        wire.write(with_length("/upload", 1, bytes)).write(&file);
        expect_file(&wire.answer(), &file);
        wire.write(in_chunks("/upload", 1, &file));
        expect_file(&wire.answer(), &file);
        assert_eq!(wire.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n").field("path"), "/n");
    }
    // Pipelined, with bodies of both kinds.
    let small = file(10);
    let one = [with_length("/upload", 1, 10).as_bytes(), &small].concat();
    let get = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab".to_vec();
    wire.write(
        [
            one.clone(),
            get.clone(),
            in_chunks("/upload", 1, &small),
            get,
        ]
        .concat(),
    );
    for is_file in [true, false, true, false] {
        let answer = wire.answer();
        match is_file {
            true => expect_file(&answer, &small),
            false => assert_eq!(answer.field("body"), "ab"),
        }
    }
    until("every piece is given back", || {
        (harness.shared().uploads.bytes() == 0).then_some(())
    });
}

#[test]
fn a_head_is_judged_before_the_file_comes() {
    let (harness, mut wire) = Harness::connected();
    let nobody = "POST /upload HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\
                  Content-Length: 30000000\r\n\r\n";
    let refused = wire.ask(nobody);
    assert_eq!((refused.status, refused.field("code").as_str()), (401, "token_missing"));
    assert!(refused.says_close());
    wire.closes();
    let mut wire = harness.connect();
    let bytes = 200_000;
    let asked = with_length("/upload", 1, bytes)
        .replace("Host: a\r\n", "Host: a\r\nExpect: 100-continue\r\n");
    assert_eq!(wire.ask(asked).status, 100);
    let file = file(bytes);
    wire.write(&file);
    expect_file(&wire.answer(), &file);
    assert_eq!(harness.probe.served(), 1);
}

#[test]
fn a_file_over_the_limit_is_413_file_too_large() {
    let limits = HttpSettings {
        upload_bytes_max: MIB,
        ..settings()
    };
    let harness = Harness::with(&limits);
    let refused = |wire: &mut Client| {
        let answer = wire.answer();
        assert_eq!((answer.status, answer.field("code").as_str()), (413, "file_too_large"));
        assert!(answer.field("detail").contains("at most 1 MiB"), "{}", answer.text());
        wire.closes();
    };
    let mut wire = harness.connect();
    wire.write(with_length("/upload", 1, MIB + 1));
    refused(&mut wire);
    let mut wire = harness.connect();
    wire.try_write(&in_chunks("/upload", 1, &file(MIB + 1)))
        .ok();
    refused(&mut wire);
    let mut wire = harness.connect();
    let file = file(MIB);
    wire.write(in_chunks("/upload", 1, &file));
    expect_file(&wire.answer(), &file);
}

#[test]
fn a_file_that_comes_too_slowly_is_408_and_gives_its_memory_back() {
    let (harness, mut wire) = Harness::connected();
    wire.write(with_length("/upload-hasty", 1, 1000)).write("a");
    until("it takes a piece", || (harness.shared().uploads.bytes() > 0).then_some(()));
    let answer = wire.answer();
    assert_eq!((answer.status, answer.field("code").as_str()), (408, "request_timeout"));
    wire.closes();
    until("the piece is given back", || {
        (harness.shared().uploads.bytes() == 0).then_some(())
    });
    assert_eq!(harness.probe.served(), 0);
}

#[test]
fn a_user_has_two_uploads_at_once_and_all_users_one_budget() {
    let harness = Harness::start();
    let busy = |wire: &mut Client| {
        let answer = wire.answer();
        assert_eq!((answer.status, answer.field("code").as_str()), (503, "uploads_busy"));
        assert!(answer.header("retry-after").is_some());
        wire.closes();
    };
    let keep = |user: u32, bytes: usize| {
        let mut wire = harness.connect();
        let file = file(bytes);
        wire.write(with_length("/upload-kept", user, bytes))
            .write(&file);
        expect_file(&wire.answer(), &file);
    };
    keep(1, 10);
    keep(1, 10);
    let mut third = harness.connect();
    third.write(with_length("/upload", 1, 10));
    busy(&mut third);
    let uploads = &harness.shared().uploads;
    assert_eq!(uploads.of_busy_users.value(), 1);
    // Another user fills the budget but for two pieces.
    keep(2, 31 * MIB);
    keep(2, 32 * MIB - 4 * 65_536 + MIB - 65_536 * 12);
    let left = UPLOADS_BYTES_MAX - uploads.bytes();
    assert!(left <= MIB, "{left}");
    // What does not fit is refused by its length, or where the last piece is taken.
    let mut long = harness.connect();
    long.write(with_length("/upload", 3, left + 1));
    busy(&mut long);
    let mut chunked = harness.connect();
    chunked
        .try_write(&in_chunks("/upload", 3, &file(left + 1)))
        .ok();
    busy(&mut chunked);
    assert_eq!(uploads.crowded.value(), 2);
    harness.probe.kept.lock().unwrap().clear();
    assert_eq!(uploads.bytes(), 0);
    keep(3, 10);
    harness.probe.kept.lock().unwrap().clear();
}
