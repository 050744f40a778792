//! `Host` and the authority of a target, by RFC 3986 3.2 and RFC 9112 3.2. A value that a proxy in
//! front could take for another host is refused.

use crate::support::Harness;
const GOOD: [&str; 26] = [
    "a",
    "localhost",
    "LOCALHOST:8080",
    "bhav.example.in",
    "bhav.example.in.",
    "a:",
    "a:0",
    "a:65535",
    "a~b",
    "a+b",
    "a_b-c.d",
    "a!$&'()*+,;=b",
    "%41%7e",
    "127.0.0.1",
    "127.0.0.1:80",
    "1.2.3.4.5",
    "[::]",
    "[::1]",
    "[::1]:8080",
    "[2001:DB8::a:0]:",
    "[1:2:3:4:5:6:7:8]",
    "[1:2:3:4:5:6:7::]",
    "[::ffff:192.0.2.1]:443",
    "[v1.a]",
    "[vF0.a:b~!$&'()*+,;=]:1",
    "[V1.:]",
];

const BAD: [&str; 44] = [
    "",
    ":",
    ":80",
    "a:b",
    "a:1:2",
    "a:-1",
    "a:+1",
    "a:8 0",
    "a::",
    "::1",
    "[",
    "]",
    "[]",
    "[::1",
    "::1]",
    "[::1]]",
    "[[::1]]",
    "[::1]x",
    "[::1]80",
    "[::1]:x",
    "[::1]:1:2",
    "a[::1]",
    "[a]",
    "[127.0.0.1]",
    "[1:2]",
    "[1:2:3:4:5:6:7:8:9]",
    "[1:2:3:4:5:6:7::8]",
    "[::1::]",
    "[12345::]",
    "[::g]",
    "[::256.0.0.1]",
    "[::01.2.3.4]",
    "[fe80::1%25eth0]",
    "[v.a]",
    "[v1.]",
    "[v1]",
    "[vg.a]",
    "[v1.%41]",
    "a%",
    "a%4",
    "a%4g",
    "user@a",
    "a\"b",
    "a\\b",
];

#[test]
fn a_host_is_taken_as_it_may_be_written_and_not_otherwise() {
    let (harness, mut wire) = Harness::connected();
    for host in GOOD {
        let answer = wire.ask(format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!((answer.status, answer.field("host")), (200, host.to_owned()));
        let answer = wire.ask(format!("GET http://{host}/b?c HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_eq!((answer.status, answer.field("path"), answer.field("query")), {
            (200, "/b".to_owned(), "c".to_owned())
        });
    }
    let served = harness.probe.served();
    for host in BAD {
        for text in [
            format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            format!("GET /a HTTP/1.0\r\nHost: {host}\r\n\r\n"),
            format!("GET http://{host}/ HTTP/1.1\r\nHost: a\r\n\r\n"),
            format!("GET http://{host}?q HTTP/1.1\r\nHost: a\r\n\r\n"),
            format!("GET HTTP://{host} HTTP/1.1\r\nHost: a\r\n\r\n"),
        ] {
            let mut wire = harness.connect();
            let answer = wire.ask(&text);
            let told = (answer.status, answer.field("code"));
            assert_eq!(told, (400, "malformed_request".to_owned()), "{text:?}");
            wire.closes();
        }
    }
    assert_eq!(harness.probe.served(), served);
}
