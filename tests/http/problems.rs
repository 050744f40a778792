//! Error documents, request ids and dates.

use crate::support::Harness;
use bhav::base::Clock;
use sonic_rs::JsonValueTrait;

fn is_fresh_id(id: &str) -> bool {
    id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[test]
fn every_refusal_is_a_problem_document() {
    let harness = Harness::start();
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "t".repeat(9_000));
    let wide = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(17_000));
    for (text, status, title) in [
        ("nonsense\r\n\r\n", 400, "Bad Request"),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n", 400, "Bad Request"),
        ("GET /problem HTTP/1.1\r\nHost: a\r\n\r\n", 404, "Not Found"),
        (
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n",
            413,
            "Content Too Large",
        ),
        (long.as_str(), 414, "URI Too Long"),
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", 417, "Expectation Failed"),
        (wide.as_str(), 431, "Request Header Fields Too Large"),
        ("GET /panic HTTP/1.1\r\nHost: a\r\n\r\n", 500, "Internal Server Error"),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501, "Not Implemented"),
        ("GET / HTTP/4.0\r\nHost: a\r\n\r\n", 505, "HTTP Version Not Supported"),
    ] {
        let answer = harness.connect().ask(text);
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.json().get("status").as_u64(), Some(u64::from(status)));
        assert_eq!(
            (answer.field("title").as_str(), answer.field("type").as_str()),
            (title, "about:blank")
        );
        assert!(!answer.field("code").is_empty() && !answer.field("detail").is_empty());
        assert!(is_fresh_id(answer.header("x-request-id").unwrap()));
    }
    let answer = harness
        .connect()
        .ask("GET /problem HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(answer.field("detail"), "No \"such\" thing.\n");
}

#[test]
fn a_clients_own_request_id_is_repeated_only_when_it_is_harmless() {
    let harness = Harness::start();
    let longest = "i".repeat(64);
    for own in ["a", "Trace-7.x_9", longest.as_str()] {
        for path in ["/problem", "/panic"] {
            let text = format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Request-Id: {own}\r\n\r\n");
            assert_eq!(harness.connect().ask(text).header("x-request-id"), Some(own));
        }
    }
    let too_long = "i".repeat(65);
    let key = "bhav_0123456789A_abcdefghijklm";
    for own in [
        "",
        "a b",
        "a\"b",
        "<script>",
        "a,b",
        "é",
        key,
        too_long.as_str(),
    ] {
        let text = format!("GET /problem HTTP/1.1\r\nHost: a\r\nX-Request-Id: {own}\r\n\r\n");
        let answer = harness.connect().ask(text);
        assert!(is_fresh_id(answer.header("x-request-id").unwrap()), "{own:?}");
    }
}

#[test]
fn refusals_of_the_layer_itself_repeat_the_clients_id_too() {
    let harness = Harness::with(&crate::support::small());
    let id = "X-Request-Id: mine";
    for (text, status) in [
        (format!("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n{id}\r\n\r\n"), 400),
        (format!("GET a HTTP/1.1\r\nHost: a\r\n{id}\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n{id}\r\n\r\n"), 408),
        (
            format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n{id}\r\n\r\n"),
            413,
        ),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n{id}\r\n\r\n", "t".repeat(8_192)), 414),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n{id}\r\n\r\n"), 417),
        (format!("BREW / HTTP/1.1\r\nHost: a\r\n{id}\r\n\r\n"), 501),
    ] {
        let answer = harness.connect().ask(text);
        assert_eq!((answer.status, answer.header("x-request-id")), (status, Some("mine")));
    }
    let chunked =
        format!("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n{id}\r\n\r\n");
    for (chunk, status) in [("x\r\n", 400), ("fffff\r\n", 413)] {
        let answer = harness.connect().ask(format!("{chunked}{chunk}"));
        assert_eq!((answer.status, answer.header("x-request-id")), (status, Some("mine")));
    }
    // An id belongs to one request: the next one on the same worker gets another.
    for text in [
        "nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n :\r\n\r\n",
    ] {
        let answer = harness.connect().ask(text);
        assert!(is_fresh_id(answer.header("x-request-id").unwrap()));
    }
}

#[test]
fn ids_differ_from_request_to_request() {
    let (_harness, mut wire) = Harness::connected();
    let mut id = || {
        let answer = wire.ask("GET /problem HTTP/1.1\r\nHost: a\r\n\r\n");
        answer.header("x-request-id").unwrap().to_owned()
    };
    assert_ne!(id(), id());
}

#[test]
fn answers_carry_the_current_date() {
    let harness = Harness::start();
    let clock = Clock::system();
    let mut wire = harness.connect();
    for path in ["/echo", "/problem", "/large?9"] {
        let answer = wire.ask(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let date = answer.header("date").unwrap();
        let parsed = jiff::fmt::rfc2822::DateTimeParser::new()
            .parse_timestamp(date)
            .unwrap();
        // The date has a granularity of one second, plus the delay of a busy machine.
        let age_ms = clock.now_ms() - parsed.as_millisecond();
        assert!((0..10_000).contains(&age_ms), "{date} is {age_ms} ms old");
        assert!(date.ends_with(" GMT") && date.len() == 29, "{date}");
    }
    // The date advances.
    let date = |wire: &mut crate::support::Client| {
        let answer = wire.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        answer.header("date").unwrap().to_owned()
    };
    let first = date(&mut wire);
    crate::support::until("the date moves", || date(&mut wire) != first);
}
