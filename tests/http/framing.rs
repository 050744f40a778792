//! The end of a request. If a proxy in front sees it elsewhere, a second request could be smuggled
//! past the proxy's rules. So an ambiguous request is refused, and nothing after it is read.

use crate::support::{Harness, until};
use sonic_rs::JsonValueTrait;

/// A request that must never be answered after a refused one.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends `text` and a further request in one write; the answer is `status`, then the end.
#[track_caller]
fn refused_text(harness: &Harness, text: &str, status: u16) {
    let mut wire = harness.connect();
    let before = harness.probe.served();
    let answer = wire.ask(format!("{text}{SMUGGLED}"));
    assert_eq!(answer.status, status, "{text:?}");
    assert!(answer.says_close(), "{text:?}");
    wire.closes();
    assert_eq!(harness.probe.served(), before, "{text:?} reached the service");
}

#[track_caller]
fn refused_lines(harness: &Harness, lines: &str, status: u16) {
    refused_text(harness, &format!("POST /a HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n"), status);
}

#[test]
fn conflicting_lengths_are_refused() {
    let harness = Harness::start();
    for lines in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3\r\nContent-Length: 3",
        "Content-Length: 3, 3",
        "content-length: 3\r\nCONTENT-LENGTH: 30",
        "Content-Length: 0\r\nTransfer-Encoding: identity",
    ] {
        refused_lines(&harness, lines, 400);
    }
}

#[test]
fn lengths_that_are_not_plain_numbers_are_refused() {
    let harness = Harness::start();
    for value in [
        "",
        "abc",
        "-1",
        "+5",
        "0x10",
        "1e1",
        "5 5",
        "5;",
        "5.0",
        "\"5\"",
        "99999999999999999999",
        "٣",
    ] {
        refused_lines(&harness, &format!("Content-Length: {value}"), 400);
    }
}

#[test]
fn codings_other_than_chunked_alone_are_refused() {
    let harness = Harness::start();
    for value in [
        "",
        "gzip",
        "identity",
        "chunked, gzip",
        "chunked, chunked",
        "chunked, identity",
        "xchunked",
        "chunkedx",
        "\"chunked\"",
        "chunked;q=1",
        ", chunked",
        "gzip, chunked, chunked",
        "gzip;, chunked",
        "gzip chunked",
        "gzip, , chunked",
        "\"gzip, chunked",
    ] {
        refused_lines(&harness, &format!("Transfer-Encoding: {value}"), 400);
    }
    // An unknown coding before a final `chunked`, which ends the body (RFC 9112 6.1).
    for value in [
        "gzip, chunked",
        "GZIP ,\tChunked",
        "identity, chunked",
        "x-made-up, deflate, chunked",
        "gzip\r\nTransfer-Encoding: chunked",
        "a;q=\"b, chunked\", chunked",
    ] {
        refused_lines(&harness, &format!("Transfer-Encoding: {value}"), 501);
    }
    refused_lines(&harness, "Content-Length: 1\r\nTransfer-Encoding: gzip, chunked", 400);
    refused_lines(&harness, "Transfer-Encoding: gzip, chunked\r\nContent-Length: 1", 400);
    refused_text(&harness, "POST / HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400);
    refused_lines(&harness, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400);
    refused_text(&harness, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
}

#[test]
fn lines_that_another_parser_could_read_differently_are_refused() {
    let harness = Harness::start();
    for lines in [
        "X: a\r\n folded",
        "X: a\r\n\tContent-Length: 5",
        "Transfer-Encoding:\r\n chunked",
        "Content-Length : 5",
        "Content-Length\t: 5",
        " Content-Length: 5",
        "Content-Length",
        ": 5",
        "X: a\rContent-Length: 5",
        "X: a\0",
        "X: a\u{b}b",
        "X\0: a",
        "X(y): a",
        "Transfer-Encoding: \u{b}chunked",
        "Transfer_Encoding: a\r\nTransfer-Encoding: chunked\u{c}",
    ] {
        refused_lines(&harness, lines, 400);
    }
}

#[test]
fn request_lines_that_are_not_http_are_refused() {
    let harness = Harness::start();
    for line in [
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / a HTTP/1.1",
        "GET /\tHTTP/1.1",
        " GET / HTTP/1.1",
        "GET /",
        "GET / http/1.1",
        "GET / HTTP/1.1 ",
        "GET / HTTP/11",
        "GET / HTTP/1.10",
        "GET / HTTPS/1.1",
        "GET a HTTP/1.1",
        "GET * HTTP/1.1",
        "GET ?a=b HTTP/1.1",
        "GET /a#b HTTP/1.1",
        "GET /\u{e9} HTTP/1.1",
        "GET ftp://a/ HTTP/1.1",
        "GET http:///a HTTP/1.1",
        "GET http://user@a/ HTTP/1.1",
        "CONNECT a:80 HTTP/1.1",
        "(GET) / HTTP/1.1",
    ] {
        refused_text(&harness, &format!("{line}\r\nHost: a\r\n\r\n"), 400);
    }
    refused_text(&harness, "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}\r\n\r\n", 400);
}

#[test]
fn host_is_there_once_and_is_a_host() {
    let harness = Harness::start();
    for host in [
        "",
        "Host: a\r\nHost: a\r\n",
        "Host: a b\r\n",
        "Host: a/b\r\n",
        "Host: \r\n",
    ] {
        refused_text(&harness, &format!("GET / HTTP/1.1\r\n{host}\r\n"), 400);
    }
    let mut wire = harness.connect();
    assert_eq!(wire.ask("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").status, 200);
}

#[test]
fn a_body_is_never_the_next_request() {
    let (harness, mut wire) = Harness::connected();
    let length = SMUGGLED.len();
    wire.write(format!("POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"));
    wire.write(SMUGGLED);
    wire.write(format!(
        "GET /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{SMUGGLED}"
    ));
    wire.write("POST /ignore HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    wire.write(format!("{length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n"));
    for _ in 0..3 {
        assert_eq!(wire.answer().body, b"ignored");
    }
    assert_eq!(
        wire.ask("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
            .field("path"),
        "/next"
    );
    assert_eq!(harness.probe.served(), 4);
}

#[test]
fn a_body_arrives_whole_however_long() {
    let (_harness, mut wire) = Harness::connected();
    for length in [0, 1, 1_000, 16_384, 32_768, 65_535, 65_536] {
        wire.write(format!("POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"));
        let answer = wire.ask("b".repeat(length));
        assert_eq!(answer.status, 200);
        assert_eq!(answer.field("body").len(), length);
    }
}

#[test]
fn empty_lines_before_a_head_are_passed_over() {
    let (_harness, mut wire) = Harness::connected();
    assert_eq!(
        wire.ask("\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n")
            .field("path"),
        "/a"
    );
}

/// A proxy that takes a line feed for a part of a value sees other lines than we do.
#[test]
fn a_line_feed_alone_ends_no_line_and_the_connection() {
    let harness = Harness::start();
    let length = SMUGGLED.len();
    for text in [
        "GET /b HTTP/1.1\nHost: a\nX-Seen: 1\n\n".to_owned(),
        "\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET /b HTTP/1.1\nHost: a\r\n\r\n".to_owned(),
        "GET /b HTTP/1.1\r\nHost: a\n\r\n".to_owned(),
        "GET /b HTTP/1.1\r\nHost: a\r\n\n".to_owned(),
        "GET /b HTTP/1.0\n\n".to_owned(),
        "GET /b HTTP/1.2\nHost: a\r\n\r\n".to_owned(),
        "HEAD /b HTTP/1.1\r\nHost: a\nX: y\r\n\r\n".to_owned(),
        format!("POST /b HTTP/1.1\nHost: a\nX: y\nContent-Length: {length}\r\n\n{SMUGGLED}"),
        format!("POST /b HTTP/1.1\r\nHost: a\r\nX: y\nContent-Length: {length}\r\n\r\n{SMUGGLED}"),
        "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\n\r\n0\r\n\r\n".to_owned(),
        "GET /b HTTP/1.1\r\nHost: a\r\nX: y\nAuthorization: Bearer z\r\n\r\n".to_owned(),
    ] {
        let mut wire = harness.connect();
        if text.starts_with("HEAD") {
            assert_eq!(wire.write(&text).head().status, 400, "{text:?}");
        } else {
            let answer = wire.ask(&text);
            let json = answer.expect_problem(400, "malformed_request");
            let detail = json["detail"].as_str().unwrap();
            assert!(detail.contains("line feed alone"), "{text:?}: {detail}");
        }
        wire.closes();
    }
    assert_eq!(harness.probe.served(), 0);
}

#[test]
fn what_came_before_a_refused_request_is_answered() {
    let (harness, mut wire) = Harness::connected();
    let good = "GET /good HTTP/1.1\r\nHost: a\r\n\r\n";
    wire.write(format!("{good}{good}GET /bad HTTP/1.1\r\nHost : a\r\n\r\n{SMUGGLED}"));
    assert_eq!(wire.answer().field("path"), "/good");
    assert_eq!(wire.answer().field("path"), "/good");
    assert_eq!(wire.answer().status, 400);
    wire.closes();
    assert_eq!(harness.probe.served(), 2);
}

#[test]
fn header_values_are_trimmed_and_may_hold_any_visible_byte() {
    let (_harness, mut wire) = Harness::connected();
    let mut text =
        b"GET / HTTP/1.1\r\nhOsT:a\r\nX-Seen: \t a\tb \t\r\nx-SEEN:\r\nX-Seen: ".to_vec();
    text.extend_from_slice(b"\xe9\xff~\r\n\r\n");
    let answer = wire.ask(text);
    let seen = answer.json().get("seen").unwrap().to_string();
    assert_eq!(seen, "[\"a\\tb\",\"\",\"\u{fffd}\u{fffd}~\"]");
    assert_eq!(answer.field("host"), "a");
}

#[test]
fn a_request_that_is_cut_off_gets_no_answer_and_holds_nothing() {
    let harness = Harness::start();
    for text in [
        "GET / HT",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n0\r\n",
    ] {
        harness.connect().write(text).finish().closes();
    }
    assert_eq!(harness.probe.served(), 0, "half a request reached the service");
    until("all are gone", || harness.shared().slots.open() == 0);
}
