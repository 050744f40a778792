//! Parses `host [":" port]`, as in `Host` and in an absolute-form target (RFC 3986 3.2, RFC 9112
//! 3.2). Pure; no allocation.
//!
//! Anything that does not match the grammar is refused, because a proxy in front might read it as
//! another host.

use std::net::Ipv6Addr;

/// A well-formed authority: host and port as they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// Never empty. An IPv6 address includes its brackets.
    pub host: &'a [u8],
    /// The digits after the colon, possibly none; `None` without a colon.
    pub port: Option<&'a [u8]>,
}

impl<'a> Authority<'a> {
    /// Parses `text`; `None` if it is malformed or contains user information (RFC 9110 4.2.4).
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        let host_bytes = match text.first()? {
            b'[' => ip_literal_bytes(text)?,
            _ => name_bytes(text)?,
        };
        let (host, rest) = text.split_at(host_bytes);
        let port = match rest {
            [] => None,
            [b':', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => Some(digits),
            _ => return None,
        };
        Some(Self { host, port })
    }
}

/// The bytes allowed unescaped in a registered name: `unreserved` and `sub-delims`.
const NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = is_unreserved(byte as u8)
            || matches!(
                byte as u8,
                b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
            );
        byte += 1;
    }
    table
};

/// Characters that mean the same whether they are percent-encoded or not (RFC 3986 2.3).
pub(crate) const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Length of the registered name or IPv4 address at the beginning of `text`. `None` if empty, which
/// HTTP does not allow (RFC 9110 4.2.1).
fn name_bytes(text: &[u8]) -> Option<usize> {
    let ends_name = |byte: &u8| !NAME_BYTES[usize::from(*byte)];
    let mut at = 0;
    loop {
        at += text[at..]
            .iter()
            .position(ends_name)
            .unwrap_or(text.len() - at);
        match text.get(at) {
            Some(b'%') if is_escape(text.get(at..at + 3)?) => at += 3,
            _ => return (at > 0).then_some(at),
        }
    }
}

fn is_escape(text: &[u8]) -> bool {
    text[1..].iter().all(u8::is_ascii_hexdigit)
}

/// Length of the bracketed address at the beginning of `text`, including the brackets: IPv6, or a
/// future version (RFC 3986 `IPvFuture`).
fn ip_literal_bytes(text: &[u8]) -> Option<usize> {
    let end = memchr::memchr(b']', text)?;
    let valid = match &text[1..end] {
        [b'v' | b'V', future @ ..] => is_future_address(future),
        // The standard library accepts exactly the grammar of RFC 3986, without zone ids.
        literal => std::str::from_utf8(literal).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
    };
    valid.then_some(end + 1)
}

/// `1*HEXDIG "." 1*( unreserved / sub-delims / ":" )`
fn is_future_address(text: &[u8]) -> bool {
    let Some(dot) = memchr::memchr(b'.', text) else {
        return false;
    };
    let version = &text[..dot];
    let address = &text[dot + 1..];
    let in_address = |byte: &u8| *byte == b':' || NAME_BYTES[usize::from(*byte)];
    !version.is_empty()
        && version.iter().all(u8::is_ascii_hexdigit)
        && !address.is_empty()
        && address.iter().all(in_address)
}

#[cfg(test)]
#[path = "authority_tests.rs"]
mod tests;
