//! `host [":" port]` as it stands in `Host` and in an absolute-form target (RFC 3986 3.2, RFC 9112
//! 3.2). Pure; no allocation.
//!
//! What is not written exactly so is refused: a proxy in front might take it for another host.

use std::net::Ipv6Addr;

/// A well-formed authority, in its two parts as they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// Never empty. An address of version 6 keeps its brackets.
    pub host: &'a [u8],
    /// The digits after the colon, none if it is the last character.
    pub port: Option<&'a [u8]>,
}

impl<'a> Authority<'a> {
    /// `None` for what is not one; user information is not taken (RFC 9110 4.2.4).
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let (host, rest) = match text.first()? {
            b'[' => text.split_at(memchr::memchr(b']', text)? + 1),
            _ => text.split_at(memchr::memchr(b':', text).unwrap_or(text.len())),
        };
        let valid = match host {
            [b'[', literal @ .., b']'] => is_ip_literal(literal),
            name => is_registered_name(name),
        };
        let port = match rest {
            [] => None,
            [b':', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => Some(digits),
            _ => return None,
        };
        valid.then_some(Self { host, port })
    }
}

/// `unreserved` and `sub-delims`: what a name may have as it is.
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
pub const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// An address of version 4 is one too, by its characters. HTTP takes no empty one (RFC 9110 4.2.1).
fn is_registered_name(name: &[u8]) -> bool {
    let mut rest = name;
    while let [first, tail @ ..] = rest {
        rest = match (first, tail) {
            (byte, _) if NAME_BYTES[usize::from(*byte)] => tail,
            (b'%', [high, low, tail @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                tail
            }
            _ => return false,
        };
    }
    !name.is_empty()
}

/// What stands between brackets: an address of version 6, or of a version to come.
fn is_ip_literal(literal: &[u8]) -> bool {
    let [b'v' | b'V', future @ ..] = literal else {
        // The standard library's grammar is that of RFC 3986; it knows no zone.
        return std::str::from_utf8(literal).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
    };
    let Some(dot) = memchr::memchr(b'.', future) else { return false };
    let (version, address) = (&future[..dot], &future[dot + 1..]);
    let in_address = |byte: &u8| *byte == b':' || NAME_BYTES[usize::from(*byte)];
    !version.is_empty()
        && version.iter().all(u8::is_ascii_hexdigit)
        && !address.is_empty()
        && address.iter().all(in_address)
}

#[cfg(test)]
#[path = "authority_tests.rs"]
mod tests;
