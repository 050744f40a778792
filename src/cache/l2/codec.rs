//! The stored form of quotes in L2: compact JSON with decimals as strings, so that nothing is
//! rounded.
//!
//! Pure. A record that is read back is checked like outside input: if it makes no plausible quote,
//! it is dropped.

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::base::{DayRange, Quote, Source, Symbol};
use crate::cache::l1::{L1, Vouched};
use crate::cache::l2::{Kind, L2Error, SecondLevel};

/// A quote without its symbol, as it is written in L2 and in the messages of nodes.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stored<'a> {
    last_price: Decimal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_close: Option<Decimal>,
    /// Low and high of the session. Earlier versions do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    day: Option<(Decimal, Decimal)>,
    /// First price of the session. Earlier versions do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<Decimal>,
    as_of: String,
    /// Whether the source sent no time and `as_of` is an estimate. Earlier versions do not say it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    untimed: bool,
    /// Earlier versions stored the time of the reply under this name.
    #[serde(alias = "received")]
    asked: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_s: Option<u32>,
    source: &'a str,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
}

impl Stored<'_> {
    pub(crate) fn of(quote: &Quote) -> Self {
        Self {
            last_price: quote.last_price,
            previous_close: quote.previous_close,
            day: quote.day.map(|day| (day.low(), day.high())),
            open: quote.day.and_then(DayRange::open),
            as_of: quote.as_of.to_string(),
            untimed: !quote.timed,
            asked: quote.asked.to_string(),
            delay_s: quote.delay_s,
            source: quote.source.as_str(),
            simulated: quote.simulated,
        }
    }

    /// The quote of the symbol `key`; `None` if this makes no plausible one.
    pub(crate) fn quote(&self, key: &str) -> Option<Quote> {
        let source = Source::ALL
            .into_iter()
            .find(|source| source.as_str() == self.source)?;
        let positive = |price: &Decimal| *price > Decimal::ZERO;
        let around = |(low, high)| {
            let range = DayRange::around(self.last_price, Some(low), Some(high));
            range.map(|range| range.opened(self.open))
        };
        Some(Quote {
            symbol: Symbol::parse(key)?,
            last_price: Some(self.last_price).filter(positive)?,
            previous_close: self.previous_close.filter(positive),
            day: self.day.and_then(around),
            as_of: self.as_of.parse::<Timestamp>().ok()?,
            timed: !self.untimed,
            asked: self.asked.parse::<Timestamp>().ok()?,
            delay_s: self.delay_s,
            source,
            simulated: self.simulated,
        })
    }
}

/// Encodes a quote. The key of the record is the symbol.
pub(crate) fn encode(quote: &Quote) -> Vec<u8> {
    let stored = Stored::of(quote);
    sonic_rs::to_vec(&stored).expect("strings, decimals and a flag always serialise")
}

/// Decodes the quote stored under `key`; `None` if the record makes no plausible one.
pub(crate) fn decode(key: &str, bytes: &[u8]) -> Option<Quote> {
    sonic_rs::from_slice::<Stored<'_>>(bytes).ok()?.quote(key)
}

/// The records of these quotes, for [`Kind::Quote`].
pub fn records(quotes: &[Quote]) -> Vec<(String, Vec<u8>)> {
    quotes
        .iter()
        .map(|quote| (quote.symbol.to_string(), encode(quote)))
        .collect()
}

/// Number of stored quotes that were restored into L1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub quotes: usize,
    /// Quotes not restored because their times are ahead of this machine's clock.
    pub of_the_future: usize,
}

/// Restores every stored quote into `l1`, marked stale until it is refreshed.
///
/// A quote ahead of the clock is dropped: until the clock reached its time it would keep out every
/// newer one. This happens when the clock was set back, as the demo's is at each start. Blocks.
///
/// # Errors
/// [`L2Error`].
pub fn restore_quotes(
    l1: &L1,
    l2: &dyn SecondLevel,
    now: Timestamp,
    now_mono_ms: u64,
) -> Result<Restored, L2Error> {
    let mut restored = Restored::default();
    for (key, record) in l2.load_all(Kind::Quote)? {
        let Some(quote) = decode(&key, &record.bytes) else {
            continue;
        };
        if l1.refuses_ahead(&quote, now) {
            restored.of_the_future += 1;
            continue;
        }
        l1.insert(quote, Vouched::NEVER, now_mono_ms);
        restored.quotes += 1;
    }
    Ok(restored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{json, testing};
    use proptest::prelude::*;

    const PRICE: &str = "2436.199951171875";

    fn quote() -> Quote {
        Quote {
            previous_close: json::parse_decimal("2400.10"),
            day: DayRange::around(
                json::parse_decimal(PRICE).unwrap(),
                json::parse_decimal("2390"),
                json::parse_decimal("2450.05"),
            ),
            asked: "2026-11-20T10:00:01Z".parse().unwrap(),
            delay_s: Some(900),
            source: Source::Public,
            simulated: true,
            ..testing::quote("NSE:M&M", PRICE, "2026-11-20T10:00:00.123456789Z".parse().unwrap())
        }
    }

    #[test]
    fn a_quote_is_stored_as_compact_json() {
        let text = String::from_utf8(encode(&Quote {
            simulated: false,
            ..quote()
        }))
        .unwrap();
        assert_eq!(
            text,
            "{\"last_price\":\"2436.199951171875\",\"previous_close\":\"2400.10\",\
             \"day\":[\"2390\",\"2450.05\"],\
             \"as_of\":\"2026-11-20T10:00:00.123456789Z\",\"asked\":\"2026-11-20T10:00:01Z\",\
             \"delay_s\":900,\"source\":\"public\"}"
        );
    }

    #[test]
    fn an_implausible_record_decodes_to_none() {
        let good = String::from_utf8(encode(&quote())).unwrap();
        assert_eq!(decode("NSE:M&M", good.as_bytes()), Some(quote()));
        assert_eq!(decode("nse:m&m", good.as_bytes()), None);
        for (from, to) in [
            ("\"2436.199951171875\"", "\"0\""),
            ("\"2436.199951171875\"", "\"-1\""),
            ("\"2436.199951171875\"", "\"x\""),
            ("\"public\"", "\"rumour\""),
            ("2026-11-20T10", "2026-13-20T10"),
            ("}", ""),
        ] {
            assert!(good.contains(from));
            assert_eq!(decode("NSE:M&M", good.replace(from, to).as_bytes()), None, "{to}");
        }
        for (from, to) in [
            ("2390", "2436.2"),
            ("2450.05", "2436"),
            ("2390", "0"),
            ("2390", "-1"),
        ] {
            let read = decode("NSE:M&M", good.replace(from, to).as_bytes());
            assert_eq!(
                read,
                Some(Quote {
                    day: None,
                    ..quote()
                }),
                "{to}"
            );
        }
        let zero_close = good.replace("\"2400.10\"", "\"0\"");
        assert_eq!(
            decode("NSE:M&M", zero_close.as_bytes())
                .unwrap()
                .previous_close,
            None
        );
    }

    #[test]
    fn a_record_of_an_earlier_version_has_no_range_and_the_other_way_round() {
        let earlier = "{\"last_price\":\"2436.199951171875\",\"previous_close\":\"2400.10\",\
             \"as_of\":\"2026-11-20T10:00:00.123456789Z\",\"asked\":\"2026-11-20T10:00:01Z\",\
             \"delay_s\":900,\"source\":\"public\",\"simulated\":true}";
        let without = Quote {
            day: None,
            ..quote()
        };
        assert_eq!(decode("NSE:M&M", earlier.as_bytes()), Some(without.clone()));
        assert_eq!(encode(&without), earlier.as_bytes());
        // An earlier version ignores a member that it does not know, as this one does.
        let later = String::from_utf8(encode(&quote()))
            .unwrap()
            .replace("day", "later");
        assert_eq!(decode("NSE:M&M", later.as_bytes()), Some(without));
    }

    proptest! {
        #[test]
        fn every_quote_is_decoded_as_it_was_encoded(
            mantissa in 1i64..i64::MAX, scale in 0u32..19, close in proptest::option::of(1i64..),
            as_of_ns in 0i64.., above: u32, timed: bool, simulated: bool, broker_a: bool,
        ) {
            let last_price = Decimal::new(mantissa, scale);
            let high = last_price + Decimal::from(above);
            let given = Quote {
                last_price,
                day: DayRange::around(last_price, Some(last_price / Decimal::TWO), Some(high)),
                previous_close: close.map(|mantissa| Decimal::new(mantissa, scale)),
                as_of: Timestamp::from_nanosecond(i128::from(as_of_ns)).unwrap(),
                source: if broker_a { Source::BrokerA } else { Source::Public },
                timed,
                simulated,
                ..quote()
            };
            let back = decode("NSE:M&M", &encode(&given)).unwrap();
            prop_assert_eq!(back.last_price.scale(), given.last_price.scale());
            prop_assert_eq!(back, given);
        }

        #[test]
        fn one_damaged_byte_is_refused_or_is_another_quote(
            at in any::<prop::sample::Index>(), byte: u8,
        ) {
            let mut bytes = encode(&quote());
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Some(read) = decode("NSE:M&M", &bytes) {
                prop_assert_eq!(decode("NSE:M&M", &encode(&read)), Some(read));
            }
        }
    }
}
