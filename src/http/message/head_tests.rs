//! Tests of the head parser alone. Hostile clients over real connections: `tests/http`.

use proptest::prelude::*;

use super::*;

fn parse(input: &str) -> (Parsed, Head) {
    let mut head = Head::default();
    let parsed = head.parse(input.as_bytes(), 100, 16 * 1024);
    (parsed, head)
}

fn fault(input: &str) -> HeadFault {
    match parse(input).0 {
        Parsed::Fault(fault) => fault,
        other => panic!("{input:?} gave {other:?}"),
    }
}

#[test]
fn a_plain_request_is_split_into_its_parts() {
    let text = "GET /api/x?symbols=NSE%3AINFY HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
    let (parsed, head) = parse(text);
    assert_eq!(parsed, Parsed::Complete);
    assert_eq!(head.bytes, text.len());
    assert_eq!(head.path.of(text.as_bytes()), b"/api/x");
    assert_eq!(head.query.unwrap().of(text.as_bytes()), b"symbols=NSE%3AINFY");
    assert_eq!(head.accept_encoding.unwrap().of(text.as_bytes()), b"gzip");
    assert!(!head.close);
}

#[test]
fn spans_reach_the_end_of_the_longest_head() {
    let text = |padding: usize| {
        let padding = "x".repeat(padding);
        format!("GET / HTTP/1.1\r\nHost: a\r\nX-Pad: {padding}\r\nX-Request-Id: last\r\n\r\n")
    };
    let longest = text(HEAD_BYTES_MAX - text(0).len());
    let mut head = Head::default();
    assert_eq!(head.parse(longest.as_bytes(), 100, 1024 * 1024), Parsed::Complete);
    assert_eq!(head.bytes, HEAD_BYTES_MAX);
    assert_eq!(head.own_request_id(longest.as_bytes()), Some(&b"last"[..]));
    let longer = text(HEAD_BYTES_MAX);
    let parsed = head.parse(longer.as_bytes(), 100, 1024 * 1024);
    assert_eq!(parsed, Parsed::Fault(HeadFault::HeadTooLarge), "whatever limit is set");
}

#[test]
fn ambiguous_lengths_are_refused() {
    for lines in [
        "Content-Length: abc",
        "Content-Length: -1",
        "Content-Length: +5",
        "Content-Length:",
        "Content-Length: 5, 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 99999999999999999999",
    ] {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n");
        assert_eq!(fault(&text), HeadFault::BadLength, "{lines}");
    }
    for lines in [
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nTransfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: xchunked",
    ] {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n");
        assert_eq!(fault(&text), HeadFault::BadTransferEncoding, "{lines}");
    }
    assert_eq!(
        fault("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        HeadFault::BadTransferEncoding
    );
}

#[test]
fn http_1_1_requires_exactly_one_host() {
    assert_eq!(fault("GET / HTTP/1.1\r\n\r\n"), HeadFault::BadHost);
    assert_eq!(fault("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), HeadFault::BadHost);
    assert_eq!(fault("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), HeadFault::BadHost);
    let (parsed, head) = parse("GET / HTTP/1.0\r\n\r\n");
    assert_eq!((parsed, head.close, head.http_1_0), (Parsed::Complete, true, true));
    let (parsed, head) = parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
    assert_eq!((parsed, head.close), (Parsed::Complete, false));
}

#[test]
fn lines_that_are_not_http_are_refused() {
    for text in [
        "GET / HTTP/1.1\r\nHost: a\r\n folded: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\0\x01\x02\r\n\r\n",
    ] {
        assert_eq!(fault(text).told().0, 400, "{text:?}");
    }
    assert_eq!(fault("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), HeadFault::Version);
    assert_eq!(fault("GET / HTTQ/1.1\r\nHost: a\r\n\r\n"), HeadFault::Malformed);
    assert_eq!(fault("BREW / HTTP/1.1\r\nHost: a\r\n\r\n"), HeadFault::UnknownMethod);
    assert_eq!(fault("GET x HTTP/1.1\r\nHost: a\r\n\r\n"), HeadFault::BadTarget);
    assert_eq!(fault("GET /#a HTTP/1.1\r\nHost: a\r\n\r\n"), HeadFault::BadTarget);
    let expects = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n";
    assert_eq!(fault(expects), HeadFault::BadExpectation);
}

#[test]
fn an_absolute_target_is_reduced_to_its_path() {
    let text = "GET http://example.in:80/api/x?a=b HTTP/1.1\r\nHost: example.in\r\n\r\n";
    let (parsed, head) = parse(text);
    assert_eq!(parsed, Parsed::Complete);
    assert_eq!(head.path.of(text.as_bytes()), b"/api/x");
    assert_eq!(head.query.unwrap().of(text.as_bytes()), b"a=b");
}

#[test]
fn each_exceeded_limit_has_its_own_fault() {
    let headers = |count: usize| {
        let lines: String = (0..count).map(|n| format!("x-{n}: y\r\n")).collect();
        format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
    };
    assert_eq!(parse(&headers(99)).0, Parsed::Complete);
    assert_eq!(fault(&headers(100)), HeadFault::TooManyHeaders);
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(TARGET_BYTES_MAX));
    assert_eq!(fault(&long), HeadFault::TargetTooLong);
    let endless = format!("GET /{}", "a".repeat(TARGET_BYTES_MAX + 100));
    assert_eq!(fault(&endless), HeadFault::TargetTooLong);
    let wide = format!("GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n", "a".repeat(17_000));
    assert_eq!(fault(&wide), HeadFault::HeadTooLarge);
}

#[test]
fn a_version_is_judged_only_when_its_line_is_complete() {
    let line = "GET / HTTP/2.0\r\n";
    for at in 1..line.len() {
        assert_eq!(parse(&line[..at]).0, Parsed::Partial, "{:?}", &line[..at]);
    }
    assert_eq!(fault(line), HeadFault::Version);
    assert_eq!(fault("GET / HTTP/2.0\n"), HeadFault::BareLineFeed);
    for line in [
        "GET /  HTTP/1.1",
        "GET / HTTP/2.0 ",
        "GET / HTTP/20",
        "GET / HTTPS",
        "GET / 1.1",
    ] {
        assert_eq!(fault(&format!("{line}\r\n")), HeadFault::Malformed, "{line}");
    }
}

#[test]
fn a_line_that_ends_in_a_line_feed_alone_is_refused_wherever_it_is() {
    let good = "\r\nGET /a?b=c HTTP/1.1\r\nHost: a\r\nX: \r\nContent-Length: 3\r\nY: z\r\n\r\n";
    assert_eq!(parse(good).0, Parsed::Complete);
    let ends: Vec<usize> = good.match_indices("\r\n").map(|(at, _)| at).collect();
    // Each set of line ends that lack their carriage return.
    for lacking in 1..1_u32 << ends.len() {
        let mut text = good.to_owned();
        for (number, at) in ends.iter().enumerate().rev() {
            if lacking & 1 << number != 0 {
                text.remove(*at);
            }
        }
        assert_eq!(fault(&text), HeadFault::BareLineFeed, "{text:?}");
    }
    for text in [
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\n\r\n",
        "GET / HTTP/1.0\r\n\n",
        "GET / HTTP/1.0\n\n",
        "GET / HTTP/1.3\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b \nContent-Length: 1\r\n\r\nx",
        "GET / HTTP/1.1\r\nHost: a\r\nX:\n\r\n",
    ] {
        assert_eq!(fault(text), HeadFault::BareLineFeed, "{text:?}");
    }
    for text in [
        "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
        "GET / HTTP/1.1\rHost: a\r\n\r\n",
    ] {
        assert_eq!(fault(text), HeadFault::Malformed, "{text:?}");
    }
}

#[test]
fn close_overrides_keep_alive() {
    for lines in [
        "Connection: close, keep-alive",
        "Connection: keep-alive\r\nConnection: close",
    ] {
        for version in ["1.0", "1.1"] {
            let text = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n\r\n");
            assert!(parse(&text).1.close, "{text:?}");
        }
    }
}

/// Valid requests with a few bytes replaced, so that every branch is reached.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let requests = prop::sample::select(vec![
        "GET /a?b=c HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nX-Request-Id: i\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
        "\r\nPUT http://a:80/x HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "OPTIONS * HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n0\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "POST / HTTP/1.2\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
    ]);
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (requests, damage).prop_map(|(request, damage)| {
        let mut bytes = request.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

proptest! {
    #[test]
    fn a_prefix_that_is_decided_is_decided_like_the_whole(bytes in damaged()) {
        let mut whole = Head::default();
        let outcome = whole.parse(&bytes, 100, 16 * 1024);
        let mut head = Head::default();
        for end in 0..bytes.len() {
            match head.parse(&bytes[..end], 100, 16 * 1024) {
                Parsed::Partial => {}
                Parsed::Complete => {
                    prop_assert_eq!(&outcome, &Parsed::Complete);
                    prop_assert_eq!(format!("{head:?}"), format!("{whole:?}"));
                }
                decided => prop_assert_eq!(&decided, &outcome, "at {}", end),
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut head = Head::default();
        prop_assert_ne!(head.parse(&bytes, 100, 64), Parsed::Complete);
    }
}

#[test]
fn an_unknown_coding_is_501_and_a_malformed_one_400() {
    for value in [
        "gzip, chunked",
        "a;b=c;d=\"e\\\",\" , chunked",
        "gzip\r\nTransfer-Encoding: chunked",
    ] {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {value}\r\n\r\n");
        assert_eq!(fault(&text), HeadFault::UnknownCoding, "{value}");
    }
    for value in [
        "a;b",
        "a;b=",
        "a;=c",
        "a;b=\"c",
        "a;b=\"c\\\"",
        "a b, chunked",
        "chunked;a=b",
    ] {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {value}\r\n\r\n");
        assert_eq!(fault(&text), HeadFault::BadTransferEncoding, "{value}");
    }
}

#[test]
fn several_lines_of_a_header_are_a_list_or_void() {
    let text = "GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"a\"\r\nif-none-match: \"b\"\r\n\
                If-Match: \"c\"\r\nAccept-Encoding: br\r\nOrigin: x\r\nOrigin: x\r\n\r\n";
    let (parsed, head) = parse(text);
    assert_eq!(parsed, Parsed::Complete);
    assert_eq!(head.if_none_match, Lines::Several);
    let Lines::One(line) = head.if_match else {
        panic!("{head:?}")
    };
    assert_eq!(line.of(text.as_bytes()), b"\"c\"");
    assert_eq!(head.accept_encoding.unwrap().of(text.as_bytes()), b"br");
    assert_eq!(head.origin.unwrap().of(text.as_bytes()), b"", "two origins count as none");
}

#[test]
fn a_malformed_head_still_yields_method_origin_and_request_id() {
    let seen = |text: &str| {
        let mut head = Head::default();
        head.glimpse(text.as_bytes());
        let span = |span: Option<Span>| {
            span.map(|span| String::from_utf8_lossy(span.of(text.as_bytes())).into_owned())
        };
        (head.method, span(head.origin), span(head.request_id))
    };
    let a = Some("a".to_owned());
    let b = Some("b".to_owned());
    for (text, expected) in [
        ("", (Method::Get, None, None)),
        ("\r\n\r\nHEAD / HTTP/1.1\r\norigin:a\r\n", (Method::Head, a.clone(), None)),
        (
            "PUT / x\nX-Request-Id: b \n junk\nORIGIN:\ta\n",
            (Method::Put, a.clone(), b.clone()),
        ),
        // An incomplete line and a line of the body are no header lines.
        ("GET / x\r\nX-Request-Id: b\r\nOrigin: a", (Method::Get, None, b)),
        ("GET / x\r\nOrigin: a\r", (Method::Get, None, None)),
        ("GET / x\r\n\r\nOrigin: a\r\n", (Method::Get, None, None)),
        ("Origin: a\r\nOrigin : a\r\n", (Method::Get, None, None)),
        (
            "GET / x\r\nOrigin: a\r\nOrigin: a\r\n",
            (Method::Get, Some(String::new()), None),
        ),
    ] {
        assert_eq!(seen(text), expected, "{text:?}");
    }
}

/// The content of a head, without the values remembered from earlier ones.
fn content(head: &Head) -> String {
    let Head {
        bytes,
        method,
        path,
        query,
        headers,
        framing,
        ..
    } = head;
    let line = (bytes, method, path, query, headers, framing);
    let Head {
        close,
        http_1_0,
        https,
        expects_continue,
        ..
    } = head;
    let Head {
        if_match,
        if_none_match,
        accept_encoding,
        origin,
        request_id,
        ..
    } = head;
    let flags = (close, http_1_0, https, expects_continue);
    format!(
        "{:?}",
        (line, flags, (if_match, if_none_match, accept_encoding, origin, request_id))
    )
}

/// Parses, and answers a complete head as the router answers a route for everybody.
fn answered(heads: &mut KnownHeads, input: &[u8], headers_max: usize) -> Parsed {
    let parsed = heads.parse(input, headers_max, 16 * 1024);
    if parsed == Parsed::Complete {
        let head = heads.head();
        head.known_route
            .set(head.path.of(input).starts_with(b"/").then_some(7));
        let bytes = head.bytes;
        heads.remember(&input[..bytes]);
    }
    parsed
}

#[test]
fn a_head_is_remembered_only_if_anybody_may_send_it() {
    let head = |lines: &str| format!("GET /api/x HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    let is_known = |text: &str| {
        let mut heads = KnownHeads::default();
        assert_eq!(answered(&mut heads, text.as_bytes(), 100), Parsed::Complete);
        // A second parse would forget the route.
        heads.parse(text.as_bytes(), 100, 16 * 1024);
        heads.head().known_route.get() == Some(7)
    };
    assert!(is_known(&head("")));
    assert!(is_known(&head("Accept-Encoding: gzip\r\nIf-None-Match: \"a\"\r\n")));
    for lines in [
        "Authorization: Bearer a\r\n",
        "cookie: a=b\r\n",
        "X-Api-Key: a\r\n",
        "Content-Length: 0\r\n",
        "Expect: 100-continue\r\n",
    ] {
        assert!(!is_known(&head(lines)), "{lines}");
    }
    assert!(!is_known("GET http://a/api/x HTTP/1.1\r\nHost: a\r\n\r\n"));
    let long = "x".repeat(KNOWN_HEAD_BYTES_MAX);
    assert!(!is_known(&head(&format!("X-Long: {long}\r\n"))));
}

#[test]
fn a_known_head_keeps_to_the_limits_of_each_server() {
    let text = b"GET /api/x HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
    let mut heads = KnownHeads::default();
    assert_eq!(answered(&mut heads, text, 2), Parsed::Complete);
    assert_eq!(heads.parse(text, 1, 16 * 1024), Parsed::Fault(HeadFault::TooManyHeaders));
    assert_eq!(answered(&mut heads, text, 2), Parsed::Complete);
    assert_eq!(heads.parse(text, 2, 16), Parsed::Fault(HeadFault::HeadTooLarge));
}

proptest! {
    #[test]
    fn known_heads_are_read_as_if_for_the_first_time(
        some in prop::collection::vec(damaged(), 1..6),
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..40),
    ) {
        let mut heads = KnownHeads::default();
        for (index, is_part) in order {
            let whole = index.get(&some);
            let input = if is_part { &whole[..whole.len() / 2] } else { whole };
            let mut fresh = Head::default();
            let expected = fresh.parse(input, 100, 16 * 1024);
            prop_assert_eq!(&answered(&mut heads, input, 100), &expected);
            if expected == Parsed::Complete {
                prop_assert_eq!(content(heads.head()), content(&fresh));
            }
        }
    }
}
