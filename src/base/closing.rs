//! Closing prices, and where prices stand between one close and the next.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

/// The official closing price of one instrument on one trading date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosingPrice {
    pub price: Decimal,
    /// Of the trading date before; `None` where the feed did not say it.
    pub previous_close: Option<Decimal>,
    /// The price's own time, Unix milliseconds: the close, or the last trade before it.
    pub as_of_ms: i64,
}

/// What the market's calendar says about the age of prices at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketDay {
    /// The instant's date in IST.
    pub today: Date,
    /// The latest trading date up to and including today, whether or not it has begun; today where
    /// the calendar does not know.
    pub session: Date,
    /// The latest trading date that has begun; `None` where the calendar does not know.
    pub day: Option<Date>,
    /// The last official close, as long as no price can be of a later date.
    pub last_close: Option<Timestamp>,
}
