//! `GET /api/portfolio/live-prices`, and the quotes in `GET /api/index/stream`.

use serde::Serialize;

use crate::base;
use crate::base::{Source, Symbol};
use crate::views::values;
use crate::views::values::{Day, Delay, Instant, Money, Percent, Simulated};

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quote<'a> {
    pub symbol: &'a Symbol,
    pub last_price: Money,
    /// Change from the previous close of the price's session; null if that is not known.
    pub change: Option<Money>,
    pub change_pct: Option<Percent>,
    /// Time of the price. It never goes back for a symbol.
    pub as_of: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Delay>,
    pub source: Source,
    #[serde(skip_serializing_if = "Simulated::is_absent")]
    pub simulated: Simulated,
    /// The price is older than its source's interval and delay allow, or its feed has failed for
    /// longer.
    pub stale: bool,
}

impl<'a> Quote<'a> {
    fn of(quote: &'a base::Quote, stale: bool) -> Self {
        Self {
            symbol: &quote.symbol,
            last_price: Money(quote.last_price),
            change: quote.change().map(Money),
            change_pct: quote.change_pct().map(Percent),
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
    let mut out = Vec::with_capacity(192);
    values::write(&mut out, &Quote::of(quote, true));
    out.truncate(out.len() - closing(true).len());
    out.into_boxed_slice()
}

/// The end of an object that [`open_object`] began.
pub(crate) fn closing(stale: bool) -> &'static [u8] {
    if stale { b"true}" } else { b"false}" }
}

// The document that the edge joins from quotes that were serialised when they were fetched. Only
// the OpenAPI description uses this struct.
#[cfg(test)]
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub(crate) struct Quotes<'a> {
    /// In the order of the request, each symbol once.
    #[schemars(extend("maxItems" = 50))]
    pub quotes: Vec<Quote<'a>>,
    /// Well-formed symbols without a quote.
    #[schemars(extend("maxItems" = 50))]
    pub unavailable: Vec<&'a Symbol>,
}

// The data of a stream's event `quotes`, which is joined in the same way.
#[cfg(test)]
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub(crate) struct QuotesEvent<'a> {
    /// In the order of the request, each symbol once: all in the first event, then those that have
    /// changed.
    #[schemars(extend("maxItems" = 50))]
    pub quotes: Vec<Quote<'a>>,
    /// Well-formed symbols without a quote.
    #[schemars(extend("maxItems" = 50))]
    pub unavailable: Vec<&'a Symbol>,
    /// Symbols that are being fetched. A later event has their quotes or names them in
    /// `unavailable`.
    #[schemars(extend("maxItems" = 50))]
    pub pending: Vec<&'a Symbol>,
}

// ---- Search
//
// `GET /api/market/search`.

/// The instruments that fit a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SearchResults<'a> {
    /// The day that the list of instruments describes.
    pub as_of: Day,
    /// Number of instruments listed.
    pub count: usize,
    /// First those whose ticker begins with the query, by ticker; then those by name; then those by
    /// ISIN.
    #[cfg_attr(test, schemars(extend("maxItems" = 20)))]
    pub instruments: Vec<FoundInstrument<'a>>,
}

/// A share or an index.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FoundInstrument<'a> {
    pub symbol: Symbol,
    /// Name of the company or index, as the list has it; null if it has none.
    pub name: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json;

    fn written(quote: &base::Quote, stale: bool) -> String {
        let mut bytes = open_object(quote).into_vec();
        bytes.extend_from_slice(closing(stale));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_quote_has_the_documented_members_in_order() {
        let mut quote = base::Quote {
            symbol: Symbol::parse("NSE:M&M").unwrap(),
            last_price: json::parse_decimal("1412.95").unwrap(),
            previous_close: json::parse_decimal("1389.65"),
            as_of: "2026-11-20T10:00:00Z".parse().unwrap(),
            timed: true,
            asked: "2026-11-20T10:00:01Z".parse().unwrap(),
            delay_s: None,
            source: Source::BrokerA,
            simulated: false,
        };
        assert_eq!(
            written(&quote, false),
            "{\"symbol\":\"NSE:M&M\",\"last_price\":1412.95,\"change\":23.3,\"change_pct\":1.68,\
             \"as_of\":\"2026-11-20T15:30:00+05:30\",\"source\":\"broker_a\",\"stale\":false}"
        );
        quote.previous_close = None;
        quote.simulated = true;
        quote.source = Source::Public;
        quote.delay_s = Some(901);
        assert_eq!(
            written(&quote, true),
            "{\"symbol\":\"NSE:M&M\",\"last_price\":1412.95,\"change\":null,\"change_pct\":null,\
             \"as_of\":\"2026-11-20T15:30:00+05:30\",\"delay_s\":901,\"source\":\"public\",\
             \"simulated\":true,\
             \"stale\":true}"
        );
    }
}
