//! Whether a request is of a program on this machine that speaks for itself.
//!
//! Pure; asked on the edge where no secret guards what only the administrator may do. A proxy or a
//! browser on this machine calls over loopback too, for somebody else, so whatever a proxy adds or
//! a page cannot help sending makes a request not direct. A proxy that hides itself completely
//! cannot be told apart, which is why the administrator can set a secret.

use std::net::{IpAddr, Ipv4Addr};

use super::authority::Authority;
use super::request::{Peer, Request};

/// Names that proxies use to say for whom they ask, and browsers of which page.
const TOLD: [&str; 9] = [
    "forwarded",
    "via",
    "origin",
    "referer",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "fastly-client-ip",
];

/// The same, whatever follows.
const TOLD_FAMILIES: [&str; 6] =
    ["x-forwarded", "x-original-", "x-envoy-", "cf-", "proxy-", "sec-fetch-"];

/// Whether nothing says that the request comes from elsewhere.
pub(crate) fn is_direct_local(request: &Request<'_>, trusted_proxies: &[IpAddr]) -> bool {
    let Peer::Ip(address) = request.peer else { return false };
    address.to_canonical().is_loopback()
        && !trusted_proxies.contains(&address)
        // A usual proxy's way to its upstreams, when it is not told otherwise.
        && !request.is_http_1_0()
        && request.is_origin_form()
        && request.names().all(|name| !tells_of_others(name))
        && request.headers("connection").all(speaks_of_itself_alone)
        && request.headers("host").next().is_some_and(is_loopback_name)
}

fn tells_of_others(name: &[u8]) -> bool {
    let begins = |family: &&str| {
        let start = name.get(..family.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(family.as_bytes())
    };
    TOLD.iter().any(|told| name.eq_ignore_ascii_case(told.as_bytes()))
        || TOLD_FAMILIES.iter().any(begins)
}

/// A header named here is to be removed on the way: somebody is on the way.
fn speaks_of_itself_alone(connection: &[u8]) -> bool {
    connection.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).all(|option| {
        option.is_empty()
            || ["close", "keep-alive"].iter().any(|own| option.eq_ignore_ascii_case(own.as_bytes()))
    })
}

/// `localhost`, `127.0.0.0/8` or `[::1]`, each with any port. Under any other name a page could
/// call that had its name point here, and a proxy passes on the name by which it is known.
fn is_loopback_name(host: &[u8]) -> bool {
    let name = Authority::parse(host).and_then(|host| std::str::from_utf8(host.host).ok());
    name.is_some_and(|name| {
        name.eq_ignore_ascii_case("localhost")
            || name == "[::1]"
            || name.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::message::head::{Head, Parsed};

    fn direct_with(peer: &str, trusted: &[&str], text: &str) -> bool {
        let mut head = Head::default();
        assert_eq!(head.parse(text.as_bytes(), 100, 16_384), Parsed::Complete, "{text:?}");
        let trusted: Vec<IpAddr> = trusted.iter().map(|t| t.parse().unwrap()).collect();
        let peer = peer.parse().map_or(Peer::Unix, Peer::Ip);
        Request::new(text.as_bytes(), &head, b"", peer, &trusted).is_direct_local()
    }

    fn direct(host: &str, line: &str) -> bool {
        let text = format!("POST /x HTTP/1.1\r\nHost: {host}\r\n{line}\r\n");
        direct_with("127.0.0.1", &["10.0.0.1"], &text)
    }

    #[test]
    fn only_over_loopback_and_not_from_a_known_proxy() {
        let text = "POST / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n";
        for peer in ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"] {
            assert!(direct_with(peer, &["10.0.0.1"], text), "{peer}");
        }
        for peer in ["10.0.0.1", "2001:db8::1", "a Unix socket"] {
            assert!(!direct_with(peer, &[], text), "{peer}");
        }
        assert!(!direct_with("127.0.0.1", &["127.0.0.1"], text));
    }

    #[test]
    fn not_with_what_a_proxy_or_a_page_sends() {
        for line in [
            "X-Forwarded-For: 127.0.0.1",
            "x-forwarded-for:",
            "X-Forwarded-Host: localhost",
            "X-Forwarded-Proto: https",
            "X-FORWARDED-Anything: 1",
            "Forwarded: for=127.0.0.1",
            "X-Real-IP: 127.0.0.1",
            "X-Client-IP: 127.0.0.1",
            "CF-Connecting-IP: 127.0.0.1",
            "True-Client-IP: 127.0.0.1",
            "Via: 1.1 proxy",
            "Connection: X-Forwarded-For",
            "Connection: close, X-Real-IP",
            "Origin: http://127.0.0.1:8080",
            "Origin: null",
            "Referer: http://localhost/",
            "Sec-Fetch-Site: same-origin",
            "Sec-Fetch-Mode: navigate",
        ] {
            assert!(!direct("localhost", &format!("{line}\r\n")), "{line}");
        }
        let own = "Connection: close\r\nUser-Agent: curl/8\r\nX-Request-Id: 1\r\nCookie: a=b\r\n";
        assert!(direct("localhost", own));
        assert!(direct("localhost", "Connection: Keep-Alive,\r\n"));
    }

    #[test]
    fn not_under_another_name() {
        for host in ["localhost", "LocalHost:1", "127.0.0.1", "127.9.8.7:65535", "[::1]", "[::1]:8"]
        {
            assert!(direct(host, ""), "{host}");
        }
        for host in [
            "bhav.example.in",
            "localhost.example.in",
            "127.0.0.1.example.in",
            "10.0.0.1",
            "128.0.0.1:80",
            "[::2]",
        ] {
            assert!(!direct(host, ""), "{host:?}");
        }
        for text in [
            "POST http://example.in/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "\r\nPOST http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "POST / HTTP/1.0\r\n\r\n",
            "POST / HTTP/1.0\r\nHost: localhost\r\n\r\n",
        ] {
            assert!(!direct_with("127.0.0.1", &[], text), "{text:?}");
        }
        assert!(direct_with("127.0.0.1", &[], "\r\nPOST / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    }
}
