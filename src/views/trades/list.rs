//! Documents of trades.

use crate::views::trades::imports::FiguresView;
use crate::views::values::{Day, Exact, Quantity, documents};

documents! {
    /// Charges that a file states, in rupees. None is computed.
    pub(crate) struct ChargesView {
        pub brokerage: Option<Exact>,
        /// Securities transaction tax.
        pub stt: Option<Exact>,
        pub stamp_duty: Option<Exact>,
        pub other: Option<Exact>,
    }

    /// A line that says that the trade was made.
    pub(crate) struct TradeSource<'a> {
        pub import_id: i64,
        pub format: &'a str,
        pub line: u32,
    }

    /// One execution.
    pub(crate) struct TradeView<'a> {
        pub id: String,
        pub account: &'a str,
        pub date: Day,
        /// In India, `HH:MM:SS`.
        pub time: Option<String>,
        pub symbol: &'a str,
        pub isin: Option<&'a str>,
        pub exchange: &'a str,
        pub segment: &'a str,
        pub series: Option<&'a str>,
        /// `buy` or `sell`.
        pub side: &'a str,
        /// `null` where two rows of the trade differ.
        pub quantity: Option<Quantity>,
        /// Of one unit, in rupees, as it was given. `null` where two rows of the trade differ.
        pub price: Option<Exact>,
        pub product: Option<&'a str>,
        /// Bought in an auction, for a delivery that failed.
        pub auction: bool,
        pub trade_id: Option<&'a str>,
        pub order_id: Option<&'a str>,
        pub charges: ChargesView,
        /// `mtf`, `charges_unclear`, `no_session`, `check` or `conflict`.
        pub mark: Option<&'a str>,
        /// Of a conflict: the row of the lower price, then quantity.
        pub first?: Option<FiguresView>,
        pub second?: Option<FiguresView>,
        pub sources: Vec<TradeSource<'a>>,
    }

    /// A page of trades, newest first.
    pub(crate) struct Trades<'a> {
        pub trades: Vec<TradeView<'a>>,
        pub next_cursor: Option<String>,
    }
}
