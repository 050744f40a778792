//! A daily candle with integer prices in ten-thousandths of a rupee. That is exact for the prices
//! that exchanges and vendors send, and small enough to hold years of candles for every symbol.

use std::ops::{Index, IndexMut};

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::base::symbol::Symbol;
use crate::base::{json, words};

/// Price units in one rupee.
pub const PRICE_E4: i64 = 10_000;
/// Digits of a price after the point.
pub(crate) const PRICE_DIGITS: u32 = 4;

/// One complete trading day of one instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candle {
    pub date: Date,
    pub open_e4: i64,
    pub high_e4: i64,
    pub low_e4: i64,
    pub close_e4: i64,
    /// Shares.
    pub volume: i64,
}

/// Why a candle is rejected as implausible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CandleFault {
    #[error("a price is not positive")]
    NotPositive,
    #[error("the high is below another price, or the low above one")]
    Crossed,
    #[error("nothing was traded")]
    Untraded,
}

impl Candle {
    /// Checks that the candle is plausible.
    ///
    /// # Errors
    /// [`CandleFault`]. A day without trades is rejected too: pattern detection would take its four
    /// equal prices for a doji.
    pub(crate) fn check(&self) -> Result<(), CandleFault> {
        let Self { open_e4, high_e4, low_e4, close_e4, volume, .. } = *self;
        if open_e4.min(high_e4).min(low_e4).min(close_e4) <= 0 {
            return Err(CandleFault::NotPositive);
        }
        if high_e4 < open_e4.max(close_e4) || low_e4 > open_e4.min(close_e4) {
            return Err(CandleFault::Crossed);
        }
        if volume <= 0 { Err(CandleFault::Untraded) } else { Ok(()) }
    }
}

/// A price in ten-thousandths, rounded half away from zero; `None` if it does not fit.
pub(crate) fn price_e4(price: Decimal) -> Option<i64> {
    let scaled = price.checked_mul(Decimal::from(PRICE_E4))?;
    scaled.round_dp_with_strategy(0, rust_decimal::RoundingStrategy::MidpointAwayFromZero).to_i64()
}

// ---- Quote
//
// A quote: the price of one instrument, its time and its source.

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

/// The lowest and the highest price of a session so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayRange {
    low: Decimal,
    high: Decimal,
}

impl DayRange {
    /// The range that a source sent with `last_price`; `None` if an end is missing or not positive,
    /// or if the price is outside. Before the first trade sources send zeros, or nothing.
    pub fn around(
        last_price: Decimal,
        low: Option<Decimal>,
        high: Option<Decimal>,
    ) -> Option<Self> {
        let range = Self { low: low?, high: high? };
        (range.low > Decimal::ZERO && range.contains(last_price)).then_some(range)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn candle(open: i64, high: i64, low: i64, close: i64, volume: i64) -> Candle {
        let date = Date::constant(2026, 11, 20);
        Candle { date, open_e4: open, high_e4: high, low_e4: low, close_e4: close, volume }
    }

    #[test]
    fn implausible_candles_are_rejected_each_with_its_fault() {
        assert_eq!(candle(2, 4, 1, 3, 9).check(), Ok(()));
        assert_eq!(candle(2, 2, 2, 2, 9).check(), Ok(()));
        assert_eq!(candle(0, 4, 1, 3, 9).check(), Err(CandleFault::NotPositive));
        assert_eq!(candle(2, 2, 1, 3, 9).check(), Err(CandleFault::Crossed));
        assert_eq!(candle(2, 4, 3, 3, 9).check(), Err(CandleFault::Crossed));
        assert_eq!(candle(2, 4, 1, 3, 0).check(), Err(CandleFault::Untraded));
    }

    #[test]
    fn a_range_contains_its_price_or_is_none() {
        let decimal = |text: &str| text.parse::<Decimal>().unwrap();
        for (last, low, high, is_range) in [
            ("100", "99.95", "101", true),
            ("100", "100", "100", true),
            ("99.95", "99.95", "101", true),
            ("101", "99.95", "101", true),
            ("99.94", "99.95", "101", false),
            ("101.01", "99.95", "101", false),
            ("100", "101", "99.95", false),
            ("100", "0", "101", false),
            ("100", "-5", "101", false),
            ("100", "0", "0", false),
        ] {
            let (low, high) = (decimal(low), decimal(high));
            let range = DayRange::around(decimal(last), Some(low), Some(high));
            let ends = range.map(|range| (range.low(), range.high()));
            assert_eq!(ends, is_range.then_some((low, high)), "{last} in {low} to {high}");
            assert_eq!(DayRange::around(decimal(last), Some(low), None), None);
            assert_eq!(DayRange::around(decimal(last), None, Some(high)), None);
        }
    }

    #[test]
    fn prices_are_rounded_to_four_places_and_refused_out_of_range() {
        let scaled = |text: &str| price_e4(text.parse().unwrap());
        assert_eq!(scaled("801.78125"), Some(8_017_813));
        assert_eq!(scaled("299.8"), Some(2_998_000));
        assert_eq!(scaled("-0.00005"), Some(-1));
        assert_eq!(scaled("79228162514264337593543950335"), None);
    }
}
