//! The chunked coding of request bodies.

use crate::support::{Answer, Client, Harness};
const HEAD: &str = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fn post(wire: &mut Client, chunks: &str) -> Answer {
    wire.write(HEAD).ask(chunks)
}

#[test]
fn chunks_are_joined_and_the_next_request_follows() {
    let (_harness, mut wire) = Harness::connected();
    for (chunks, body) in [
        ("4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n", "Wikipedia"),
        ("0\r\n\r\n", ""),
        ("00a\r\n0123456789\r\n000\r\n\r\n", "0123456789"),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("4;a=b;c=\"d;e\"\r\nWiki\r\n0;last\r\n\r\n", "Wiki"),
        ("4 ; a=b\r\nWiki\r\n0\r\n\r\n", "Wiki"),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
        ("1\r\nx\r\n0\r\nEmpty:\r\nX: a:b\r\n\r\n", "x"),
        ("4\r\nWiki\r\n0\r\nX-Sum: 1\r\nContent-Length: 99\r\nHost: b\r\n\r\n", "Wiki"),
    ] {
        let answer = post(&mut wire, chunks);
        assert_eq!((answer.status, answer.field("body").as_str()), (200, body), "{chunks:?}");
        assert_eq!(answer.field("host"), "a", "a trailer is not a header");
    }
    assert_eq!(wire.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n").field("path"), "/n");
}

#[test]
fn every_split_of_a_chunked_request_gives_the_same_body() {
    let harness = Harness::start();
    let text = format!("{HEAD}4;x=y\r\nWiki\r\n5\r\npedia\r\n0\r\nA: b\r\n\r\n");
    let mut wire = harness.connect();
    for at in 1..text.len() {
        let (first, second) = text.split_at(at);
        assert_eq!(wire.write(first).ask(second).field("body"), "Wikipedia", "split at {at}");
    }
    for byte in text.as_bytes() {
        wire.write([*byte]);
    }
    assert_eq!(wire.answer().field("body"), "Wikipedia");
}

#[test]
fn malformed_chunks_are_refused_and_nothing_after_them_is_read() {
    let harness = Harness::start();
    let next = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let long_line = format!("4;{}\r\nWiki\r\n0\r\n\r\n", "x".repeat(2_000));
    let many_trailers = format!("0\r\n{}\r\n", "A: b\r\n".repeat(4_000));
    for chunks in [
        "g\r\n",
        "-4\r\nWiki\r\n0\r\n\r\n",
        "+4\r\nWiki\r\n0\r\n\r\n",
        "0x4\r\nWiki\r\n0\r\n\r\n",
        " 4\r\nWiki\r\n0\r\n\r\n",
        "\r\n4\r\nWiki\r\n0\r\n\r\n",
        ";a\r\n",
        "4\nWiki\r\n0\r\n\r\n",
        "4\rWiki\r\n0\r\n\r\n",
        "4\r\nWiki0\r\n\r\n",
        "4\r\nWiki\n0\r\n\r\n",
        "4\r\nWikipedia\r\n0\r\n\r\n",
        "4;a\nb\r\nWiki\r\n0\r\n\r\n",
        "4 5\r\nWiki\r\n0\r\n\r\n",
        "4 a=b\r\nWiki\r\n0\r\n\r\n",
        "0\r\n folded: x\r\n\r\n",
        "0\r\nA: b\nC: d\r\n\r\n",
        "0\r\nX\r\n\n",
        "0\r\nX\r\n\r\n",
        "0\r\nX : y\r\n\r\n",
        "0\r\n: y\r\n\r\n",
        "0\r\nX: y\r\nhalf a line\r\n\r\n",
        "4 \r\nWiki\r\n0\r\n\r\n",
        "4\t\r\nWiki\r\n0\r\n\r\n",
        "4\r\nWiki\r\n0 \r\n\r\n",
        long_line.as_str(),
        many_trailers.as_str(),
    ] {
        let mut wire = harness.connect();
        // The server may close the connection while the client still sends.
        wire.write(HEAD)
            .try_write(format!("{chunks}{next}").as_bytes())
            .ok();
        let answer = wire.answer();
        assert_eq!(answer.status, 400, "{chunks:?}");
        assert!(answer.says_close(), "{chunks:?}");
        wire.closes();
    }
    assert_eq!(harness.probe.served(), 0);
}

#[test]
fn a_size_that_would_pass_the_limit_is_refused_before_its_data() {
    let harness = Harness::start();
    for chunks in [
        "10001\r\n",
        "ffffffffffffffff\r\n",
        "fffffffffffffffff\r\n",
        "8000\r\n",
    ] {
        let mut wire = harness.connect();
        wire.write(HEAD);
        if chunks == "8000\r\n" {
            wire.write(format!("8001\r\n{}\r\n", "a".repeat(0x8001)));
        }
        let answer = wire.ask(chunks);
        assert_eq!((answer.status, answer.field("code").as_str()), (413, "body_too_large"));
        wire.closes();
    }
    let mut wire = harness.connect();
    let answer = post(&mut wire, &format!("10000\r\n{}\r\n0\r\n\r\n", "a".repeat(0x10000)));
    assert_eq!((answer.status, answer.field("body").len()), (200, 0x10000));
}
