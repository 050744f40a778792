//! A request as handlers see it. It borrows from the connection's buffers, so it cannot outlive the
//! handler.

use std::net::{IpAddr, Ipv4Addr};

use crate::base::Network;
use crate::http::message::authority::{Authority, is_unreserved};
use crate::http::message::conditional::Preconditions;
use crate::http::message::head::{Head, Method, Span, named};

/// The other end of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Ip(IpAddr),
    /// A process on this machine, through the Unix socket: always a trusted proxy.
    Unix,
}

impl Peer {
    /// Whether it is a trusted proxy, whose `X-Forwarded-For` counts.
    pub(crate) fn is_trusted(self, trusted_proxies: &[Network]) -> bool {
        match self {
            Self::Ip(address) => Network::any_contains(trusted_proxies, address),
            Self::Unix => true,
        }
    }
}

/// One complete request, including its body.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    bytes: &'a [u8],
    head: &'a Head,
    pub body: &'a [u8],
    pub peer: Peer,
    trusted_proxies: &'a [Network],
    /// Monotonic time at which the request was complete. One reading of the clock serves all that
    /// is judged at the start of a request: each costs the snapshot 46 instructions.
    pub(crate) arrived_mono_ms: u64,
}

impl<'a> Request<'a> {
    pub(crate) fn new(
        bytes: &'a [u8],
        head: &'a Head,
        body: &'a [u8],
        peer: Peer,
        trusted_proxies: &'a [Network],
        arrived_mono_ms: u64,
    ) -> Self {
        Self {
            bytes,
            head,
            body,
            peer,
            trusted_proxies,
            arrived_mono_ms,
        }
    }

    pub fn method(&self) -> Method {
        self.head.method
    }

    /// The path as sent, not decoded. `*` for `OPTIONS *`; empty for an absolute URI without path.
    pub fn path(&self) -> &'a [u8] {
        self.head.path.of(self.bytes)
    }

    /// The normalised path: percent-encoded unreserved characters are decoded, nothing else is (RFC
    /// 3986 6.2.2.2). `None` if the path has no percent sign.
    pub(crate) fn normal_path(&self) -> Option<Vec<u8>> {
        self.path().contains(&b'%').then(|| normal(self.path()))
    }

    /// The number that [`name_route`](Self::name_route) got for a request of the same bytes.
    pub(crate) fn known_route(&self) -> Option<usize> {
        self.head.known_route.get().map(usize::from)
    }

    /// Remembers the route's number for the next request of the same bytes, which then needs no
    /// parsing and no search. Only for routes that everyone may read.
    pub(crate) fn name_route(&self, number: usize) {
        self.head.known_route.set(u16::try_from(number).ok());
    }

    /// The query as sent, without the question mark.
    pub fn query(&self) -> Option<&'a [u8]> {
        self.part(self.head.query)
    }

    /// `If-Match` and `If-None-Match`.
    #[inline]
    pub(crate) fn preconditions(&self) -> Preconditions<'a> {
        Preconditions::of(self.head, self.bytes)
    }

    /// `Accept-Encoding`; empty if it was sent more than once.
    pub(crate) fn accept_encoding(&self) -> Option<&'a [u8]> {
        self.part(self.head.accept_encoding)
    }

    /// `Origin`.
    pub(crate) fn origin(&self) -> Option<&'a [u8]> {
        self.part(self.head.origin)
    }

    /// The request id that the client sent, if it is safe to repeat: 1 to 64 of `A-Za-z0-9._-`.
    pub(crate) fn own_request_id(&self) -> Option<&'a [u8]> {
        self.head.own_request_id(self.bytes)
    }

    /// Whether a browser asks for a page to show to a person.
    pub(crate) fn wants_page(&self) -> bool {
        self.header("accept").is_some_and(accepts_pages)
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers(name).next()
    }

    /// All headers of this name, in order.
    pub fn headers<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        named(&self.head.headers, self.bytes, name)
    }

    /// The client's address: the peer's, or behind trusted proxies the one they forward.
    /// `X-Forwarded-For` is read from the right, up to the first address that is not a trusted
    /// proxy; anything further left could be forged by the client. `None` behind a Unix socket
    /// without a forwarded address.
    pub fn client_address(&self) -> Option<IpAddr> {
        let peer = match self.peer {
            Peer::Ip(address) if !self.peer.is_trusted(self.trusted_proxies) => {
                return Some(address);
            }
            Peer::Ip(address) => Some(address),
            Peer::Unix => None,
        };
        let mut client = peer;
        let lines: Vec<&[u8]> = self.headers("x-forwarded-for").collect();
        for hop in lines
            .iter()
            .rev()
            .flat_map(|line| line.rsplit(|byte| *byte == b','))
        {
            let Some(address) = parse_address(hop.trim_ascii()) else {
                break;
            };
            client = Some(address);
            if !Network::any_contains(self.trusted_proxies, address) {
                break;
            }
        }
        client
    }

    /// Whether a program on this machine makes the request for itself: over loopback, to a loopback
    /// name, not through a proxy and not from a web page. False for the Unix socket, which is for
    /// proxies.
    pub(crate) fn is_direct_local(&self) -> bool {
        let Peer::Ip(address) = self.peer else {
            return false;
        };
        address.to_canonical().is_loopback()
            && !self.peer.is_trusted(self.trusted_proxies)
            // Proxies use HTTP/1.0 to their upstreams by default.
            && !self.head.http_1_0
            && self.is_origin_form()
            && self.head.headers.iter().all(|(name, _)| !is_indirect(name.of(self.bytes)))
            && self.headers("connection").all(has_no_hop_by_hop_headers)
            && self.header("host").is_some_and(is_loopback_name)
    }

    /// Another request of the same client: one to read, whose head is `bytes`, parsed into `head`.
    pub(crate) fn reading_instead<'b>(&'b self, bytes: &'b [u8], head: &'b Head) -> Request<'b> {
        let peer = self.client_address().map_or(self.peer, Peer::Ip);
        Request {
            bytes,
            head,
            body: &[],
            peer,
            ..*self
        }
    }

    /// Whether the target is a path, and not an absolute URI as clients send to proxies.
    fn is_origin_form(&self) -> bool {
        let mut parts = self.bytes.split(|byte| *byte == b' ');
        parts.nth(1).is_some_and(|target| target.starts_with(b"/"))
    }

    fn part(&self, span: Option<Span>) -> Option<&'a [u8]> {
        span.map(|span| span.of(self.bytes))
    }
}

fn normal(path: &[u8]) -> Vec<u8> {
    let mut normal = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, tail @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => {
                decoded_escape(*high, *low).filter(|byte| is_unreserved(*byte))
            }
            _ => None,
        };
        normal.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &rest[3..] } else { tail };
    }
    normal
}

/// Whether the value of `Accept` is that of a browser which opens a page.
pub(crate) fn accepts_pages(accept: &[u8]) -> bool {
    memchr::memmem::find(accept, b"text/html").is_some()
}

/// The byte that `%` followed by these two digits encodes; `None` if they are not hexadecimal.
pub(crate) fn decoded_escape(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
    digit(high)
        .zip(digit(low))
        .map(|(high, low)| high << 4 | low)
}

/// An address as proxies write it: bare, with a port, or an IPv6 address in brackets.
fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let inner = text
        .strip_prefix('[')
        .and_then(|rest| rest.split(']').next());
    let address: Option<IpAddr> = inner.unwrap_or(text).parse().ok().or_else(|| {
        let socket: std::net::SocketAddr = text.parse().ok()?;
        Some(socket.ip())
    });
    address.map(|address| address.to_canonical())
}

/// Passes `read` a request with this head and body; for tests of other modules.
#[cfg(test)]
pub(crate) fn with_request<T>(
    head: &str,
    body: &[u8],
    peer: IpAddr,
    read: impl FnOnce(&Request<'_>) -> T,
) -> T {
    let mut parsed = Head::default();
    parsed.parse(head.as_bytes(), 100, 16_384);
    read(&Request::new(head.as_bytes(), &parsed, body, Peer::Ip(peer), &[], 0))
}

// ---- Local client
//
// Recognises requests that a program on this machine makes for itself.
//
// Pure. Used for administrator's routes when no admin secret is set: then only such requests are
// allowed. A proxy or a browser on this machine also connects over loopback, but for somebody
// else. So a request is not direct if it has a header that proxies add or that web pages cannot
// avoid sending. A proxy that adds nothing cannot be recognised; for that case there is the admin
// secret.

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
const INDIRECT_PREFIXES: [&str; 6] = [
    "x-forwarded",
    "x-original-",
    "x-envoy-",
    "cf-",
    "proxy-",
    "sec-fetch-",
];

fn is_indirect(name: &[u8]) -> bool {
    let begins = |prefix: &&str| {
        let start = name.get(..prefix.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(prefix.as_bytes())
    };
    INDIRECT_HEADERS
        .iter()
        .any(|header| name.eq_ignore_ascii_case(header.as_bytes()))
        || INDIRECT_PREFIXES.iter().any(begins)
}

/// Whether `Connection` names no further headers. A header is named there for the next proxy to
/// remove, so a proxy is involved.
fn has_no_hop_by_hop_headers(connection: &[u8]) -> bool {
    connection
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .all(|option| {
            option.is_empty()
                || ["close", "keep-alive"]
                    .iter()
                    .any(|own| option.eq_ignore_ascii_case(own.as_bytes()))
        })
}

/// Whether `Host` is `localhost`, in `127.0.0.0/8` or `[::1]`, with any port. Another name may
/// belong to a web page whose name resolves to this machine (DNS rebinding), or to a proxy.
fn is_loopback_name(host: &[u8]) -> bool {
    let name = Authority::parse(host).and_then(|host| std::str::from_utf8(host.host).ok());
    name.is_some_and(|name| {
        name.eq_ignore_ascii_case("localhost")
            || name == "[::1]"
            || name
                .parse()
                .is_ok_and(|address: Ipv4Addr| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: Peer, trusted: &[&str], forwarded: &str) -> Option<String> {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {forwarded}\r\n\r\n");
        let mut head = Head::default();
        head.parse(text.as_bytes(), 100, 16_384);
        let trusted: Vec<Network> = trusted.iter().map(|t| t.parse().unwrap()).collect();
        let request = Request::new(text.as_bytes(), &head, b"", peer, &trusted, 0);
        request.client_address().map(|address| address.to_string())
    }

    #[test]
    fn a_path_is_normalised_by_decoding_unreserved_characters_only() {
        for (path, expected) in [
            ("/a", "/a"),
            ("/%61%7e%2D%2e%5F%39%5a", "/a~-._9Z"),
            ("/%2F%3a%25%20%00%7F%e9%41", "/%2F%3a%25%20%00%7F%e9A"),
            ("/%%61%6", "/%a%6"),
            ("/%6g%", "/%6g%"),
            ("/%2561", "/%2561"),
        ] {
            assert_eq!(String::from_utf8(normal(path.as_bytes())).unwrap(), expected, "{path}");
        }
    }

    #[test]
    fn x_forwarded_for_counts_only_from_trusted_proxies() {
        let direct = Peer::Ip("203.0.113.9".parse().unwrap());
        let proxy = Peer::Ip("127.0.0.1".parse().unwrap());
        let seen = |peer, forwarded| client(peer, &["127.0.0.1", "10.0.0.1"], forwarded);
        assert_eq!(seen(direct, "198.51.100.1").as_deref(), Some("203.0.113.9"));
        assert_eq!(seen(proxy, "198.51.100.1").as_deref(), Some("198.51.100.1"));
        assert_eq!(seen(proxy, "1.2.3.4, 198.51.100.1, 10.0.0.1").as_deref(), Some("198.51.100.1"));
        assert_eq!(seen(proxy, "garbage").as_deref(), Some("127.0.0.1"));
        assert_eq!(seen(proxy, "[2001:db8::1]:443").as_deref(), Some("2001:db8::1"));
        assert_eq!(seen(Peer::Unix, "198.51.100.1:77").as_deref(), Some("198.51.100.1"));
        assert_eq!(client(Peer::Unix, &[], "nobody"), None);
    }
}

#[cfg(test)]
mod local_client_tests {
    use super::*;
    use crate::http::message::head::{Head, Parsed};

    fn direct_with(peer: &str, trusted: &[&str], text: &str) -> bool {
        let mut head = Head::default();
        assert_eq!(head.parse(text.as_bytes(), 100, 16_384), Parsed::Complete, "{text:?}");
        let trusted: Vec<Network> = trusted.iter().map(|t| t.parse().unwrap()).collect();
        let peer = peer.parse().map_or(Peer::Unix, Peer::Ip);
        Request::new(text.as_bytes(), &head, b"", peer, &trusted, 0).is_direct_local()
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
        for host in [
            "localhost",
            "LocalHost:1",
            "127.0.0.1",
            "127.9.8.7:65535",
            "[::1]",
            "[::1]:8",
        ] {
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
