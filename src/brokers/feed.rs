//! A feed of quotes: its trait, its batches, and the errors of all calls to brokers.
//!
//! Calls block and run on the feed's lane.

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use sonic_rs::LazyValue;

use crate::base::{Quote, Source, Symbol, json};
use crate::brokers::error::BrokerError;
use crate::brokers::quote_checks::{CallTimes, Claim, Judgement, Kind, Unproven};
use crate::brokers::readiness::Readiness;

/// A source of quotes that answers in batches.
///
/// Implementations own their rate limit, their circuit breaker and their plausibility checks, so
/// that no caller can spend more of the upstream's budget than the settings allow.
pub(crate) trait MarketFeed: Send + Sync {
    /// The source of its quotes.
    fn source(&self) -> Source;

    /// Maximum number of instruments in one call now.
    fn batch_max(&self) -> usize;

    /// Whether a call could be made now. Never blocks.
    fn readiness(&self) -> Readiness;

    /// One upstream call for at most [`batch_max`](Self::batch_max) symbols. Blocks for at most the
    /// settings' total deadline.
    ///
    /// # Errors
    /// [`BrokerError`]; a batch that failed as a whole returns no quotes.
    fn quotes(&self, symbols: &[Symbol]) -> Result<Batch, BrokerError>;
}

/// The reply to one call, or pushed quotes. A symbol in none of the lists was not requested: a feed
/// that uses its spare route requests fewer (see [`MarketFeed::batch_max`]).
#[derive(Debug, Default)]
pub struct Batch {
    /// Plausible quotes of requested symbols, in no particular order.
    pub quotes: Vec<Quote>,
    /// Symbols the upstream does not know (left out of its answer).
    pub unknown: Vec<Symbol>,
    /// Quotes that need evidence before they are believed, besides what their rows say.
    pub unproven: Vec<Unproven>,
    /// Symbols with an implausible price: zero, in another currency, or too old.
    pub implausible: Vec<Symbol>,
    /// The newest price time that is too far ahead of our clock.
    pub ahead: Option<Timestamp>,
    /// Number of prices whose time is too far ahead.
    pub ahead_count: u64,
    /// Times of the call and its answer.
    pub times: CallTimes,
    /// Maximum number of symbols in a call of the route that answered.
    pub symbols_max: usize,
    /// The answer carried the simulator's mark.
    pub simulated: bool,
    /// The batch was pushed. Symbols that it lacks are not missing at the source.
    pub pushed: bool,
}

impl Batch {
    /// Takes in what an upstream says about one symbol.
    pub(super) fn add(&mut self, kind: Kind, symbol: &Symbol, source: Source, claim: &Claim) {
        match claim.judged(kind, symbol, &self.times, source, self.simulated) {
            Ok(Judgement::Believed(quote)) => self.quotes.push(*quote),
            Ok(Judgement::Unproven(unproven)) => self.unproven.push(*unproven),
            Err(_) => self.disbelieve(symbol.clone(), claim.as_of),
        }
    }

    /// Records a symbol whose price is implausible, and the price's time.
    pub(super) fn disbelieve(&mut self, symbol: Symbol, as_of: Option<Timestamp>) {
        let answered = self.times.answered;
        let ahead = as_of.filter(|at| Quote::is_ahead(*at, answered));
        self.ahead = self.ahead.max(ahead);
        self.ahead_count += u64::from(ahead.is_some());
        self.implausible.push(symbol);
    }
}

/// Passes a pushed batch to the scheduler. Returns it while the scheduler has not taken the one
/// before.
pub type Push = Box<dyn Fn(Box<Batch>) -> Result<(), Box<Batch>> + Send>;

// ---- Number
//
// Parses numbers as the brokers write them: with or without quotes, whole or not, null, or a text
// for a missing value. Pure; never panics, never rounds.

/// Longest number that is read; a decimal has at most 29 digits.
const NUMBER_BYTES_MAX: usize = 64;

/// A number, or the broker's text for a missing one (`null`, `""`, `NA`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number(pub(super) Option<Decimal>);

impl Number {
    /// The value as a price; zero means that the broker has none.
    pub(super) fn price(self) -> Option<Decimal> {
        self.0.filter(|price| *price > Decimal::ZERO)
    }

    /// The value as a quantity; older answers leave out zero.
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

/// `None` if the JSON text `raw` is neither a number nor a text for a missing one.
pub(super) fn read(raw: &str) -> Option<Number> {
    let raw = raw.trim();
    let text = match raw.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?.trim(),
        None => raw,
    };
    if text.is_empty() || text == "null" || text.eq_ignore_ascii_case("na") {
        return Some(Number(None));
    }
    // The decimal parser would accept underscores too.
    let plain = |byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    if text.len() > NUMBER_BYTES_MAX || !text.bytes().all(plain) {
        return None;
    }
    json::parse_decimal(text).map(|number| Number(Some(number)))
}

#[cfg(test)]
mod number_tests {
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
        for raw in [
            "false",
            "\"abc\"",
            "{}",
            "[1]",
            "\"1_000\"",
            "\"1,5\"",
            "\"",
            "--1",
            &long,
        ] {
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
