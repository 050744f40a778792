//! `GET /api/portfolio/live-prices`, and the quotes in `GET /api/index/stream`.

use rust_decimal::Decimal;

use crate::base::candle::PRICE_DIGITS;
use crate::base::{self, Source, Symbol};
use crate::http::document::variants::content_tag;
use crate::views::values;
use crate::views::values::{
    Day, Delay, Exact, Instant, Mark, Money, Percent, Simulated, documents,
};

documents! {
    pub(crate) struct Quote<'a> {
        pub symbol: &'a Symbol,
        pub last_price: Money,
        /// Change from the previous close of the price's session; null if that is not known.
        pub change: Option<Money>,
        pub change_pct: Option<Percent>,
        /// Lowest price of the price's session so far; null if that is not known.
        pub day_low: Option<Money>,
        /// Highest price of the price's session so far; null if that is not known.
        pub day_high: Option<Money>,
        /// Time of the price. It never goes back for a symbol.
        pub as_of: Instant,
        pub delay_s?: Option<Delay>,
        pub source: Source,
        pub(crate) simulated?: Simulated,
        /// The price is older than its source's interval and delay allow, or its feed has failed
        /// for longer.
        pub stale: bool,
    }
}

impl<'a> Quote<'a> {
    pub(crate) fn of(quote: &'a base::Quote, stale: bool) -> Self {
        Self {
            symbol: &quote.symbol,
            last_price: Money(quote.last_price),
            change: quote.change().map(Money),
            change_pct: quote.change_pct().map(Percent),
            day_low: quote.day.map(|day| Money(day.low())),
            day_high: quote.day.map(|day| Money(day.high())),
            as_of: Instant(quote.as_of),
            delay_s: quote.delay_s.map(Delay),
            source: quote.source,
            simulated: Simulated(quote.simulated),
            stale,
        }
    }
}

/// A quote as JSON, up to and including `"stale":`. The thread that fetches a quote writes this
/// once. Whether the quote is stale depends on the time of reading, so the reader appends
/// [`closing`].
pub(crate) fn open_object(quote: &base::Quote) -> Box<[u8]> {
    let mut out = Vec::with_capacity(256);
    values::write(&mut out, &Quote::of(quote, true));
    out.truncate(out.len() - closing(true).len());
    out.into_boxed_slice()
}

/// The end of an object that [`open_object`] began.
pub(crate) fn closing(stale: bool) -> &'static [u8] {
    if stale { b"true}" } else { b"false}" }
}

// ---- Search
//
// `GET /api/market/search`.

documents! {
    /// The instruments that fit a query.
    pub(crate) struct SearchResults<'a> {
        /// The day that the list of instruments describes.
        pub as_of: Day,
        /// Number of instruments listed.
        pub count: usize,
        /// First those whose ticker begins with the query, by ticker; then those by name; then
        /// those by ISIN.
        pub instruments: Vec<FoundInstrument<'a>>,
    }

    /// A share or an index.
    pub(crate) struct FoundInstrument<'a> {
        pub symbol: Symbol,
        /// Name of the company or index, as the list has it; null if it has none.
        pub name: Option<&'a str>,
    }
}

// ---- Movers
//
// `GET /api/market/movers`.

documents! {
    /// How the shares move of which signals are made.
    pub(crate) struct Movers<'a> {
        /// The latest trading date that has begun; null where the calendar does not know it.
        pub day: Option<Day>,
        /// Number of shares: those of the NIFTY 50, or of the operator's list.
        pub shares: usize,
        /// Shares that have a price of `day` which is not stale, and a known previous close. The
        /// others are left out of what follows.
        pub priced: usize,
        pub advances: usize,
        pub declines: usize,
        pub unchanged: usize,
        /// The shares that have gained most, in percent.
        pub gainers: Vec<Mover<'a>>,
        /// The shares that have lost most, in percent.
        pub losers: Vec<Mover<'a>>,
    }

    /// A share with its quote.
    pub(crate) struct Mover<'a> {
        /// Name of the company, as the list of instruments has it; null if it has none.
        pub name: Option<&'a str>,
        #[serde(flatten)]
        pub quote: Quote<'a>,
    }
}

// ---- Candles
//
// `GET /api/market/candles`.

documents! {
    /// A finished trading day of a symbol.
    #[derive(Copy)]
    pub(crate) struct Candle {
        pub date: Day,
        pub open: Exact,
        pub high: Exact,
        pub low: Exact,
        pub close: Exact,
        /// Shares traded.
        pub volume: i64,
    }

    /// What all candles of a symbol have in common.
    pub(crate) struct CandlesHead<'a> {
        pub symbol: &'a Symbol,
        pub source: Source,
        pub(crate) simulated?: Simulated,
        /// Present, and true, while no signals are made of the candles: prices look as if they were
        /// not adjusted for a split or another corporate action, all are to be fetched again, or
        /// more than the last session is missing.
        pub suspect?: Mark,
    }
}

impl Candle {
    fn of(candle: &base::Candle) -> Self {
        let price = |price_e4: i64| Exact(Decimal::new(price_e4, PRICE_DIGITS));
        Self {
            date: Day(candle.date),
            open: price(candle.open_e4),
            high: price(candle.high_e4),
            low: price(candle.low_e4),
            close: price(candle.close_e4),
            volume: candle.volume,
        }
    }
}

/// A symbol's candles as JSON, from which a request copies the newest.
#[derive(Debug)]
pub(crate) struct CandlesDocument {
    /// The object up to the member `count`.
    head: Vec<u8>,
    /// The candles, separated by commas.
    rows: Vec<u8>,
    /// Where each candle begins in `rows`.
    starts: Vec<usize>,
    /// A hash of head and rows.
    tag: String,
}

impl CandlesDocument {
    /// `candles` come oldest first. Takes about a millisecond for 600 of them, so it belongs on an
    /// OS thread.
    pub(crate) fn of(head: &CandlesHead<'_>, candles: &[base::Candle]) -> Self {
        let mut head = values::to_vec(head);
        // Further members follow.
        head.pop();
        let (mut rows, mut starts) = (Vec::new(), Vec::with_capacity(candles.len()));
        for candle in candles {
            if !rows.is_empty() {
                rows.push(b',');
            }
            starts.push(rows.len());
            values::write(&mut rows, &Candle::of(candle));
        }
        let tag = content_tag(&[head.as_slice(), &rows].concat());
        Self { head, rows, starts, tag }
    }

    /// How many candles the document with the newest `max` has.
    pub(crate) fn count(&self, max: usize) -> usize {
        max.min(self.starts.len())
    }

    /// Names the content of the document with the newest `max` candles.
    pub(crate) fn tag(&self, max: usize) -> String {
        format!("{}-{}", self.tag, self.count(max))
    }

    /// Memory of the newest `max` candles.
    pub(crate) fn bytes(&self, max: usize) -> usize {
        self.rows(max).len()
    }

    fn rows(&self, max: usize) -> &[u8] {
        let from = self.starts.len() - self.count(max);
        self.starts.get(from).map_or(&[], |start| &self.rows[*start..])
    }

    /// Appends the document with the newest `max` candles.
    pub(crate) fn write(&self, max: usize, out: &mut Vec<u8>) {
        let (count, rows) = (self.count(max), self.rows(max));
        out.extend_from_slice(&self.head);
        out.extend_from_slice(format!(",\"count\":{count},\"candles\":[").as_bytes());
        out.extend_from_slice(rows);
        out.extend_from_slice(b"]}");
    }
}

/// Documents that the edge joins from parts that were serialised when they were fetched or read.
/// Only the OpenAPI description uses these structs.
#[cfg(test)]
pub(crate) mod joined {
    use super::*;

    documents! {
        pub(crate) struct Quotes<'a> {
            /// In the order of the request, each symbol once.
            pub quotes: Vec<Quote<'a>>,
            /// Well-formed symbols without a quote.
            pub unavailable: Vec<&'a Symbol>,
        }

        // The data of a stream's event `quotes`.
        pub(crate) struct QuotesEvent<'a> {
            /// In the order of the request, each symbol once: all in the first event, then those
            /// that have changed.
            pub quotes: Vec<Quote<'a>>,
            /// Well-formed symbols without a quote.
            pub unavailable: Vec<&'a Symbol>,
            /// Symbols that are being fetched. A later event has their quotes or names them in
            /// `unavailable`.
            pub pending: Vec<&'a Symbol>,
        }

        pub(crate) struct Candles<'a> {
            #[serde(flatten)]
            pub head: CandlesHead<'a>,
            /// Number of candles listed.
            pub count: usize,
            /// Oldest first.
            pub candles: Vec<Candle>,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{json, testing};

    fn written(quote: &base::Quote, stale: bool) -> String {
        let mut bytes = open_object(quote).into_vec();
        bytes.extend_from_slice(closing(stale));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_quote_has_the_documented_members_in_order() {
        let mut quote =
            testing::quote("NSE:M&M", "1412.95", "2026-11-20T10:00:00Z".parse().unwrap());
        quote.asked = "2026-11-20T10:00:01Z".parse().unwrap();
        quote.previous_close = json::parse_decimal("1389.65");
        quote.day = base::DayRange::around(
            quote.last_price,
            json::parse_decimal("1395.55"),
            json::parse_decimal("1421.755"),
        );
        assert_eq!(
            written(&quote, false),
            "{\"symbol\":\"NSE:M&M\",\"last_price\":1412.95,\"change\":23.3,\"change_pct\":1.68,\
             \"day_low\":1395.55,\"day_high\":1421.76,\
             \"as_of\":\"2026-11-20T15:30:00+05:30\",\"source\":\"broker_a\",\"stale\":false}"
        );
        quote.previous_close = None;
        quote.day = None;
        quote.simulated = true;
        quote.source = Source::Public;
        quote.delay_s = Some(901);
        assert_eq!(
            written(&quote, true),
            "{\"symbol\":\"NSE:M&M\",\"last_price\":1412.95,\"change\":null,\"change_pct\":null,\
             \"day_low\":null,\"day_high\":null,\
             \"as_of\":\"2026-11-20T15:30:00+05:30\",\"delay_s\":901,\"source\":\"public\",\
             \"simulated\":true,\
             \"stale\":true}"
        );
    }
}

#[cfg(test)]
mod candles_tests {
    use super::joined::Candles;
    use super::*;

    fn candle(day: i8, close_e4: i64) -> base::Candle {
        let date = jiff::civil::date(2026, 11, day);
        base::Candle {
            date,
            open_e4: 1,
            high_e4: 15_141_500,
            low_e4: 10_000,
            close_e4,
            volume: 1 << 40,
        }
    }

    #[test]
    fn a_joined_document_is_the_described_one() {
        let symbol = Symbol::parse("NSE:M&M").unwrap();
        let head = CandlesHead {
            symbol: &symbol,
            source: Source::Public,
            simulated: Simulated(true),
            suspect: Mark(false),
        };
        let candles: Vec<_> = (1..=5).map(|day| candle(day, i64::from(day) * 15_005)).collect();
        let document = CandlesDocument::of(&head, &candles);
        let mut tags = Vec::new();
        for max in [0, 1, 3, 5, 600] {
            let mut joined = Vec::new();
            document.write(max, &mut joined);
            tags.push(document.tag(max));
            let shown = &candles[5 - max.min(5)..];
            let whole = Candles {
                head: head.clone(),
                count: shown.len(),
                candles: shown.iter().map(Candle::of).collect(),
            };
            let expected = values::to_vec(&whole);
            assert_eq!(String::from_utf8(joined).unwrap(), String::from_utf8(expected).unwrap());
        }
        assert_eq!(tags[3], tags[4], "the same bytes");
        tags.dedup();
        assert_eq!(tags.len(), 4);
    }

    #[test]
    fn prices_have_every_digit_and_no_other() {
        let written =
            String::from_utf8(values::to_vec(&Candle::of(&candle(2, 14_129_505)))).unwrap();
        let expected = concat!(
            r#"{"date":"2026-11-02","open":0.0001,"high":1514.15,"low":1,"close":1412.9505,"#,
            r#""volume":1099511627776}"#
        );
        assert_eq!(written, expected);
    }
}
