//! A quote: the price of one instrument, its time and its source.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use super::decimal;
use super::symbol::Symbol;

/// Where a price comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Broker A's quote calls, in real time.
    BrokerA,
    /// The public provider (Yahoo Finance), delayed by up to a quarter of an hour.
    Public,
}

impl Source {
    /// Both sources, the preferred one first.
    pub const ALL: [Self; 2] = [Self::BrokerA, Self::Public];

    /// The text in API documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BrokerA => "broker_a",
            Self::Public => "public",
        }
    }
}

/// A quote. Feeds return only quotes whose `last_price` is positive.
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    pub symbol: Symbol,
    /// Rupees, or index points for an index; exactly the source's digits.
    pub last_price: Decimal,
    /// Official close of the previous session; `None` if the source sent none that is positive.
    pub previous_close: Option<Decimal>,
    /// Exchange time of the price. If the source sends none, this is `asked`, until the time of the
    /// same feed's index quotes allows a better estimate.
    pub as_of: Timestamp,
    /// Whether `as_of` was sent by the source.
    pub timed: bool,
    /// When the request for this quote was sent. However late the response arrived, the price is
    /// not known to be newer than this.
    pub asked: Timestamp,
    /// The source's usual delay behind the exchange, as measured when the quote arrived; `None` for
    /// a real-time source.
    pub delay_s: Option<u32>,
    pub source: Source,
    /// The upstream marked its response as simulated.
    pub simulated: bool,
}

impl Quote {
    /// How far ahead of this node's clock a price may be: clocks of two machines may differ by so
    /// much. A price of the future would keep out every true one until its time has come.
    pub const AHEAD_MAX: SignedDuration = SignedDuration::from_secs(5);

    /// Whether a price of `as_of` is of the future, wherever it comes from.
    pub fn is_ahead(as_of: Timestamp, now: Timestamp) -> bool {
        as_of.duration_since(now) > Self::AHEAD_MAX
    }

    /// `last_price - previous_close`, unrounded.
    pub fn change(&self) -> Option<Decimal> {
        self.last_price.checked_sub(self.previous_close?)
    }

    /// Percent change from the previous close, unrounded.
    pub fn change_pct(&self) -> Option<Decimal> {
        decimal::percent_change(self.last_price, self.previous_close?)
    }
}
