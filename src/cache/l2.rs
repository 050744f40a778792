//! L2, the second cache level: quotes and instrument lists that survive a restart.
//!
//! [`SecondLevel`] is a narrow trait over keys and bytes. The embedded file implements it, and so
//! does a server that several nodes share. Every call may block, so only lane threads and start-up
//! code call it, never the edge.

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::base::{DayRange, Quote, Source, Symbol, words};
use crate::cache::l1::{L1, Vouched};
use crate::views::health::CacheBackend;

words! {
    /// The kind of a record. Keys are distinct within a kind. Records are stored under these words,
    /// which never change.
    #[derive(Hash)]
    pub enum Kind {
        /// A quote, by symbol ([`encode`]).
        Quote = "quote",
        /// The instrument list of a day, in the form that its owner writes.
        Instruments = "instruments",
    }
}

/// Longest key. A symbol is shorter.
pub(crate) const KEY_BYTES_MAX: usize = 64;

/// Largest record: an instruments file, whose download has the same limit.
pub const RECORD_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The bytes of a record and when they were stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub bytes: Vec<u8>,
    /// Wall time of the store, milliseconds since the Unix epoch.
    pub stored_ms: i64,
}

/// Why L2 could not load or store. Never fatal: the service runs on L1 alone.
#[derive(Debug, thiserror::Error)]
pub enum L2Error {
    #[error("second cache level: {detail}")]
    Unavailable { detail: String },
    /// The shared server refuses the command. `nodes::valkey` logs each refusal once.
    #[error("second cache level: the server refuses: {detail}")]
    Refused { detail: String },
    #[error("second cache level: {what} of {bytes} bytes is over the limit of {bytes_max}")]
    TooLarge { what: &'static str, bytes: usize, bytes_max: usize },
    /// The level is shared, and a newer leader writes it now.
    #[error("second cache level: a newer leader stores its records")]
    Deposed,
}

/// Causes for which a value on a shared server is distrusted.
pub const DISTRUSTED: [&str; 3] = ["forged", "unreadable", "replayed"];

/// Counters that health and metrics show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L2Stats {
    pub backend: CacheBackend,
    /// Look-ups that found a record.
    pub hits: u64,
    /// Look-ups and loads of a whole kind that found nothing.
    pub misses: u64,
    pub errors: u64,
    /// Records dropped because of the bound on records.
    pub evictions: u64,
    /// Files that could not be read and were replaced by an empty one.
    pub set_aside: u64,
    /// Records of all kinds, as of the last change that this process made.
    pub entries: u64,
    /// Size on disk, or in the server's memory, as of that change.
    pub bytes: u64,
    /// Distrusted values of all kinds on a shared server, by cause as in [`DISTRUSTED`].
    pub distrusted: [u64; DISTRUSTED.len()],
}

impl L2Stats {
    /// Counts a look-up that found this many records.
    pub(crate) fn count_found(&mut self, records: usize) {
        match records {
            0 => self.misses += 1,
            records => self.hits += records as u64,
        }
    }
}

/// Keys and bytes that survive a restart.
pub trait SecondLevel: Send + Sync {
    /// One record.
    ///
    /// # Errors
    /// [`L2Error::Unavailable`].
    fn load(&self, kind: Kind, key: &str) -> Result<Option<Record>, L2Error>;

    /// Every record of a kind with its key, in no particular order.
    ///
    /// # Errors
    /// [`L2Error::Unavailable`].
    fn load_all(&self, kind: Kind) -> Result<Vec<(String, Record)>, L2Error>;

    /// Stores all `items` or none, replacing records with the same keys. Over the bound of a kind,
    /// the records stored longest ago are dropped.
    ///
    /// # Errors
    /// [`L2Error::Unavailable`], [`L2Error::Deposed`], and [`L2Error::TooLarge`] for a key or a
    /// record.
    fn store(&self, kind: Kind, items: &[(String, Vec<u8>)], now_ms: i64) -> Result<(), L2Error>;

    /// Counters since the start. Does not block.
    fn stats(&self) -> L2Stats;
}

/// Checks the limits that every implementation has to keep.
///
/// # Errors
/// [`L2Error::TooLarge`].
pub(crate) fn check_sizes(items: &[(String, Vec<u8>)]) -> Result<(), L2Error> {
    for (key, bytes) in items {
        for (what, bytes, bytes_max) in
            [("a key", key.len(), KEY_BYTES_MAX), ("a record", bytes.len(), RECORD_BYTES_MAX)]
        {
            if bytes > bytes_max {
                return Err(L2Error::TooLarge { what, bytes, bytes_max });
            }
        }
    }
    Ok(())
}

/// Used when no L2 could be opened: it holds nothing and never fails.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Absent;

impl SecondLevel for Absent {
    fn load(&self, _kind: Kind, _key: &str) -> Result<Option<Record>, L2Error> {
        Ok(None)
    }

    fn load_all(&self, _kind: Kind) -> Result<Vec<(String, Record)>, L2Error> {
        Ok(Vec::new())
    }

    fn store(
        &self,
        _kind: Kind,
        _items: &[(String, Vec<u8>)],
        _now_ms: i64,
    ) -> Result<(), L2Error> {
        Ok(())
    }

    fn stats(&self) -> L2Stats {
        L2Stats { backend: CacheBackend::None, ..L2Stats::default() }
    }
}
pub(crate) mod sqlite;

// ---- Codec
//
// The stored form of quotes in L2: compact JSON with decimals as strings, so that nothing is
// rounded.
//
// Pure. A record that is read back is checked like outside input: if it makes no plausible quote,
// it is dropped.

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    last_price: Decimal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_close: Option<Decimal>,
    /// Low and high of the session. Earlier versions do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    day: Option<(Decimal, Decimal)>,
    as_of: String,
    /// Earlier versions stored the time of the reply under this name.
    #[serde(alias = "received")]
    asked: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_s: Option<u32>,
    source: &'a str,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
}

/// Encodes a quote. The key of the record is the symbol.
pub(crate) fn encode(quote: &Quote) -> Vec<u8> {
    let stored = Stored {
        last_price: quote.last_price,
        previous_close: quote.previous_close,
        day: quote.day.map(|day| (day.low(), day.high())),
        as_of: quote.as_of.to_string(),
        asked: quote.asked.to_string(),
        delay_s: quote.delay_s,
        source: quote.source.as_str(),
        simulated: quote.simulated,
    };
    sonic_rs::to_vec(&stored).expect("strings, decimals and a flag always serialise")
}

/// Decodes the quote stored under `key`; `None` if the record makes no plausible one.
pub(crate) fn decode(key: &str, bytes: &[u8]) -> Option<Quote> {
    let stored: Stored<'_> = sonic_rs::from_slice(bytes).ok()?;
    let source = Source::ALL.into_iter().find(|source| source.as_str() == stored.source)?;
    let positive = |price: &Decimal| *price > Decimal::ZERO;
    let around = |(low, high)| DayRange::around(stored.last_price, Some(low), Some(high));
    Some(Quote {
        symbol: Symbol::parse(key)?,
        last_price: Some(stored.last_price).filter(positive)?,
        previous_close: stored.previous_close.filter(positive),
        day: stored.day.and_then(around),
        as_of: stored.as_of.parse::<Timestamp>().ok()?,
        timed: true,
        asked: stored.asked.parse::<Timestamp>().ok()?,
        delay_s: stored.delay_s,
        source,
        simulated: stored.simulated,
    })
}

/// The records of these quotes, for [`Kind::Quote`].
pub fn records(quotes: &[Quote]) -> Vec<(String, Vec<u8>)> {
    quotes.iter().map(|quote| (quote.symbol.to_string(), encode(quote))).collect()
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
        let Some(quote) = decode(&key, &record.bytes) else { continue };
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
mod codec_tests {
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
        let text = String::from_utf8(encode(&Quote { simulated: false, ..quote() })).unwrap();
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
        for (from, to) in [("2390", "2436.2"), ("2450.05", "2436"), ("2390", "0"), ("2390", "-1")] {
            let read = decode("NSE:M&M", good.replace(from, to).as_bytes());
            assert_eq!(read, Some(Quote { day: None, ..quote() }), "{to}");
        }
        let zero_close = good.replace("\"2400.10\"", "\"0\"");
        assert_eq!(decode("NSE:M&M", zero_close.as_bytes()).unwrap().previous_close, None);
    }

    #[test]
    fn a_record_of_an_earlier_version_has_no_range_and_the_other_way_round() {
        let earlier = "{\"last_price\":\"2436.199951171875\",\"previous_close\":\"2400.10\",\
             \"as_of\":\"2026-11-20T10:00:00.123456789Z\",\"asked\":\"2026-11-20T10:00:01Z\",\
             \"delay_s\":900,\"source\":\"public\",\"simulated\":true}";
        let without = Quote { day: None, ..quote() };
        assert_eq!(decode("NSE:M&M", earlier.as_bytes()), Some(without.clone()));
        assert_eq!(encode(&without), earlier.as_bytes());
        // An earlier version ignores a member that it does not know, as this one does.
        let later = String::from_utf8(encode(&quote())).unwrap().replace("day", "later");
        assert_eq!(decode("NSE:M&M", later.as_bytes()), Some(without));
    }

    proptest! {
        #[test]
        fn every_quote_is_decoded_as_it_was_encoded(
            mantissa in 1i64..i64::MAX, scale in 0u32..19, close in proptest::option::of(1i64..),
            as_of_ns in 0i64.., above: u32, simulated: bool, broker_a: bool,
        ) {
            let last_price = Decimal::new(mantissa, scale);
            let high = last_price + Decimal::from(above);
            let given = Quote {
                last_price,
                day: DayRange::around(last_price, Some(last_price / Decimal::TWO), Some(high)),
                previous_close: close.map(|mantissa| Decimal::new(mantissa, scale)),
                as_of: Timestamp::from_nanosecond(i128::from(as_of_ns)).unwrap(),
                source: if broker_a { Source::BrokerA } else { Source::Public },
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
