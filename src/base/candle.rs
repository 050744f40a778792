//! A daily candle with integer prices in ten-thousandths of a rupee. That is exact for the prices
//! that exchanges and vendors send, and small enough to hold years of candles for every symbol.

use jiff::civil::Date;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

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
        let Self {
            open_e4,
            high_e4,
            low_e4,
            close_e4,
            volume,
            ..
        } = *self;
        if open_e4.min(high_e4).min(low_e4).min(close_e4) <= 0 {
            return Err(CandleFault::NotPositive);
        }
        if high_e4 < open_e4.max(close_e4) || low_e4 > open_e4.min(close_e4) {
            return Err(CandleFault::Crossed);
        }
        if volume <= 0 {
            Err(CandleFault::Untraded)
        } else {
            Ok(())
        }
    }
}

/// A price in ten-thousandths, rounded half away from zero; `None` if it does not fit.
pub fn price_e4(price: Decimal) -> Option<i64> {
    let scaled = price.checked_mul(Decimal::from(PRICE_E4))?;
    scaled
        .round_dp_with_strategy(0, rust_decimal::RoundingStrategy::MidpointAwayFromZero)
        .to_i64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::quote::DayRange;

    fn candle(open: i64, high: i64, low: i64, close: i64, volume: i64) -> Candle {
        let date = Date::constant(2026, 11, 20);
        Candle {
            date,
            open_e4: open,
            high_e4: high,
            low_e4: low,
            close_e4: close,
            volume,
        }
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
            let low = decimal(low);
            let high = decimal(high);
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
