//! Recognises requests that a program on this machine makes for itself.
//!
//! Pure. Used for administrator's routes when no admin secret is set: then only such requests are
//! allowed. A proxy or a browser on this machine also connects over loopback, but for somebody
//! else. So a request is not direct if it has a header that proxies add or that web pages cannot
//! avoid sending. A proxy that adds nothing cannot be recognised; for that case there is the admin
//! secret.

use std::net::{IpAddr, Ipv4Addr};

use super::authority::Authority;
use super::request::{Peer, Request};

/// Headers by which proxies name the client, and browsers the page.
const INDIRECT_HEADERS: [&str; 9] = [
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

/// Prefixes of further such headers.
const INDIRECT_PREFIXES: [&str; 6] =
    ["x-forwarded", "x-original-", "x-envoy-", "cf-", "proxy-", "sec-fetch-"];

/// Whether the request comes over loopback and shows no sign of a proxy or a web page.
pub(crate) fn is_direct_local(request: &Request<'_>, trusted_proxies: &[IpAddr]) -> bool {
    let Peer::Ip(address) = request.peer else { return false };
    address.to_canonical().is_loopback()
        && !trusted_proxies.contains(&address)
        // Proxies use HTTP/1.0 to their upstreams by default.
        && !request.is_http_1_0()
        && request.is_origin_form()
        && request.names().all(|name| !is_indirect(name))
        && request.headers("connection").all(has_no_hop_by_hop_headers)
        && request.headers("host").next().is_some_and(is_loopback_name)
}

fn is_indirect(name: &[u8]) -> bool {
    let begins = |prefix: &&str| {
        let start = name.get(..prefix.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(prefix.as_bytes())
    };
    INDIRECT_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header.as_bytes()))
        || INDIRECT_PREFIXES.iter().any(begins)
}

/// Whether `Connection` names no further headers. A header named there is to be removed by the next
/// proxy, so there is one.
fn has_no_hop_by_hop_headers(connection: &[u8]) -> bool {
    connection.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).all(|option| {
        option.is_empty()
            || ["close", "keep-alive"].iter().any(|own| option.eq_ignore_ascii_case(own.as_bytes()))
    })
}

/// Whether `Host` is `localhost`, in `127.0.0.0/8` or `[::1]`, with any port. Another name may be a
/// web page's whose name resolves to this machine (DNS rebinding), or that of a proxy.
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
    fn a_direct_request_comes_over_loopback_and_not_from_a_trusted_proxy() {
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
    fn a_request_with_a_header_of_proxies_or_pages_is_not_direct() {
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
    fn a_request_to_another_host_name_is_not_direct() {
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
