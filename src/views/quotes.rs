//! `GET /api/portfolio/live-prices`, and the quotes in `GET /api/index/stream`.

use crate::base;
use crate::base::{DayRange, Source, Symbol};
use crate::views::values;
use crate::views::values::{Day, Delay, Instant, Mark, Money, Percent, Simulated, documents};

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
        /// First price of that session, where the source says it.
        pub day_open?: Option<Money>,
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
            day_open: quote.day.and_then(DayRange::open).map(Money),
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
        /// The ISIN that was asked for, with `isins` alone.
        pub isin?: Option<&'a str>,
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
        /// others are left out of what follows. With `stale`, those whose price of `day` is stale.
        pub priced: usize,
        /// Present, and true, if no share has a fresh price: then the list is of stale ones.
        pub stale?: Mark,
        pub advances: usize,
        pub declines: usize,
        pub unchanged: usize,
        /// The shares that have gained most, in percent.
        pub gainers: Vec<Mover<'a>>,
        /// The shares that have lost most, in percent.
        pub losers: Vec<Mover<'a>>,
        /// Every share, in the order of the list that they are of. Only with `all=true`.
        pub list?: Option<Vec<ListedShare<'a>>>,
    }

    /// A share, whatever is known of its price.
    pub(crate) struct ListedShare<'a> {
        pub symbol: &'a Symbol,
        /// Name of the company, as the list of instruments has it; null if it has none.
        pub name: Option<&'a str>,
        /// Sector of the company, as the list of sectors has it; null if it has none.
        pub sector: Option<&'a str>,
        /// Null, as the three members after it, while no source has given a price.
        pub last_price: Option<Money>,
        /// Change from the previous close of the price's session; null if that is not known.
        pub change: Option<Money>,
        pub change_pct: Option<Percent>,
        pub as_of: Option<Instant>,
        pub delay_s?: Option<Delay>,
        pub(crate) simulated?: Simulated,
        /// Present, and true, if the price is stale.
        pub stale?: Mark,
    }

    /// A share with its quote.
    pub(crate) struct Mover<'a> {
        /// Name of the company, as the list of instruments has it; null if it has none.
        pub name: Option<&'a str>,
        #[serde(flatten)]
        pub quote: Quote<'a>,
    }
}

/// Documents that the edge joins from parts that were serialised when they were fetched or read.
/// Only the OpenAPI description uses these structs.
#[cfg(test)]
pub(crate) mod joined {
    use super::*;
    use crate::views::candles::{Candle, CandlesHead};

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
        quote.day = DayRange::around(
            quote.last_price,
            json::parse_decimal("1395.55"),
            json::parse_decimal("1421.755"),
        )
        .map(|day| day.opened(json::parse_decimal("1400.1")));
        assert_eq!(
            written(&quote, false),
            "{\"symbol\":\"NSE:M&M\",\"last_price\":1412.95,\"change\":23.3,\"change_pct\":1.68,\
             \"day_low\":1395.55,\"day_high\":1421.76,\"day_open\":1400.1,\
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
