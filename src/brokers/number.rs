//! Numbers as the brokers write them: with or without quotes, whole or not, null, or a word for
//! nothing. Pure; never panics, never rounds.

use rust_decimal::Decimal;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use sonic_rs::LazyValue;

use crate::base::decimal;

/// Longest number that is read; a decimal has at most 29 digits.
const NUMBER_BYTES_MAX: usize = 64;

/// A number, or the broker's word for none (`null`, `""`, `NA`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number(pub(super) Option<Decimal>);

impl Number {
    /// Where zero means that the broker has none: prices.
    pub(super) fn price(self) -> Option<Decimal> {
        self.0.filter(|price| *price > Decimal::ZERO)
    }

    /// Where none means zero: quantities that older answers leave out.
    pub(super) fn or_zero(self) -> Decimal {
        self.0.unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw: LazyValue<'de> = Deserialize::deserialize(deserializer)?;
        read(raw.as_raw_str()).ok_or_else(|| D::Error::custom("not a number"))
    }
}

/// `None` if the JSON text `raw` is neither a number nor a word for none.
pub(super) fn read(raw: &str) -> Option<Number> {
    let raw = raw.trim();
    let text = match raw.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?.trim(),
        None => raw,
    };
    if text.is_empty() || text == "null" || text.eq_ignore_ascii_case("na") {
        return Some(Number(None));
    }
    // The parser of decimals takes underscores too.
    let plain = |byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    if text.len() > NUMBER_BYTES_MAX || !text.bytes().all(plain) {
        return None;
    }
    decimal::parse(text).map(|number| Number(Some(number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert};

    #[test]
    fn numbers_keep_their_digits_and_words_for_none_are_none() {
        for (raw, expected) in [
            ("161", Some("161")),
            ("801.78125", Some("801.78125")),
            ("\"5175\"", Some("5175")),
            ("\" 231.40 \"", Some("231.40")),
            ("-629.2999999999993", Some("-629.2999999999993")),
            ("1e3", Some("1000")),
            ("0", Some("0")),
            ("null", None),
            ("\"\"", None),
            ("\"NA\"", None),
        ] {
            let number = read(raw).unwrap();
            assert_eq!(number.0.map(|n| n.to_string()).as_deref(), expected, "{raw}");
        }
        let long = "9".repeat(65);
        for raw in ["false", "\"abc\"", "{}", "[1]", "\"1_000\"", "\"1,5\"", "\"", "--1", &long] {
            assert_eq!(read(raw), None, "{raw}");
        }
    }

    #[test]
    fn prices_of_zero_are_none() {
        assert_eq!(read("0").unwrap().price(), None);
        assert_eq!(read("\"0.00\"").unwrap().price(), None);
        assert_eq!(read("0.05").unwrap().price().unwrap().to_string(), "0.05");
    }

    proptest::proptest! {
        #[test]
        fn never_panics(raw in any::<String>(), digits in "[-+0-9.eE]{0,70}") {
            for text in [raw.as_str(), digits.as_str(), &format!("\"{digits}\"")] {
                if let Some(Number(Some(number))) = read(text) {
                    prop_assert!(text.bytes().any(|b| b.is_ascii_digit()), "{number} of {text}");
                }
            }
        }
    }
}
