//! Documents of returns.

use crate::views::values::{Money, Percent, documents};

documents! {
    /// What the same flows would have become in an index, without dividends.
    pub(crate) struct BenchmarkView<'a> {
        pub name: &'a str,
        pub xirr: Option<f64>,
        pub absolute_pct: Option<f64>,
        /// `no_index_price` if a close is missing.
        pub reason: Option<&'a str>,
    }

    /// What is in no flow.
    pub(crate) struct NotInReturnsView<'a> {
        pub account: Option<&'a str>,
        pub isin: Option<&'a str>,
        pub symbol: Option<&'a str>,
        pub reason: &'a str,
    }

    /// One security that is held.
    pub(crate) struct HoldingReturnView<'a> {
        pub isin: Option<&'a str>,
        pub symbol: Option<&'a str>,
        pub xirr: Option<f64>,
        pub xirr_reason: Option<&'a str>,
        /// Where there are several rates, of which none is the return.
        pub roots: Option<&'a [f64]>,
        pub absolute_pct: Option<Percent>,
        pub purchases: Option<Money>,
        pub sales: Option<Money>,
        pub value: Option<Money>,
    }

    /// What a person's shares returned. Trades of a day, derivatives, dividends and what is not
    /// proved are in no flow.
    pub(crate) struct ReturnsView<'a> {
        /// The rate of a year at which all flows are worth nothing together: 0.1 is ten percent.
        pub xirr: Option<f64>,
        pub xirr_reason: Option<&'a str>,
        /// Where there are several rates, of which none is the return.
        pub roots: Option<&'a [f64]>,
        /// In percent of what was paid.
        pub absolute_pct: Option<Percent>,
        pub purchases: Option<Money>,
        pub sales: Option<Money>,
        pub value: Option<Money>,
        pub benchmark: BenchmarkView<'a>,
        pub left_out: Vec<NotInReturnsView<'a>>,
        pub holdings: Vec<HoldingReturnView<'a>>,
    }
}
