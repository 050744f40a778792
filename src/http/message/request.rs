//! A request as handlers see it. It borrows from the connection's buffers, so it cannot outlive the
//! handler.

use std::net::IpAddr;

use super::authority::is_unreserved;
use super::conditional::Preconditions;
use super::head::{Head, Span};

/// Methods that are recognised; any other token is answered 501.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
    Trace,
    Connect,
}

impl Method {
    /// Parses a method token; methods are case-sensitive (RFC 9110 9.1).
    pub fn parse(token: &[u8]) -> Option<Self> {
        Some(match token {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"PATCH" => Self::Patch,
            b"DELETE" => Self::Delete,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"CONNECT" => Self::Connect,
            _ => return None,
        })
    }

    /// The token.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The other end of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Ip(IpAddr),
    /// A process on this machine, through the Unix socket: always a trusted proxy.
    Unix,
}

impl Peer {
    /// Whether it is a trusted proxy, whose `X-Forwarded-For` counts.
    pub fn is_trusted(self, trusted_proxies: &[IpAddr]) -> bool {
        match self {
            Self::Ip(address) => trusted_proxies.contains(&address),
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
    trusted_proxies: &'a [IpAddr],
}

impl<'a> Request<'a> {
    pub(crate) fn new(
        bytes: &'a [u8],
        head: &'a Head,
        body: &'a [u8],
        peer: Peer,
        trusted_proxies: &'a [IpAddr],
    ) -> Self {
        Self { bytes, head, body, peer, trusted_proxies }
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
    pub fn normal_path(&self) -> Option<Vec<u8>> {
        self.path().contains(&b'%').then(|| normal(self.path()))
    }

    /// The query as sent, without the question mark.
    pub fn query(&self) -> Option<&'a [u8]> {
        self.part(self.head.query)
    }

    /// `If-Match` and `If-None-Match`.
    pub fn preconditions(&self) -> Preconditions<'a> {
        Preconditions::of(self.head, self.bytes)
    }

    /// `Accept-Encoding`; empty if it was sent more than once.
    pub fn accept_encoding(&self) -> Option<&'a [u8]> {
        self.part(self.head.accept_encoding)
    }

    /// `Origin`.
    pub fn origin(&self) -> Option<&'a [u8]> {
        self.part(self.head.origin)
    }

    /// The request id that the client sent, if it is safe to repeat: 1 to 64 of `A-Za-z0-9._-`.
    pub fn own_request_id(&self) -> Option<&'a [u8]> {
        self.head.own_request_id(self.bytes)
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers(name).next()
    }

    /// All headers of this name, in order.
    pub fn headers<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let bytes = self.bytes;
        let named = move |(key, value): &(Span, Span)| {
            key.of(bytes).eq_ignore_ascii_case(name.as_bytes()).then(|| value.of(bytes))
        };
        self.head.headers.iter().filter_map(named)
    }

    /// The client's address: the peer's, or behind trusted proxies the one they forward.
    /// `X-Forwarded-For` is read from the right, up to the first address that is not a trusted
    /// proxy; anything further left could be forged by the client. `None` behind a Unix socket
    /// without a forwarded address.
    pub fn client_address(&self) -> Option<IpAddr> {
        let peer = match self.peer {
            Peer::Ip(address) if !self.trusted_proxies.contains(&address) => return Some(address),
            Peer::Ip(address) => Some(address),
            Peer::Unix => None,
        };
        let mut client = peer;
        let lines: Vec<&[u8]> = self.headers("x-forwarded-for").collect();
        for hop in lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b',')) {
            let Some(address) = parse_address(hop.trim_ascii()) else { break };
            client = Some(address);
            if !self.trusted_proxies.contains(&address) {
                break;
            }
        }
        client
    }

    /// Whether a program on this machine makes the request for itself: over loopback, to a loopback
    /// name, not through a proxy and not from a web page. False for the Unix socket, which is for
    /// proxies.
    pub fn is_direct_local(&self) -> bool {
        super::local_client::is_direct_local(self, self.trusted_proxies)
    }

    /// The names of all headers, as sent.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.head.headers.iter().map(move |(name, _)| name.of(bytes))
    }

    /// Whether the request is HTTP/1.0.
    pub(crate) fn is_http_1_0(&self) -> bool {
        self.head.http_1_0
    }

    /// Whether the target is a path, and not an absolute URI as clients send to proxies.
    pub(crate) fn is_origin_form(&self) -> bool {
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

/// The byte that `%` followed by these two digits encodes; `None` if they are not hexadecimal.
pub fn decoded_escape(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
    digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low)
}

/// An address as proxies write it: bare, with a port, or an IPv6 address in brackets.
fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let inner = text.strip_prefix('[').and_then(|rest| rest.split(']').next());
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
    read(&Request::new(head.as_bytes(), &parsed, body, Peer::Ip(peer), &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: Peer, trusted: &[&str], forwarded: &str) -> Option<String> {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {forwarded}\r\n\r\n");
        let mut head = Head::default();
        head.parse(text.as_bytes(), 100, 16_384);
        let trusted: Vec<IpAddr> = trusted.iter().map(|t| t.parse().unwrap()).collect();
        let request = Request::new(text.as_bytes(), &head, b"", peer, &trusted);
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
