//! Official closing prices, and the trading dates by which the age of prices is judged.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::ist;

/// The official closing price of one instrument on one trading date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosingPrice {
    pub price: Decimal,
    /// Closing price of the trading date before; `None` if the feed did not name it.
    pub previous_close: Option<Decimal>,
    /// Time of the price, Unix milliseconds: the close, or the last trade before the close.
    pub as_of_ms: i64,
}

/// What the market calendar says about one instant, as far as the age of prices depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketDay {
    /// Date of the instant in IST.
    pub today: Date,
    /// The latest trading date up to and including today, even if today's session has not opened
    /// yet. `today` if the calendar does not cover the date.
    pub session: Date,
    /// The latest trading date whose session has opened; `None` if the calendar does not cover the
    /// date.
    pub day: Option<Date>,
    /// Instant of the last official close; `None` once prices of a later date are possible.
    pub last_close: Option<Timestamp>,
    /// In a pre-open: instant of the official close before it. Until its matching, and of many
    /// shares until trading begins, the last price still is that close.
    pub close_before_open: Option<Timestamp>,
}

impl MarketDay {
    /// The trading date to which what a broker says now belongs: that of the last close while it
    /// stands, and the session's from its pre-open on.
    pub fn trading_date(&self) -> Date {
        self.last_close.map_or(self.session, |close| ist::zoned(close).date())
    }
}
