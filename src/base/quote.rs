//! A quote: the price of one instrument, its time and its source.

use std::ops::{Index, IndexMut};

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use crate::base::symbol::Symbol;
use crate::base::{json, words};

words! {
    /// Where a price comes from; the preferred source first.
    #[derive(Hash)]
    pub enum Source else Public {
        /// Broker A's quote calls, in real time.
        BrokerA = "broker_a",
        /// The public provider (Yahoo Finance), delayed by up to a quarter of an hour.
        Public = "public",
    }
}

/// A value for each source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BySource<T>(pub [T; Source::ALL.len()]);

impl<T> Index<Source> for BySource<T> {
    type Output = T;

    fn index(&self, source: Source) -> &T {
        &self.0[source as usize]
    }
}

impl<T> IndexMut<Source> for BySource<T> {
    fn index_mut(&mut self, source: Source) -> &mut T {
        &mut self.0[source as usize]
    }
}

/// The lowest and the highest price of a session so far, and the first one where it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayRange {
    low: Decimal,
    high: Decimal,
    open: Option<Decimal>,
}

impl DayRange {
    /// The range that a source sent with `last_price`; `None` if an end is missing or not positive,
    /// or if the price is outside. Before the first trade sources send zeros, or nothing.
    pub fn around(
        last_price: Decimal,
        low: Option<Decimal>,
        high: Option<Decimal>,
    ) -> Option<Self> {
        let range = Self {
            low: low?,
            high: high?,
            open: None,
        };
        (range.low > Decimal::ZERO && range.contains(last_price)).then_some(range)
    }

    /// The same with the first price of the session; without one if that is not in the range.
    #[must_use]
    pub fn opened(self, open: Option<Decimal>) -> Self {
        Self {
            open: open.filter(|open| self.contains(*open)),
            ..self
        }
    }

    pub(crate) fn open(self) -> Option<Decimal> {
        self.open
    }

    pub(crate) fn contains(self, price: Decimal) -> bool {
        self.low <= price && price <= self.high
    }

    pub(crate) fn low(self) -> Decimal {
        self.low
    }

    pub(crate) fn high(self) -> Decimal {
        self.high
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
    /// Range of the session that the price belongs to; `None` if the source sent none that contains
    /// the price.
    pub day: Option<DayRange>,
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
    /// Whether the upstream marked its response as simulated.
    pub simulated: bool,
}

impl Quote {
    /// Furthest a price's time may be ahead of this node's clock, for the difference between two
    /// machines' clocks. A price from the future would keep out every true one until its time has
    /// come.
    pub(crate) const AHEAD_MAX: SignedDuration = SignedDuration::from_secs(5);

    /// Whether the time `as_of` is in the future, whatever its source.
    pub(crate) fn is_ahead(as_of: Timestamp, now: Timestamp) -> bool {
        as_of.duration_since(now) > Self::AHEAD_MAX
    }

    /// `last_price - previous_close`, unrounded.
    pub(crate) fn change(&self) -> Option<Decimal> {
        self.last_price.checked_sub(self.previous_close?)
    }

    /// Percent change from the previous close, unrounded.
    pub(crate) fn change_pct(&self) -> Option<Decimal> {
        json::percent_change(self.last_price, self.previous_close?)
    }
}
