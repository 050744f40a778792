//! A price of one instrument, with where and when it comes from.

use jiff::Timestamp;
use rust_decimal::Decimal;

use super::decimal;
use super::symbol::Symbol;

/// Who said the price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Broker A's quote calls: real time.
    BrokerA,
    /// The public secondary provider: delayed by up to a quarter of an hour.
    Public,
}

impl Source {
    /// Both, the preferred one first.
    pub const ALL: [Self; 2] = [Self::BrokerA, Self::Public];

    /// The word that clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BrokerA => "broker_a",
            Self::Public => "public",
        }
    }
}

/// A plausible price. Feeds only hand out quotes whose `last_price` is positive.
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    pub symbol: Symbol,
    /// Rupees (index points for an index), exactly as the wire had it.
    pub last_price: Decimal,
    /// Official close of the previous session, where the source gave a positive one.
    pub previous_close: Option<Decimal>,
    /// The price's own time, exchange time. Where the source gives none, the time at which it was
    /// asked, until the feed's index tells better.
    pub as_of: Timestamp,
    /// Whether the source itself said `as_of`.
    pub timed: bool,
    /// When the call that brought it went out. However late the answer came, it says nothing of
    /// what was later.
    pub asked: Timestamp,
    /// How far its source runs behind the exchange by its nature, as measured when the quote came;
    /// `None` where it does not.
    pub delay_s: Option<u32>,
    pub source: Source,
    /// The upstream marked its answer as simulated.
    pub simulated: bool,
}

impl Quote {
    /// `last_price - previous_close`, unrounded.
    pub fn change(&self) -> Option<Decimal> {
        self.last_price.checked_sub(self.previous_close?)
    }

    /// Percent change from the previous close, unrounded.
    pub fn change_pct(&self) -> Option<Decimal> {
        decimal::percent_change(self.last_price, self.previous_close?)
    }
}
