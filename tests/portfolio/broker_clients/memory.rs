//! An API secret leaves the process with the call that used it, also if the call panicked. Searches
//! all of the process's memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpStream;

use bhav::base::Clock;
use bhav::brokers::{Credentials, PortfolioClient};
use bhav::rt::{Lane, LaneError, LaneSpec};
use secrecy::ExposeSecret;
use zeroize::Zeroizing;

use super::bench::Bench;
use crate::support::Harness;

/// Bytes read at once. The end of each piece is kept for the next.
const PIECE_BYTES: usize = 1 << 20;
/// The secret is stored under this mask, so that the search does not find itself.
const MASK: u8 = 0x5a;
/// Only the end of the secret is searched for: freed memory loses its first bytes to the allocator.
const TAIL_BYTES: usize = 16;

/// A secret of this run alone, masked.
fn masked_secret() -> Vec<u8> {
    let number = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 1);
    let text = Zeroizing::new(format!("canary{number:016x}{number:016x}"));
    text.bytes().map(|byte| byte ^ MASK).collect()
}

fn unmasked(masked: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(masked.len()));
    masked
        .iter()
        .for_each(|byte| text.push(char::from(byte ^ MASK)));
    text
}

/// Number of copies of the secret in the writable memory of this process.
fn found(masked: &[u8]) -> usize {
    let masked = &masked[masked.len() - TAIL_BYTES..];
    let mut memory = File::open("/proc/self/mem").unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut piece = vec![0; PIECE_BYTES];
    let mut count = 0;
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let start = u64::from_str_radix(start, 16).unwrap();
        let end = u64::from_str_radix(end, 16).unwrap();
        if !rest.starts_with("rw") {
            continue;
        }
        let mut at = start;
        while at < end {
            let wanted = PIECE_BYTES.min((end - at) as usize);
            // A region may have gone since the list was made.
            if memory.seek(SeekFrom::Start(at)).is_err()
                || memory.read_exact(&mut piece[..wanted]).is_err()
            {
                break;
            }
            let piece = &piece[..wanted];
            // Searches for one first byte and checks each hit: checking every position would be too
            // slow.
            count += memchr::memchr_iter(masked[0] ^ MASK, piece)
                .filter(|at| {
                    let window = piece.get(*at..at + masked.len());
                    window.is_some_and(|window| {
                        window
                            .iter()
                            .zip(masked)
                            .all(|(byte, secret)| *byte == secret ^ MASK)
                    })
                })
                .count();
            if wanted < PIECE_BYTES {
                break;
            }
            at += (PIECE_BYTES - masked.len()) as u64;
        }
        // The bytes read must not be found again in the next region.
        piece.fill(0);
    }
    count
}

#[test]
fn no_copy_of_an_api_secret_outlives_its_sync() {
    let masked = masked_secret();
    let mut settings = bhav::sim::SimSettings {
        rate_limits: false,
        ..Default::default()
    };
    // The simulator does not know the secret, so only the clients can have left it.
    settings.broker_a.api_secret = "another".into();
    let clock = Clock::starting_at("2026-11-20T11:00:00+05:30".parse().unwrap());
    let bench = Bench::set(settings, &clock, |_| {});
    let held = unmasked(&masked);
    assert!(found(&masked) >= 1, "the search works");
    for user in [bench.user_of_a("USER01"), bench.user_of_b("USER02")] {
        let api_secret = held.as_str().into();
        let login = Credentials { api_secret, ..user };
        bench.broker_a.sync(&login).result.unwrap_err();
        bench.broker_b.sync(&login).result.unwrap_err();
    }
    drop(held);
    assert_eq!(found(&masked), 0);
}

#[test]
fn a_panic_amid_credentials_leaves_none() {
    let masked = masked_secret();
    let held = unmasked(&masked);
    let spec = LaneSpec {
        name: "panics",
        threads: 1,
        queue_max: 1,
    };
    let lane = Lane::start(&spec, &Clock::system()).unwrap();
    let credentials = Credentials {
        user: 1,
        client: None,
        api_key: "key".into(),
        api_secret: held.as_str().into(),
        one_time_code: "code".into(),
    };
    let ticket = lane.submit(20_000, move || {
        let api_secret = credentials.api_secret.expose_secret();
        assert!(api_secret.is_empty(), "on purpose");
    });
    assert_eq!(ticket.unwrap().wait(), Err(LaneError::Panicked));

    // The same in a handler, with the secret in the request's body: whole, in pieces, in chunks.
    let harness = Harness::start();
    let head = "POST /panic HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    let length = format!("Content-Length: {}\r\n\r\n", held.len());
    let chunk = format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", held.len());
    for (framing, end, pieces) in [
        (&length, "", 1),
        (&length, "", 2),
        (&chunk, "\r\n0\r\n\r\n", 1),
    ] {
        let mut stream = TcpStream::connect(&harness.address).unwrap();
        stream
            .write_all(format!("{head}{framing}").as_bytes())
            .unwrap();
        for piece in held.as_bytes().chunks(held.len().div_ceil(pieces)) {
            stream.write_all(piece).unwrap();
        }
        stream.write_all(end.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 500"), "{said}");
    }
    drop(held);
    drop(harness);
    assert_eq!(found(&masked), 0);
}
