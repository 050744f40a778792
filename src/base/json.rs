//! Parsing of untrusted JSON: the checks that the parsers lack, then the parser. Pure.
//!
//! Large responses of upstreams are parsed by sonic-rs ([`parse`]). Small bodies of clients, which
//! carry secrets, are split by serde_json ([`members`]): sonic-rs copies a piece of the input into
//! each error, and that copy is not wiped.

use std::borrow::Cow;
use std::fmt;

use rust_decimal::{Decimal, RoundingStrategy};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

/// Deepest nesting accepted. The deepest of any known upstream is 8 (the public chart's events).
const DEPTH_MAX: usize = 32;

/// Parses `body`; `None` if it is not JSON, not a `T`, or nested too deeply.
///
/// The checks come first because of two gaps in the parser (sonic-rs 0.5.10). It skips unknown
/// values by unbounded recursion, so a body of opening brackets would overflow the stack and end
/// the process. It also returns lazy values of a byte slice without checking that they are UTF-8.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    let text = std::str::from_utf8(body).ok()?;
    if !within_depth(body) {
        return None;
    }
    sonic_rs::from_str(text).ok()
}

/// Most members of an object or elements of an array accepted from a client. Bounds the memory for
/// them. The largest request body has nine members, and the longest list twenty elements.
const COUNT_MAX: usize = 256;

/// A member: its name, decoded, and its value as undecoded JSON text.
pub(crate) type Member<'a> = (Cow<'a, str>, &'a str);

/// The members of the one object in `body`, in order. Escapes in names are decoded before names are
/// compared (RFC 8259, 8.3). `None` if `body` is not one object, is nested too deeply, or has more
/// than `COUNT_MAX` members. Values are not copied.
pub fn members(body: &[u8]) -> Option<Vec<Member<'_>>> {
    split(body, b'{')
}

/// The decoded text of the member called `name`; `None` if it is absent or not a string.
pub(crate) fn text(members: &[Member<'_>], name: &str) -> Option<Zeroizing<String>> {
    members
        .iter()
        .find(|(key, _)| *key == name)
        .and_then(|(_, raw)| unescaped(raw))
}

/// The elements of the one array in `raw`, in order, as undecoded JSON texts. `None` as in
/// [`members`].
pub fn elements(raw: &str) -> Option<Vec<&str>> {
    let elements = split(raw.as_bytes(), b'[')?;
    Some(elements.into_iter().map(|(_, element)| element).collect())
}

/// The parts of the object or array that begins with `opening`. That byte is checked first: serde's
/// error about a wrong type quotes the value.
fn split(json: &[u8], opening: u8) -> Option<Vec<Member<'_>>> {
    let text = std::str::from_utf8(json).ok()?;
    let has_opening = json.trim_ascii_start().first() == Some(&opening);
    if !has_opening || !within_depth(json) {
        return None;
    }
    serde_json::from_str(text).ok().map(|Parts(parts)| parts)
}

/// The parts of an object or an array, in order. Elements of an array have no name.
struct Parts<'a>(Vec<Member<'a>>);

impl<'a> Parts<'a> {
    fn push<E: Error>(&mut self, name: Cow<'a, str>, value: &'a RawValue) -> Result<(), E> {
        if self.0.len() == COUNT_MAX {
            return Err(E::custom("too many parts"));
        }
        self.0.push((name, value.get()));
        Ok(())
    }
}

/// A member's decoded name; borrowed from the input if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Parts<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PartsVisitor;
        impl<'de> Visitor<'de> for PartsVisitor {
            type Value = Parts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or an array")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut parts = Parts(Vec::new());
                while let Some(Name(name)) = map.next_key()? {
                    parts.push::<A::Error>(name, map.next_value()?)?;
                }
                Ok(parts)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut parts = Parts(Vec::new());
                while let Some(element) = seq.next_element()? {
                    parts.push::<A::Error>(Cow::Borrowed(""), element)?;
                }
                Ok(parts)
            }
        }
        deserializer.deserialize_any(PartsVisitor)
    }
}

/// The decoded text of a JSON string, in memory that is wiped on drop; `None` if `raw` is not a
/// string.
///
/// Does not use the parser, which would leave unwiped copies of an escaped secret behind.
pub fn unescaped(raw: &str) -> Option<Zeroizing<String>> {
    let inner = raw.trim().strip_prefix('"')?.strip_suffix('"')?;
    // Decoded text is never longer than its escaped form, so the buffer never reallocates.
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

/// Decodes what follows `\u`, including the second half of a surrogate pair. Returns the character
/// and the rest of the text; `None` for an unpaired surrogate or bad digits.
fn unicode_escape(rest: &str) -> Option<(char, &str)> {
    let unit = |text: &str| {
        let digits = text.get(..4)?;
        // `from_str_radix` alone would accept a leading sign.
        let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        hex.then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let first = unit(rest)?;
    let rest = &rest[4..];
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, rest));
    }
    let second = unit(rest.strip_prefix("\\u")?)?;
    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + low)?, &rest[6..]))
}

/// Whether brackets outside strings nest at most [`DEPTH_MAX`] deep. Does not check that the text
/// is valid JSON.
fn within_depth(body: &[u8]) -> bool {
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

// ---- Decimal
//
// Exact decimal arithmetic and its written form.
//
// Money never passes through a binary float. The brokers' digits are parsed into [`Decimal`] and
// rounded only when written out, half away from zero.

/// Digits after the point in everything the API writes.
pub(crate) const WRITTEN_PLACES: u32 = 2;

/// Rounds for output: two places, half away from zero.
pub(crate) fn rounded(value: Decimal) -> Decimal {
    value.round_dp_with_strategy(WRITTEN_PLACES, RoundingStrategy::MidpointAwayFromZero)
}

/// Percent change of `last` from `previous_close`; `None` if the previous close is not positive or
/// the result does not fit.
pub(crate) fn percent_change(last: Decimal, previous_close: Decimal) -> Option<Decimal> {
    if previous_close <= Decimal::ZERO {
        return None;
    }
    last.checked_sub(previous_close)?
        .checked_mul(Decimal::ONE_HUNDRED)?
        .checked_div(previous_close)
}

/// Appends `value`, rounded, as a JSON number in its shortest form (`1412.95`, `1075`, `-0.5`).
#[cfg(test)]
pub(crate) fn write_json(out: &mut Vec<u8>, value: Decimal) {
    use std::io::Write;
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{}", shortest(rounded(value)));
}

/// The same number without trailing zeros; negative zero becomes `0`.
pub(crate) fn shortest(value: Decimal) -> Decimal {
    if value.is_zero() {
        Decimal::ZERO
    } else {
        value.normalize()
    }
}

/// Parses the text of a JSON number, plain or with an exponent; `None` if it does not fit.
pub fn parse_decimal(text: &str) -> Option<Decimal> {
    let text = text.trim();
    if text.contains(['e', 'E']) {
        Decimal::from_scientific(text).ok()
    } else {
        text.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use sonic_rs::LazyValue;

    use super::*;

    #[test]
    fn depth_is_counted_outside_strings_only() {
        let deepest = ["[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX)].concat();
        assert!(within_depth(deepest.as_bytes()));
        assert!(!within_depth(format!("[{deepest}]").as_bytes()));
        let flat = format!(r#"["{}", "\"{}"]"#, "[".repeat(100), "{".repeat(100));
        assert!(within_depth(flat.as_bytes()));
        assert!(within_depth("[]".repeat(100).as_bytes()));
    }

    #[test]
    fn a_body_that_is_not_utf8_is_refused() {
        assert!(parse::<LazyValue<'_>>(b"[\"\x80\"]").is_none());
    }

    #[test]
    fn members_are_read_in_order_and_bounded() {
        let body = br#"{"a":"x\"y","b":[1,{"c":2}],"a":null,"d":1e2}"#;
        let read = members(body).unwrap();
        let expected = [
            ("a", r#""x\"y""#),
            ("b", r#"[1,{"c":2}]"#),
            ("a", "null"),
            ("d", "1e2"),
        ];
        assert_eq!(read, expected.map(|(name, raw)| (Cow::Borrowed(name), raw)));
        for bad in [
            "",
            "[]",
            "\"a\"",
            "{\"a\":1}x",
            "{\"a\":1,}",
            "{\"a\"}",
            "{'a':1}",
            "{",
            "nul",
        ] {
            assert!(members(bad.as_bytes()).is_none(), "{bad}");
        }
        for number in ["01", "1.", ".5", "+1", "1e", "-", "NaN", "0x1"] {
            assert!(members(format!("{{\"a\":{number}}}").as_bytes()).is_none(), "{number}");
        }
        let many = |count: usize| {
            let members: Vec<String> = (0..count).map(|n| format!("\"a{n}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert_eq!(members(many(COUNT_MAX).as_bytes()).unwrap().len(), COUNT_MAX);
        assert!(members(many(COUNT_MAX + 1).as_bytes()).is_none());
    }

    proptest! {
        #[test]
        fn a_name_with_escapes_is_decoded(name in vec((any::<char>(), any::<bool>()), 0..12)) {
            let plain: String = name.iter().map(|(c, _)| c).collect();
            let escape = |c: char| {
                let mut units = [0; 2];
                let units = c.encode_utf16(&mut units);
                units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>()
            };
            let must_escape = |c: char| c < ' ' || c == '"' || c == '\\';
            let written: String = name
                .iter()
                .map(|&(c, escaped)| if escaped || must_escape(c) { escape(c) } else { c.into() })
                .collect();
            let body = format!(" {{\"{written}\":[\"{written}\"]}} ");
            let read = members(body.as_bytes()).unwrap();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(&read[0].0, &plain);
            prop_assert_eq!(read[0].1, format!("[\"{written}\"]"));
        }
    }

    #[test]
    fn a_name_with_an_unpaired_surrogate_or_a_bad_escape_is_refused() {
        for name in [r"\ud83d", r"\udc00", r"\ud83d\u0041", r"\x", r"\u12"] {
            assert!(members(format!("{{\"{name}\":1}}").as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn elements_are_read_in_order_and_bounded() {
        assert_eq!(
            elements(r#"["a", [1], {"b":"]"} ]"#).unwrap(),
            ["\"a\"", "[1]", r#"{"b":"]"}"#]
        );
        assert!(elements("[]").unwrap().is_empty());
        for bad in ["", "{}", "[1,]", "[1", "\"[]\"", "[1] 2", "null"] {
            assert!(elements(bad).is_none(), "{bad}");
        }
        assert!(elements(&format!("[{}0]", "0,".repeat(COUNT_MAX))).is_none());
        assert!(elements(&"[".repeat(1_000_000)).is_none());
    }

    #[test]
    fn string_escapes_are_decoded_and_bad_ones_refused() {
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
            ("\"", None),
            (r#""\u+041""#, None),
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
            assert!(members(body.as_bytes()).is_none());
        }
    }
}

#[cfg(test)]
mod decimal_tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write_json(&mut out, parse_decimal(text).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writes_the_shortest_form_rounded_half_away_from_zero() {
        for (given, expected) in [
            ("1412.95", "1412.95"),
            ("1075", "1075"),
            ("1075.00", "1075"),
            ("0.125", "0.13"),
            ("-0.125", "-0.13"),
            ("-0.001", "0"),
            ("2436.199951171875", "2436.2"),
            ("1e3", "1000"),
        ] {
            assert_eq!(written(given), expected, "for {given}");
        }
    }

    #[test]
    fn percent_change_from_a_zero_close_is_none() {
        let ten = Decimal::TEN;
        assert_eq!(percent_change(ten, Decimal::ZERO), None);
        assert_eq!(percent_change(Decimal::from(11), ten), Some(ten));
    }
}
