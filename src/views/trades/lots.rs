//! Documents of open lots.

use crate::views::values::{Day, Instant, Money, Quantity, Simulated, documents};

documents! {
    /// Shares that came into an account together, or what is left of them.
    pub(crate) struct LotView<'a> {
        pub account: &'a str,
        /// The newest ISIN of the security.
        pub isin: Option<&'a str>,
        pub symbol: Option<&'a str>,
        /// Date of the purchase, by which cost and term go.
        pub acquired_on: Day,
        /// When they came into this account, by which the first in is told.
        pub entered: Day,
        pub how: &'a str,
        pub quantity: Quantity,
        /// Of all of them together, with the charges that are known, without tax on the trade.
        pub cost: Option<Money>,
        pub charges: Option<Money>,
        /// `short` or `long`, for a sale on the day that was asked for.
        pub term: &'a str,
        /// The first date of sale on which a gain is long-term.
        pub long_from: Day,
        pub days_to_long: u32,
        /// `trade` or `correction`.
        pub source: &'a str,
        /// Of one share, as the portfolio has it.
        pub price: Option<Money>,
        pub value: Option<Money>,
        pub unrealised: Option<Money>,
        /// Time of the price.
        pub as_of: Option<Instant>,
        /// Whether the price is older than the last session before today.
        pub stale: Option<bool>,
        pub simulated?: Simulated,
    }

    /// A page of lots, by account and security, the first in first.
    pub(crate) struct Lots<'a> {
        pub lots: Vec<LotView<'a>>,
        pub next_cursor: Option<String>,
    }
}
