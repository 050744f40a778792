//! The newest closes that the store has of each symbol, kept in memory, and the judgement of a
//! quote's previous close by them.
//!
//! Jobs of the lanes note what they read or store. The scheduler's thread reads. The lock is held
//! for a look-up, never over a wait. Bounded by the symbols whose closes and candles are stored.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::Mutex;
use rust_decimal::Decimal;

use crate::base::candle::PRICE_DIGITS;
use crate::base::{Candle, ClosingPrice, Symbol};
use crate::market::MarketCalendar;

/// Dates kept of a symbol: a session's own close, that of the session before it, and on a holiday
/// that the calendar does not know one more.
pub(crate) const DATES_KEPT: usize = 3;

/// The newest closes by symbol.
#[derive(Debug, Default)]
pub(crate) struct KnownCloses(Mutex<HashMap<Symbol, Vec<(Date, ClosingPrice)>>>);

impl KnownCloses {
    /// Notes closing prices of a date. They replace the closes of candles.
    pub(crate) fn note<'a>(
        &self,
        date: Date,
        closes: impl IntoIterator<Item = (&'a Symbol, ClosingPrice)>,
    ) {
        let mut known = self.0.lock();
        for (symbol, close) in closes {
            keep(known.entry(symbol.clone()).or_default(), date, close, true);
        }
    }

    /// Notes the closes of a symbol's candles, which come oldest first. Their times are those of
    /// the official closes; nothing is noted of a date that has none.
    pub(crate) fn note_candles(
        &self,
        calendar: &MarketCalendar,
        symbol: &Symbol,
        candles: &[Candle],
    ) {
        let mut known = self.0.lock();
        let closes = known.entry(symbol.clone()).or_default();
        // One more for the previous close of the oldest.
        let newest = &candles[candles.len().saturating_sub(DATES_KEPT + 1)..];
        for pair in newest.windows(2) {
            let Some(closed) = calendar.official_close(pair[1].date) else {
                continue;
            };
            keep(closes, pair[1].date, of_candle(&pair[1], Some(pair[0].close_e4), closed), false);
        }
    }

    /// The close of `symbol` on `date`.
    pub(crate) fn of(&self, symbol: &Symbol, date: Date) -> Option<ClosingPrice> {
        let known = self.0.lock();
        let closes = known.get(symbol)?;
        closes
            .iter()
            .find(|(of, _)| *of == date)
            .map(|(_, close)| *close)
    }
}

fn keep(closes: &mut Vec<(Date, ClosingPrice)>, date: Date, close: ClosingPrice, replaces: bool) {
    match closes.iter().position(|(of, _)| *of == date) {
        Some(at) if replaces => closes[at].1 = close,
        Some(_) => {}
        None => {
            closes.push((date, close));
            closes.sort_unstable_by_key(|(of, _)| std::cmp::Reverse(*of));
            closes.truncate(DATES_KEPT);
        }
    }
}

/// A candle's close. It may be a last trade.
fn of_candle(candle: &Candle, before_e4: Option<i64>, closed: Timestamp) -> ClosingPrice {
    let price = |price_e4: i64| Decimal::new(price_e4, PRICE_DIGITS);
    ClosingPrice {
        price: price(candle.close_e4),
        previous_close: before_e4.map(price),
        as_of_ms: closed.as_millisecond(),
        official: false,
        base_ratio: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candle(day: i8, close_e4: i64) -> Candle {
        let date = jiff::civil::date(2026, 11, day);
        Candle {
            date,
            open_e4: 1,
            high_e4: 1,
            low_e4: 1,
            close_e4,
            volume: 1,
        }
    }

    #[test]
    fn the_newest_closes_are_kept_and_official_ones_win() {
        let known = KnownCloses::default();
        let calendar = MarketCalendar::embedded();
        let infy = Symbol::parse("NSE:INFY").unwrap();
        let candles: Vec<Candle> = (16..=20)
            .map(|day| candle(day, i64::from(day) * 10_000))
            .collect();
        known.note_candles(&calendar, &infy, &candles);
        let of = |day| known.of(&infy, jiff::civil::date(2026, 11, day));
        assert_eq!((of(16), of(17)), (None, None));
        let thursday = of(19).unwrap();
        assert_eq!((thursday.price, thursday.previous_close), (19.into(), Some(18.into())));
        let closed = calendar.official_close(candles[3].date).unwrap();
        assert_eq!((thursday.official, thursday.as_of_ms), (false, closed.as_millisecond()));
        let official = ClosingPrice {
            price: 21.into(),
            official: true,
            ..thursday
        };
        known.note(candles[4].date, [(&infy, official)]);
        known.note_candles(&calendar, &infy, &candles);
        assert_eq!(of(20), Some(official));
        known.note_candles(&calendar, &infy, &[candle(20, 1), candle(23, 2)]);
        assert_eq!((of(18), of(23).map(|close| close.official)), (None, Some(false)));
    }
}
