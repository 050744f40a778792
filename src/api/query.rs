//! Query strings: finds a parameter and decodes it, byte by byte and without allocation.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::http::Problem;
use crate::http::message::request::decoded_escape;

/// The raw values of every parameter called `name`, in order.
pub(super) fn values<'a>(query: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    query.split(|byte| *byte == b'&').filter_map(move |pair| {
        let at = pair
            .iter()
            .position(|byte| *byte == b'=')
            .unwrap_or(pair.len());
        is_named(&pair[..at], name).then(|| pair.get(at + 1..).unwrap_or_default())
    })
}

/// Whether `raw` is `name`, possibly percent-encoded.
fn is_named(raw: &[u8], name: &[u8]) -> bool {
    raw == name || (raw.len() > name.len() && Decoded(raw).eq(name.iter().copied().map(Ok)))
}

/// A parameter that is there twice, or is not validly encoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotOnce;

/// The message to the client in this case.
pub(crate) const ONCE: &str = "Give it once, and well encoded.";

/// The decoded value of a parameter that may be there once; `None` if it is absent.
pub(super) fn once(query: &[u8], name: &[u8]) -> Result<Option<String>, NotOnce> {
    let mut found = values(query, name);
    let Some(raw) = found.next() else {
        return Ok(None);
    };
    let decoded: Option<Vec<u8>> = Decoded(raw).map(Result::ok).collect();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    match (text, found.next()) {
        (Some(text), None) => Ok(Some(text)),
        _ => Err(NotOnce),
    }
}

/// Same as [`once`], with a fault as the client's problem.
///
/// # Errors
/// 400 `validation_failed`.
pub(super) fn one(query: &[u8], name: &'static str) -> Result<Option<String>, Problem> {
    once(query, name.as_bytes()).map_err(|_| invalid(name, ONCE))
}

/// The value of a parameter, as `read` understands it; `None` if it is absent. `expected` tells the
/// client what it should be.
///
/// # Errors
/// 400 `validation_failed`.
pub(super) fn parameter<T>(
    query: &[u8],
    name: &'static str,
    expected: impl Into<Cow<'static, str>>,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = one(query, name)? else {
        return Ok(None);
    };
    read(&text).map(Some).ok_or_else(|| invalid(name, expected))
}

/// A parameter that is off if it is absent.
///
/// # Errors
/// 400 `validation_failed`.
pub(super) fn switch(query: &[u8], name: &'static str) -> Result<bool, Problem> {
    let given = parameter(query, name, "This is true or false.", |text| text.parse().ok())?;
    Ok(given.unwrap_or(false))
}

/// A whole number of these, in digits alone: no sign, no blank.
pub(super) fn whole<N: FromStr + PartialOrd>(
    allowed: RangeInclusive<N>,
) -> impl Fn(&str) -> Option<N> {
    move |text| {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse()
            .ok()
            .filter(|number| plain && allowed.contains(number))
    }
}

/// The 400 for an invalid parameter.
pub(super) fn invalid(name: &'static str, message: impl Into<Cow<'static, str>>) -> Problem {
    let detail = "A query parameter is not valid.";
    Problem::new(400, "validation_failed", detail).field(name, message)
}

/// Decodes the bytes of a value: `%XX`, and `+` as a space. A malformed escape is an error, not a
/// character.
pub(crate) struct Decoded<'a>(pub &'a [u8]);

/// A percent sign without two hexadecimal digits after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadEscape;

impl Iterator for Decoded<'_> {
    type Item = Result<u8, BadEscape>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(match first {
            b'+' => Ok(b' '),
            b'%' => match rest {
                [high, low, tail @ ..] => {
                    self.0 = tail;
                    decoded_escape(*high, *low).ok_or(BadEscape)
                }
                _ => {
                    self.0 = &[];
                    Err(BadEscape)
                }
            },
            other => Ok(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Result<String, BadEscape> {
        let bytes: Result<Vec<u8>, _> = Decoded(text.as_bytes()).collect();
        bytes.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn values_are_decoded_from_percent_and_plus_encoding() {
        assert_eq!(decoded("NSE%3AM%26M").unwrap(), "NSE:M&M");
        assert_eq!(decoded("NSE:NIFTY%2050,NSE:NIFTY+50").unwrap(), "NSE:NIFTY 50,NSE:NIFTY 50");
        for bad in ["%", "%4", "%zz", "a%2"] {
            assert_eq!(decoded(bad), Err(BadEscape), "{bad}");
        }
    }

    #[test]
    fn whole_numbers_are_digits_within_their_range() {
        let days = whole(1..=365_u16);
        for (text, expected) in [
            ("1", Some(1)),
            ("365", Some(365)),
            ("030", Some(30)),
            ("0", None),
            ("366", None),
        ] {
            assert_eq!(days(text), expected, "{text}");
        }
        for bad in ["", "-1", "+1", "1.0", "ten", " 7", "99999999999"] {
            assert_eq!(days(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_value_of_a_parameter_is_found() {
        let query = b"a=1&symbols=x&symbolsx=no&symbols=y&symbols";
        let found: Vec<&[u8]> = values(query, b"symbols").collect();
        assert_eq!(found, [&b"x"[..], b"y", b""]);
        let query = b"%73ymbols=x&symbol%73=%79&symbols%=no&%2573ymbols=no&%53ymbols=no";
        let found: Vec<&[u8]> = values(query, b"symbols").collect();
        assert_eq!(found, [&b"x"[..], b"%79"]);
    }
}
