//! Head parser and chunked decoder on arbitrary bytes: they neither panic nor depend on how the
//! bytes are cut into reads.
//!
//! `cargo fuzz run head fuzz/corpus/head fuzz/seeds/head`. The first two bytes of an input choose
//! where it is cut.

#![no_main]

use bhav::http::message::chunked::{ChunkFault, Chunked};
use bhav::http::message::head::{Framing, Head, Parsed};
use libfuzzer_sys::fuzz_target;

const HEADERS_MAX: usize = 100;
const HEAD_BYTES_MAX: usize = 16 * 1024;
const BODY_BYTES_MAX: usize = 4 * 1024;

fuzz_target!(|data: &[u8]| {
    let Some((cuts, wire)) = data.split_first_chunk::<2>() else {
        return;
    };
    let first = usize::from(cuts[0]).min(wire.len());
    let second = (first + usize::from(cuts[1])).min(wire.len());
    heads(wire, &[first, second]);
    chunks(wire, first, second);
});

/// What a prefix was decided to be, the whole is too.
fn heads(wire: &[u8], prefixes: &[usize]) {
    let mut whole = Head::default();
    let outcome = whole.parse(wire, HEADERS_MAX, HEAD_BYTES_MAX);
    for &prefix in prefixes {
        let mut head = Head::default();
        match head.parse(&wire[..prefix], HEADERS_MAX, HEAD_BYTES_MAX) {
            Parsed::Partial => {}
            Parsed::Complete => {
                assert_eq!(outcome, Parsed::Complete);
                assert_eq!(format!("{head:?}"), format!("{whole:?}"));
            }
            Parsed::Fault(fault) => assert_eq!(outcome, Parsed::Fault(fault)),
        }
    }
    if outcome != Parsed::Complete {
        return;
    }
    assert!(whole.bytes <= wire.len().min(HEAD_BYTES_MAX));
    let head = &wire[..whole.bytes];
    assert!(head.ends_with(b"\r\n\r\n"));
    let mut line_feeds = head.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    assert!(line_feeds.all(|(at, _)| at > 0 && head[at - 1] == b'\r'));
    assert!(whole.path.of(head).iter().all(u8::is_ascii_graphic));
    for (name, value) in &whole.headers {
        assert!(!name.of(head).is_empty());
        assert!(
            !value
                .of(head)
                .iter()
                .any(|byte| matches!(byte, b'\r' | b'\n' | 0))
        );
    }
    let named = |wanted: &str| {
        let is = |name: &[u8]| name.eq_ignore_ascii_case(wanted.as_bytes());
        whole
            .headers
            .iter()
            .filter(|(name, _)| is(name.of(head)))
            .count()
    };
    let told = (named("content-length"), named("transfer-encoding"));
    match whole.framing {
        Framing::None => assert_eq!(told, (0, 0)),
        Framing::Length(_) => assert_eq!(told, (1, 0)),
        Framing::Chunked => assert_eq!(told, (0, 1)),
    }
    if whole.framing == Framing::Chunked {
        let rest = &wire[whole.bytes..];
        chunks(rest, rest.len() / 3, rest.len() / 2);
    }
}

fn chunks(wire: &[u8], first: usize, second: usize) {
    let whole = decode(&[wire]);
    let cut = decode(&[&wire[..first], &wire[first..second], &wire[second..]]);
    assert_eq!(whole, cut);
    if let Ok((body, used, _)) = whole {
        assert!(body.len() <= BODY_BYTES_MAX && body.len() <= used && used <= wire.len());
    }
}

fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), ChunkFault> {
    let (mut decoder, mut body, mut used, mut done) = (Chunked::default(), Vec::new(), 0, false);
    for piece in pieces {
        let (consumed, finished) = decoder.decode(piece, &mut body, BODY_BYTES_MAX)?;
        used += consumed;
        done = finished;
    }
    Ok((body, used, done))
}
