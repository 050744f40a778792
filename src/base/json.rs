//! Reading JSON of strangers, upstreams and clients: the checks that the parser lacks, then the parser.
//! Pure.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use sonic_rs::LazyValue;
use zeroize::Zeroizing;

/// Deepest nesting in any known answer is 8 (the chart's events); the rest is room.
const DEPTH_MAX: usize = 32;

/// Parses `body`; `None` if it is not JSON, not a `T`, or nested too deeply.
///
/// The parser (sonic-rs 0.5.10) skips unknown values by recursion without a bound, so a body of
/// opening brackets would overflow the stack and end the process; and it hands out lazy values of a
/// byte slice without checking that they are UTF-8. It must not get to see either.
pub fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    let text = std::str::from_utf8(body).ok()?;
    if !shallow(body) {
        return None;
    }
    sonic_rs::from_str(text).ok()
}

/// The members of the one object in `body`, in order, undecoded. Names with escapes are left out:
/// no field of ours has one. `None` if it is not an object, is nested too deeply, or has more than
/// `members_max` members.
pub fn members(body: &[u8], members_max: usize) -> Option<Vec<(&str, LazyValue<'_>)>> {
    let members: Members<'_> = parse(body)?;
    (members.count <= members_max).then_some(members.named)
}

#[derive(Default)]
struct Members<'a> {
    named: Vec<(&'a str, LazyValue<'a>)>,
    count: usize,
}

/// A member's name, if it stands in the input as it is.
struct Name<'a>(Option<&'a str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Some(name)))
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Name(None))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                while let Some(Name(name)) = map.next_key()? {
                    let value: LazyValue<'de> = map.next_value()?;
                    members.named.extend(name.map(|name| (name, value)));
                    members.count += 1;
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// The text of a JSON string, in memory that is wiped; `None` if `raw` is not a string.
///
/// Decoded here and not by the parser, which would leave copies of an escaped secret behind.
pub fn unescaped(raw: &str) -> Option<Zeroizing<String>> {
    let inner = raw.trim().strip_prefix('"')?.strip_suffix('"')?;
    // Never longer than its escaped form, so it never grows by copying.
    let mut text = Zeroizing::new(String::with_capacity(inner.len()));
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let escape = rest[at + 1..].chars().next()?;
        rest = &rest[at + 1 + escape.len_utf8()..];
        text.push(match escape {
            '"' | '\\' | '/' => escape,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (decoded, after) = unicode_escape(rest)?;
                rest = after;
                decoded
            }
            _ => return None,
        });
    }
    text.push_str(rest);
    Some(text)
}

/// The character of what follows `\u`, with its second half if it has one.
fn unicode_escape(rest: &str) -> Option<(char, &str)> {
    let unit = |text: &str| u32::from_str_radix(text.get(..4)?, 16).ok();
    let first = unit(rest)?;
    let rest = &rest[4..];
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, rest));
    }
    let second = unit(rest.strip_prefix("\\u")?)?;
    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + low)?, &rest[6..]))
}

/// Whether brackets outside strings nest at most [`DEPTH_MAX`] deep. Says nothing about validity.
fn shallow(body: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => {
                bytes.next();
            }
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return false;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_outside_strings_only() {
        let deepest = ["[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX)].concat();
        assert!(shallow(deepest.as_bytes()));
        assert!(!shallow(format!("[{deepest}]").as_bytes()));
        let flat = format!(r#"["{}", "\"{}"]"#, "[".repeat(100), "{".repeat(100));
        assert!(shallow(flat.as_bytes()));
        assert!(shallow("[]".repeat(100).as_bytes()));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused() {
        assert!(parse::<LazyValue<'_>>(b"[\"\x80\"]").is_none());
    }

    #[test]
    fn members_are_read_in_order_and_bounded() {
        let body = br#"{"a":"x\"y","b":[1,{"c":2}],"a":null,"d":1e2}"#;
        let read = members(body, 4).unwrap();
        let read: Vec<_> = read.iter().map(|(name, raw)| (*name, raw.as_raw_str())).collect();
        let expected = [("a", r#""x\"y""#), ("b", r#"[1,{"c":2}]"#), ("a", "null"), ("d", "1e2")];
        assert_eq!(read, expected);
        assert!(members(body, 3).is_none());
        for bad in ["", "[]", "\"a\"", "{\"a\":1}x", "{\"a\":1,}", "{\"a\"}", "{'a':1}", "{", "nul"]
        {
            assert!(members(bad.as_bytes(), 4).is_none(), "{bad}");
        }
    }

    #[test]
    fn strings_are_decoded_as_json_has_it() {
        for (raw, text) in [
            (r#""""#, Some("")),
            (r#""plain \u00e9""#, Some("plain é")),
            (r#""a\n\t\"\\\/\b\f\r""#, Some("a\n\t\"\\/\u{8}\u{c}\r")),
            (r#""\ud83d\ude00!""#, Some("😀!")),
            (r#""\ud83d""#, None),
            (r#""\udc00""#, None),
            (r#""\x""#, None),
            (r#""\u12""#, None),
            ("12", None),
            ("null", None),
        ] {
            let decoded = unescaped(raw);
            assert_eq!(decoded.as_ref().map(|text| text.as_str()), text, "{raw}");
        }
    }

    #[test]
    fn a_million_brackets_are_refused() {
        for bracket in ["[", "{\"a\":"] {
            let body = bracket.repeat(1_000_000);
            assert!(parse::<LazyValue<'_>>(body.as_bytes()).is_none());
        }
    }
}
