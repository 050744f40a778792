//! Content negotiation: chooses the content coding by `Accept-Encoding`.
//!
//! Pure functions on header bytes, which the edge calls for every prepared response. They must
//! never allocate or panic, whatever the bytes are. They take time linear in the header's length,
//! which is bounded.

use crate::http::message::head::trimmed;

/// A content coding that is made ahead of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Br,
    Gzip,
    /// Uncompressed.
    Identity,
}

/// A quality value (RFC 9110 12.4.2), in thousandths.
type Weight = u16;

/// The coding with the highest weight; among equals br, then gzip, then identity.
///
/// Without the header, or if no coding in it is known, the result is identity: RFC 9110 12.5.3
/// allows that, and every client can read it. Malformed elements are ignored. If a coding is named
/// twice, the first element counts.
pub(crate) fn preferred_coding(accept_encoding: Option<&[u8]>) -> Coding {
    match accept_encoding {
        None => Coding::Identity,
        // Fast path: exactly what browsers and curl send.
        Some(
            b"gzip, deflate, br, zstd" | b"gzip, deflate, br" | b"deflate, gzip, br, zstd" | b"br",
        ) => Coding::Br,
        Some(b"gzip, deflate" | b"deflate, gzip" | b"gzip") => Coding::Gzip,
        Some(b"identity" | b"") => Coding::Identity,
        Some(value) => weighed_coding(value),
    }
}

/// The coding of a stream, which is made in gzip and identity alone: gzip, unless the header
/// refuses it or prefers identity.
pub(crate) fn stream_coding(accept_encoding: Option<&[u8]>) -> Coding {
    let Weights { gzip, identity, .. } = Weights::of(accept_encoding.unwrap_or_default());
    if gzip > 0 && gzip >= identity {
        Coding::Gzip
    } else {
        Coding::Identity
    }
}

fn weighed_coding(value: &[u8]) -> Coding {
    let Weights { br, gzip, identity } = Weights::of(value);
    if br > 0 && br >= gzip && br >= identity {
        Coding::Br
    } else if gzip > 0 && gzip >= identity {
        Coding::Gzip
    } else {
        Coding::Identity
    }
}

/// The weight of each coding in a header; 0 excludes the coding.
struct Weights {
    br: Weight,
    gzip: Weight,
    identity: Weight,
}

impl Weights {
    fn of(value: &[u8]) -> Self {
        let mut br = None;
        let mut gzip = None;
        let mut identity = None;
        let mut rest = None;
        for element in value.split(|byte| *byte == b',') {
            let Some((name, weight)) = weighed(element) else {
                continue;
            };
            let slot: &mut Option<Weight> = if name.eq_ignore_ascii_case(b"br") {
                &mut br
            } else if name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip") {
                &mut gzip
            } else if name.eq_ignore_ascii_case(b"identity") {
                &mut identity
            } else if name == b"*" {
                &mut rest
            } else {
                continue;
            };
            slot.get_or_insert(weight);
        }
        let weight = |named: Option<Weight>| named.or(rest).unwrap_or(0);
        Self {
            br: weight(br),
            gzip: weight(gzip),
            identity: weight(identity),
        }
    }
}

/// Parses `name` or `name;q=0.5`, with optional blanks around the parts.
fn weighed(element: &[u8]) -> Option<(&[u8], Weight)> {
    let mut parts = element.splitn(2, |byte| *byte == b';');
    let name = trimmed(parts.next()?);
    if name.is_empty() {
        return None;
    }
    let weight = match parts.next() {
        None => 1_000,
        Some(parameter) => match trimmed(parameter) {
            [b'q' | b'Q', b'=', digits @ ..] => qvalue(digits)?,
            _ => return None,
        },
    };
    Some((name, weight))
}

/// Parses `0`, `0.5` or `1.000`: at most three digits after the point.
fn qvalue(digits: &[u8]) -> Option<Weight> {
    let (whole, fraction) = match digits {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let mut value = match whole {
        b'0' => 0,
        b'1' => 1_000,
        _ => return None,
    };
    for (digit, unit) in fraction.iter().zip([100, 10, 1]) {
        if !digit.is_ascii_digit() {
            return None;
        }
        value += Weight::from(digit - b'0') * unit;
    }
    (value <= 1_000).then_some(value)
}

#[cfg(test)]
#[path = "negotiate_tests.rs"]
mod tests;
