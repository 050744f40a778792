//! Which trading date's close is due to be revalued, and which prices are its closing prices. Pure.
//!
//! A price is a date's closing price if its own time lies on that date, after the end of continuous
//! trading. A share that did not trade until the end has an older time; its last trade is its
//! close, as at the exchange, and is taken where the same feed's index has reached its close: a
//! feed that stands still since the afternoon proves nothing. A price of an earlier date is no
//! close of this one. From the first phase of the next trading date on nothing is valued any more:
//! prices and holdings may be that date's.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use crate::base::{ClosingPrice, MarketDay, Quote, Source, ist};
use crate::market::{LastClose, MarketCalendar};
use crate::store::PriceOfClose;
use crate::warmers::quotes::pace::close_margin;

/// Some stamp the last price with the last second of trading.
const STAMP_SLACK: SignedDuration = SignedDuration::from_secs(60);

/// A close that can be revalued now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub date: Date,
    /// When the official close stood.
    pub close: Timestamp,
    continuous_end: Timestamp,
    /// Prices may be the next session's from here on.
    pub until: Timestamp,
    /// The date of that session; the last date there is where the calendar does not know it.
    pub next_session: Date,
}

impl Due {
    /// The latest trading date, once its close has settled and until the next one begins. Where the
    /// calendar does not know the next one, until midnight.
    pub fn at(calendar: &MarketCalendar, now: Timestamp) -> Option<Self> {
        let LastClose { date, at, until } = calendar.last_close(now)?;
        let continuous_end = calendar.continuous_end(date)?;
        let next_session = calendar.next_trading_date(date).unwrap_or(Date::MAX);
        let has_settled = now.duration_since(at)
            >= close_margin(Source::BrokerA).min(close_margin(Source::Public));
        has_settled.then_some(Self { date, close: at, continuous_end, until, next_session })
    }

    /// Where prices stand once this close does.
    pub fn market_day(&self) -> MarketDay {
        let Self { date, close, .. } = *self;
        MarketDay {
            today: date,
            session: date,
            day: Some(date),
            last_close: Some(close),
            close_before_open: None,
        }
    }

    /// Whether `source` can be expected to say the close.
    pub fn has_settled(&self, source: Source, now: Timestamp) -> bool {
        now < self.until && now.duration_since(self.close) >= close_margin(source)
    }

    /// The closing price in `quote`, if it is one. `witness`: what the same feed says of an index,
    /// which alone tells of a quote without a time of its own.
    pub fn closing_price(&self, quote: &Quote, witness: Option<&Quote>) -> Option<PriceOfClose> {
        let is_last_trade =
            || self.is_of_date(quote) && witness.is_some_and(|index| self.is_after_trading(index));
        let believed = self.has_settled(quote.source, quote.asked)
            && (quote.timed && self.is_after_trading(quote) || is_last_trade());
        believed.then(|| {
            let close = ClosingPrice {
                price: quote.last_price,
                // On the next session's date it may be this close already.
                previous_close: quote
                    .previous_close
                    .filter(|_| ist::zoned(quote.asked).date() < self.next_session),
                // Some stamp it with the time of their answer.
                as_of_ms: quote.as_of.min(self.close).as_millisecond(),
            };
            (quote.symbol.clone(), close)
        })
    }

    fn is_of_date(&self, quote: &Quote) -> bool {
        ist::zoned(quote.as_of).date() == self.date
    }

    fn is_after_trading(&self, quote: &Quote) -> bool {
        self.is_of_date(quote) && self.continuous_end.duration_since(quote.as_of) <= STAMP_SLACK
    }
}

#[cfg(test)]
mod tests {
    use rust_decimal::Decimal;

    use super::*;
    use crate::base::Symbol;

    fn due(now: &str) -> Option<Due> {
        Due::at(&MarketCalendar::embedded(), now.parse().unwrap())
    }

    fn date_due(now: &str) -> Option<String> {
        due(now).map(|due| due.date.to_string())
    }

    #[test]
    fn a_date_is_due_from_its_settled_close_until_the_next_pre_open() {
        for (now, expected) in [
            // A Friday with a closing auction until 15:35.
            ("2026-11-20T08:59:59+05:30", Some("2026-11-19")),
            ("2026-11-20T09:00:00+05:30", None),
            ("2026-11-20T15:44:59+05:30", None),
            ("2026-11-20T15:45:00+05:30", Some("2026-11-20")),
            ("2026-11-20T23:59:59+05:30", Some("2026-11-20")),
            // The weekend, until Monday's pre-open.
            ("2026-11-22T12:00:00+05:30", Some("2026-11-20")),
            ("2026-11-23T08:59:59+05:30", Some("2026-11-20")),
            ("2026-11-23T09:00:00+05:30", None),
            // No auction before August 2026: the close stands at 15:30.
            ("2026-07-30T15:39:59+05:30", None),
            ("2026-07-30T15:40:00+05:30", Some("2026-07-30")),
            // The last date that the calendar knows anything after.
            ("2026-12-31T15:45:00+05:30", Some("2026-12-31")),
            ("2027-01-01T01:00:00+05:30", None),
        ] {
            assert_eq!(date_due(now).as_deref(), expected, "{now}");
        }
    }

    #[test]
    fn a_muhurat_session_is_a_close_of_its_own_and_a_holiday_is_none() {
        let calendar = MarketCalendar::embedded();
        let sunday: Date = "2026-11-08".parse().unwrap();
        let close = calendar.official_close(sunday).unwrap();
        let settled = close.checked_add(close_margin(Source::BrokerA)).unwrap();
        assert_eq!(Due::at(&calendar, settled).unwrap().date, sunday);
        let opens = calendar.opens(sunday).unwrap();
        let before = opens.checked_sub(SignedDuration::from_secs(1)).unwrap();
        assert_eq!(Due::at(&calendar, before).unwrap().date.to_string(), "2026-11-06");
        assert_eq!(Due::at(&calendar, opens), None);
        // Republic Day, a Monday.
        assert_eq!(date_due("2026-01-26T18:00:00+05:30").as_deref(), Some("2026-01-23"));
    }

    fn quote(source: Source, as_of: &str, received: &str) -> Quote {
        Quote {
            symbol: Symbol::parse("NSE:INFY").unwrap(),
            last_price: Decimal::ONE_HUNDRED,
            previous_close: None,
            as_of: as_of.parse().unwrap(),
            timed: true,
            asked: received.parse().unwrap(),
            delay_s: None,
            source,
            simulated: false,
        }
    }

    #[test]
    fn only_prices_of_the_date_are_its_closing_prices() {
        let friday = due("2026-11-20T18:00:00+05:30").unwrap();
        let evening = "2026-11-20T18:00:00+05:30";
        for (as_of, received, witness_as_of, expected) in [
            ("2026-11-20T15:35:00+05:30", evening, None, true),
            ("2026-11-20T15:29:59+05:30", evening, None, true),
            // An illiquid share, believed only beside an index that has closed.
            ("2026-11-20T14:50:00+05:30", evening, None, false),
            ("2026-11-20T14:50:00+05:30", evening, Some("2026-11-20T15:14:59+05:30"), false),
            ("2026-11-20T14:50:00+05:30", evening, Some("2026-11-20T15:35:00+05:30"), true),
            ("2026-11-19T15:35:00+05:30", evening, Some("2026-11-20T15:35:00+05:30"), false),
            // Received before the close had settled, and after the next session began.
            ("2026-11-20T15:35:00+05:30", "2026-11-20T15:44:00+05:30", None, false),
            ("2026-11-20T15:35:00+05:30", "2026-11-23T08:59:00+05:30", None, true),
            ("2026-11-20T15:35:00+05:30", "2026-11-23T09:00:00+05:30", None, false),
            ("2026-11-23T09:00:01+05:30", "2026-11-23T09:00:02+05:30", None, false),
            // A weekend price is no close of Friday.
            ("2026-11-21T12:00:00+05:30", "2026-11-21T12:00:00+05:30", None, false),
        ] {
            let witness = witness_as_of.map(|at| quote(Source::BrokerA, at, received));
            let got =
                friday.closing_price(&quote(Source::BrokerA, as_of, received), witness.as_ref());
            assert_eq!(got.is_some(), expected, "{as_of} {received} {witness_as_of:?}");
        }
    }

    #[test]
    fn the_late_provider_is_given_more_time() {
        let friday = due("2026-11-20T18:00:00+05:30").unwrap();
        for (now, broker_a, public) in [
            ("2026-11-20T15:44:59+05:30", false, false),
            ("2026-11-20T15:45:00+05:30", true, false),
            ("2026-11-20T16:05:00+05:30", true, true),
        ] {
            let now = now.parse().unwrap();
            assert_eq!(friday.has_settled(Source::BrokerA, now), broker_a, "{now}");
            assert_eq!(friday.has_settled(Source::Public, now), public, "{now}");
        }
    }
}
