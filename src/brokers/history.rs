//! What the sources of daily candles answer, and which days may be asked for. Pure.

use jiff::civil::Date;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::error::{BrokerError, BrokerErrorKind};
use crate::base::candle::price_e4;
use crate::base::{Candle, decimal};

/// Most days, first and last included, that one call may span: broker A refuses more, and the
/// public provider is asked for no more so that either can stand in for the other.
pub const SPAN_DAYS_MAX: i32 = 2_000;

/// Daily candles of one instrument as its source sent them: in its order, possible or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DailyCandles {
    pub candles: Vec<Candle>,
    /// Days of candles that could not be read (text in place of a number, a row cut short, one
    /// that is null), as far as their dates could.
    pub unreadable: Vec<Date>,
    /// The answer carried the simulator's mark.
    pub simulated: bool,
}

impl DailyCandles {
    /// First and last date that it has a candle for. What lies between need not be whole.
    pub fn covers(&self) -> Option<(Date, Date)> {
        let dates = || self.candles.iter().map(|candle| candle.date);
        dates().min().zip(dates().max())
    }
}

/// The days a call is about, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Days {
    pub(super) from: Date,
    pub(super) to: Date,
}

impl Days {
    /// # Errors
    /// [`BrokerErrorKind::Refused`] when they are in the wrong order or too many for one call.
    pub(super) fn checked(
        upstream: &'static str,
        from: Date,
        to: Date,
    ) -> Result<Self, BrokerError> {
        let days = (to - from).get_days();
        if (0..SPAN_DAYS_MAX).contains(&days) {
            return Ok(Self { from, to });
        }
        let detail = format!("candles of {days} days at once, from {from} to {to}");
        Err(BrokerError::new(upstream, BrokerErrorKind::Refused, detail))
    }

    pub(super) fn contains(&self, date: Date) -> bool {
        (self.from..=self.to).contains(&date)
    }
}

/// A candle from the wire's own digits of open, high, low, close and volume; `None` if one is not
/// a number or does not fit. `round` is applied to prices; one that keeps their order crosses none.
pub(super) fn candle(
    date: Date,
    values: [&str; 5],
    round: fn(Decimal) -> Decimal,
) -> Option<Candle> {
    let price = |text: &str| price_e4(round(decimal::parse(text)?));
    let [open, high, low, close, volume] = values;
    Some(Candle {
        date,
        open_e4: price(open)?,
        high_e4: price(high)?,
        low_e4: price(low)?,
        close_e4: price(close)?,
        volume: decimal::parse(volume)?.to_i64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_has_its_span() {
        let to = jiff::civil::date(2026, 11, 20);
        let back = |days: i32| to.checked_sub(jiff::Span::new().days(days)).unwrap();
        for (from, good) in [
            (to, true),
            (back(SPAN_DAYS_MAX - 1), true),
            (back(SPAN_DAYS_MAX), false),
            (to.tomorrow().unwrap(), false),
        ] {
            assert_eq!(Days::checked("test", from, to).is_ok(), good, "{from}");
        }
    }

    #[test]
    fn a_candle_of_digits() {
        let date = jiff::civil::date(2026, 11, 20);
        let of = |values, round: fn(Decimal) -> Decimal| candle(date, values, round);
        let exact = of(["1705", "1.7053e3", "801.78125", "802", "2499"], |price| price).unwrap();
        assert_eq!(
            (exact.open_e4, exact.high_e4, exact.low_e4),
            (17_050_000, 17_053_000, 8_017_813)
        );
        let noisy = ["2436.199951171875", "2436.2000001", "1", "1", "12.0"];
        let rounded = of(noisy, decimal::rounded).unwrap();
        assert_eq!(
            (rounded.open_e4, rounded.high_e4, rounded.volume),
            (24_362_000, 24_362_000, 12)
        );
        for bad in ["null", "NaN", "\"1\"", "", "1e99", "Infinity"] {
            assert_eq!(of(["1", "1", bad, "1", "1"], |price| price), None, "{bad}");
            assert_eq!(of(["1", "1", "1", "1", bad], |price| price), None, "{bad}");
        }
    }
}
