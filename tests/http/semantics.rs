//! Methods, versions, and a client's options for the connection.

use bhav::http::settings::HttpSettings;

use crate::support::harness::settings;
use crate::support::{Answer, Harness};

fn without_date(answer: &Answer) -> Vec<(String, String)> {
    answer
        .headers
        .iter()
        .filter(|(name, _)| name != "Date")
        .cloned()
        .collect()
}

#[test]
fn head_has_the_headers_of_get_and_no_body() {
    let harness = Harness::start();
    for path in ["/prepared", "/problem", "/large?5000", "/ignore"] {
        let mut wire = harness.connect();
        let id = "X-Request-Id: same";
        let get = wire.ask(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{id}\r\n\r\n"));
        assert!(!get.body.is_empty());
        wire.write(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n{id}\r\n\r\n"));
        let head = wire.head();
        assert_eq!((head.status, without_date(&head)), (get.status, without_date(&get)), "{path}");
        // A body would be at the place where the next answer begins.
        assert_eq!(wire.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n").field("path"), "/n");
        assert_eq!(wire.pending(), 0);
    }
}

#[test]
fn a_refused_head_request_gets_no_body_either() {
    let harness = Harness::start();
    for lines in [
        "Content-Length: 99999999",
        "Expect: magic",
        "Content-Length: x",
    ] {
        let mut wire = harness.connect();
        wire.write(format!("HEAD / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n"));
        assert!(wire.head().status >= 400);
        wire.closes();
    }
    // A refused GET has a body, also after a HEAD on the same worker.
    let mut wire = harness.connect();
    let answer = wire.ask("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    assert_eq!(answer.field("code"), "malformed_request");
    let answer = harness.connect().ask("nonsense\r\n\r\n");
    assert_eq!(answer.field("code"), "malformed_request");
}

#[test]
fn a_304_and_a_204_have_no_body_and_leave_the_connection_in_step() {
    let (_harness, mut wire) = Harness::connected();
    let answer = wire.ask("GET /prepared HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"one\"\r\n\r\n");
    assert_eq!((answer.status, answer.header("etag")), (304, Some("\"one\"")));
    assert_eq!(answer.header("content-length"), None);
    assert_eq!(wire.ask("GET /prepared HTTP/1.1\r\nHost: a\r\n\r\n").body, b"ready-made");
    let answer = wire.ask("GET /unchanged HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((answer.status, answer.header("content-length")), (304, None));
    let answer = wire.ask("DELETE /bye HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((answer.status, answer.header("content-length")), (204, None));
    assert!(answer.says_close(), "the handler asked for it");
    wire.closes();
}

#[test]
fn methods_reach_the_service_and_unknown_ones_do_not() {
    let (harness, mut wire) = Harness::connected();
    for method in [
        "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT",
    ] {
        let answer = wire.ask(format!("{method} /m?q=1 HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(
            (answer.field("method").as_str(), answer.field("query").as_str()),
            (method, "q=1")
        );
    }
    assert_eq!(
        wire.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
            .field("path"),
        "*"
    );
    for method in ["get", "BREW", "PROPFIND", "PRI"] {
        let mut wire = harness.connect();
        let answer = wire.ask(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!((answer.status, answer.field("code").as_str()), (501, "method_not_implemented"));
        wire.closes();
    }
}

#[test]
fn an_https_target_is_misdirected_unless_a_trusted_proxy_sends_it() {
    let ask = |settings: &HttpSettings, lines: &str, status: u16| {
        let harness = Harness::with(settings);
        for target in ["https://a/x?q=1", "HTTPS://a:443/x", "https://127.0.0.1"] {
            let mut wire = harness.connect();
            wire.write(format!(
                "{lines} {target} HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n"
            ));
            let answer = if lines == "HEAD" {
                wire.head()
            } else {
                wire.answer()
            };
            assert_eq!(answer.status, status, "{lines} {target}");
            if status == 421 {
                assert_eq!(answer.header("x-request-id"), Some("mine"));
                wire.closes();
            }
        }
        let served = harness.probe.served();
        assert_eq!(served > 0, status == 200, "a handler never sees one");
        let plain = harness
            .connect()
            .ask("GET http://a/x?q=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((plain.status, plain.field("path").as_str()), (200, "/x"));
    };
    for method in ["GET", "HEAD", "POST", "OPTIONS"] {
        ask(&settings(), method, 421);
    }
    let trusted = vec!["127.0.0.1".parse().unwrap()];
    ask(
        &HttpSettings {
            trusted_proxies: trusted,
            ..settings()
        },
        "GET",
        200,
    );
    let folder = tempfile::tempdir().unwrap();
    let listen = format!("unix:{}", folder.path().join("edge.sock").display());
    ask(
        &HttpSettings {
            listen,
            ..settings()
        },
        "GET",
        200,
    );
    let answer = Harness::start()
        .connect()
        .ask("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(answer.field("code"), "misdirected_request");
}

#[test]
fn other_versions_are_505_however_they_arrive() {
    let harness = Harness::start();
    for version in ["HTTP/2.0", "HTTP/0.9", "HTTP/3.0"] {
        let text = format!("GET / {version}\r\nHost: a\r\n\r\n");
        let mut wire = harness.connect();
        assert_eq!(wire.ask(&text).status, 505, "{version}");
        wire.closes();
        let mut slow = harness.connect();
        let (first, second) = text.split_at(text.find("\r\n").unwrap() - 2);
        slow.write(first);
        // A whole exchange on another connection: by then the server has received only the first
        // part.
        harness.connect().ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        slow.try_write(second.as_bytes()).ok();
        assert_eq!(slow.answer().status, 505, "{version} in two parts");
    }
    // The preface of HTTP/2 without negotiation.
    assert_eq!(
        harness
            .connect()
            .ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .status,
        505
    );
}

#[test]
fn a_later_http_1_is_answered_as_the_one_that_is_known() {
    let (harness, mut wire) = Harness::connected();
    for version in ["HTTP/1.2", "HTTP/1.9"] {
        let get = format!("GET /g?q=1 {version}\r\nHost: a\r\nX-Seen: yes\r\n\r\n");
        let post = format!("POST /p {version}\r\nHost: b\r\nContent-Length: 5\r\n\r\nhello");
        for at in 1..get.len() {
            let (first, second) = get.split_at(at);
            let answer = wire.write(first).ask(second);
            assert_eq!((answer.status, answer.version.as_str()), (200, "HTTP/1.1"), "{at}");
            assert_eq!((answer.field("path"), answer.field("query")), ("/g".into(), "q=1".into()));
        }
        assert_eq!(wire.ask(&post).field("body"), "hello");
        let (first, second) = post.split_at(post.len() - 3);
        assert_eq!(wire.write(first).ask(second).field("body"), "hello");
        let answer = harness.connect().ask(format!("GET / {version}\r\n\r\n"));
        assert_eq!(answer.field("code"), "malformed_request", "it needs a host as HTTP/1.1 does");
    }
}

#[test]
fn the_go_ahead_comes_before_the_body_is_sent() {
    let (_harness, mut wire) = Harness::connected();
    let expect = "POST /e HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n";
    for (framing, body) in [
        ("Content-Length: 5\r\n\r\n", "hello"),
        ("Transfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ] {
        let ahead = wire.ask(format!("{expect}{framing}"));
        assert_eq!((ahead.status, ahead.headers.len()), (100, 0));
        assert_eq!(wire.ask(body).field("body"), "hello");
    }
    // No 100 is sent if the body has arrived or there is none.
    assert_eq!(
        wire.ask(format!("{expect}Content-Length: 5\r\n\r\nhello"))
            .field("body"),
        "hello"
    );
    assert_eq!(
        wire.ask(format!("{expect}Content-Length: 0\r\n\r\n"))
            .status,
        200
    );
    assert_eq!(wire.ask(format!("{expect}\r\n")).status, 200);
    // No 100 is sent for a body that will be refused.
    let answer = wire.ask(format!("{expect}Content-Length: 65537\r\n\r\n"));
    assert_eq!(answer.status, 413);
    wire.closes();
}

#[test]
fn other_expectations_are_417_and_none_is_met_in_http_1_0() {
    let (harness, mut wire) = Harness::connected();
    let answer = wire.ask("POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n");
    assert_eq!((answer.status, answer.field("code").as_str()), (417, "expectation_failed"));
    wire.closes();
    let mut wire = harness.connect();
    wire.write("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(wire.ask("hi").field("body"), "hi");
}

#[test]
fn http_1_0_closes_unless_asked_to_stay() {
    let harness = Harness::start();
    for lines in [
        "",
        "Connection: close\r\n",
        "Connection: close, keep-alive\r\n",
    ] {
        let mut wire = harness.connect();
        let answer = wire.ask(format!("GET /old HTTP/1.0\r\n{lines}\r\n"));
        assert_eq!((answer.status, answer.version.as_str()), (200, "HTTP/1.1"));
        assert!(answer.says_close(), "{lines:?}");
        wire.closes();
    }
    let mut wire = harness.connect();
    for path in ["/old", "/prepared", "/problem"] {
        let answer = wire.ask(format!("GET {path} HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
        assert_eq!(answer.header("connection"), Some("keep-alive"), "{path}");
    }
}

#[test]
fn connection_close_is_honoured_and_said() {
    let harness = Harness::start();
    for lines in [
        "Connection: close",
        "connection: x, CLOSE ,y",
        "Connection: a\r\nConnection: close",
    ] {
        for path in ["/echo", "/prepared", "/problem"] {
            let mut wire = harness.connect();
            let next = "GET /never HTTP/1.1\r\nHost: a\r\n\r\n";
            let first = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n{next}");
            assert!(wire.ask(first).says_close(), "{lines:?} {path}");
            wire.closes();
        }
    }
    let mut wire = harness.connect();
    let answer = wire.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, upgrade\r\n\r\n");
    assert_eq!(answer.header("connection"), None);
}

#[test]
fn an_absolute_target_is_reduced_to_its_path() {
    let (_harness, mut wire) = Harness::connected();
    for (target, path) in [
        ("http://example.in/a/b?c=d", "/a/b"),
        ("HTTP://example.in:443/", "/"),
        ("http://[::1]:80/x", "/x"),
        ("http://example.in?c=d", ""),
        ("http://example.in", ""),
    ] {
        let answer = wire.ask(format!("GET {target} HTTP/1.1\r\nHost: example.in\r\n\r\n"));
        assert_eq!(answer.field("path"), path, "{target}");
    }
}

#[test]
fn a_request_followed_by_half_close_is_answered() {
    let (harness, mut wire) = Harness::connected();
    wire.write("GET /one HTTP/1.1\r\nHost: a\r\n\r\nGET /two HTTP/1.1\r\nHost: a\r\n\r\n")
        .finish();
    assert_eq!(wire.answer().field("path"), "/one");
    assert_eq!(wire.answer().field("path"), "/two");
    wire.closes();
    let mut large = harness.connect();
    large
        .write("GET /large?3000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        .finish();
    assert_eq!(large.answer().body.len(), 3_000_000);
    large.closes();
    let mut waits = harness.connect();
    waits
        .write("GET /lane HTTP/1.1\r\nHost: a\r\n\r\n")
        .finish();
    harness.probe.waiting.recv().unwrap();
    harness.probe.release.send(()).unwrap();
    assert_eq!(waits.answer().status, 200);
    waits.closes();
}
