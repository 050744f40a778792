//! The calendar's part in the age of prices: the last official close, and the trading date that has
//! begun.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use crate::base::previous_close::{self, Known, PreviousClose, Said, SessionOfPrice};
use crate::base::{ClosingPrice, MarketDay, Quote, Source, clock};
use crate::market::calendar::MarketCalendar;

/// An index that no source has moved so long after trading began did not move: beyond the public
/// provider's usual delay.
const STOOD_AFTER: SignedDuration = SignedDuration::from_mins(20);

/// The last official close, while no newer session has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastClose {
    pub date: Date,
    /// When the close became final.
    pub at: Timestamp,
    /// From this moment on prices may be of the next session. Midnight if the calendar does not
    /// know the next session.
    pub until: Timestamp,
}

/// What is known of a quote's instrument besides the quote.
pub(crate) struct Seen<'a> {
    /// The quote that is shown.
    pub held: Option<&'a Quote>,
    /// Its stored close of a trading date.
    pub close_of: &'a dyn Fn(Date) -> Option<ClosingPrice>,
    /// Whether the same source says of its index that it did not move in its session; `None` if it
    /// says nothing of it, or the session is not over.
    pub index_stands: Option<bool>,
}

impl MarketCalendar {
    /// The last official close. `None` while a session is under way, its pre-open included.
    pub(crate) fn last_close(&self, now: Timestamp) -> Option<LastClose> {
        let today = clock::zoned(now).date();
        let date = match self.official_close(today) {
            Some(close) if close <= now => today,
            _ => self.previous_trading_date(today)?,
        };
        let next = self
            .next_trading_date(date)
            .and_then(|next| self.opens(next));
        let midnight = clock::instant(date.tomorrow().ok()?.at(0, 0, 0, 0));
        let until = next.unwrap_or(midnight);
        let at = self.official_close(date)?;
        (now < until).then_some(LastClose { date, at, until })
    }

    /// Keeps to what `quote`, received by `now`, says of its own session: the previous close that
    /// it may be compared with, and the day's range. Returns what the previous close is.
    ///
    /// On the morning of a trading date a source replaces its previous close by the last session's,
    /// at some time of its own, while its last price is still of that session. It empties its range
    /// then, or later. So what is sent beside a price of an earlier session is ignored, and that of
    /// the quote held before stays. An answer that was under way at midnight counts as one of the
    /// new date.
    pub(crate) fn keep_to_session(
        &self,
        quote: &mut Quote,
        seen: &Seen<'_>,
        now: Timestamp,
    ) -> PreviousClose {
        let date_of = |at: Timestamp| clock::zoned(at).date();
        let of = date_of(quote.as_of);
        let session = self.session_of(quote.as_of, now);
        let held = seen.held.filter(|held| date_of(held.as_of) == of);
        let before = self.previous_trading_date(of).and_then(seen.close_of);
        // The public provider's previous close may be a last trade.
        let is_exact = quote.source == Source::BrokerA;
        let before = before.map(|close| ClosingPrice {
            official: close.official && is_exact,
            ..close
        });
        let known = Known {
            shown: held.and_then(|held| held.previous_close),
            close: (seen.close_of)(of),
            close_before: before,
            index_stands: seen.index_stands,
        };
        let said = Said {
            last_price: quote.last_price,
            previous_close: quote.previous_close,
        };
        let judged = previous_close::previous_close(said, session, known);
        quote.previous_close = judged.price;
        if session == SessionOfPrice::Earlier {
            let day = held.and_then(|held| held.day);
            quote.day = day.filter(|day| day.contains(quote.last_price));
        }
        judged
    }

    /// Which session a price of `as_of` belongs to at `now`.
    pub(crate) fn session_of(&self, as_of: Timestamp, now: Timestamp) -> SessionOfPrice {
        let of = clock::zoned(as_of).date();
        let is_final = || self.official_close(of).is_none_or(|close| close <= now);
        match () {
            () if of < self.market_day(now).session => SessionOfPrice::Earlier,
            () if is_final() => SessionOfPrice::Over,
            () => SessionOfPrice::Running,
        }
    }

    /// The trading date and the last close that prices are compared with at `now`.
    pub(crate) fn market_day(&self, now: Timestamp) -> MarketDay {
        let today = clock::zoned(now).date();
        let status = self.status(now);
        // A date that nothing is known of may have a session of its own.
        let session = match self.is_trading_date(today) || !self.covers(today) {
            true => today,
            false => self.previous_trading_date(today).unwrap_or(today),
        };
        let last_close = self.last_close(now);
        let trading_date = last_close.map_or(session, |last| last.date);
        MarketDay {
            today,
            session,
            day: status.trading_date.filter(|_| status.calendar_known),
            last_close: last_close.map(|last| last.at),
            close_before_open: self.close_before_open(now),
            session_before: self.previous_trading_date(trading_date),
            stood_at: None,
        }
    }

    /// The time of the indices' last move, if none of them has moved on the trading date of `day`
    /// although a source was asked for them long enough after it began. `quotes` are those that are
    /// shown of the leading indices.
    pub(crate) fn stood_at(&self, day: &MarketDay, quotes: &[Quote]) -> Option<Timestamp> {
        let began = self.begins(day.trading_date())?;
        let is_before = |quote: &&Quote| clock::zoned(quote.as_of).date() < day.trading_date();
        if quotes.is_empty() || !quotes.iter().all(|quote| is_before(&quote)) {
            return None;
        }
        let is_known = quotes
            .iter()
            .any(|quote| quote.asked >= began + STOOD_AFTER);
        quotes
            .iter()
            .map(|quote| quote.as_of)
            .max()
            .filter(|_| is_known)
    }

    fn close_before_open(&self, now: Timestamp) -> Option<Timestamp> {
        let today = clock::zoned(now).date();
        let is_pre_open = self.opens(today)? <= now && now < self.begins(today)?;
        self.official_close(self.previous_trading_date(today)?)
            .filter(|_| is_pre_open)
    }
}

#[cfg(test)]
mod tests {
    use rust_decimal::Decimal;

    use super::*;
    use crate::base::{DayRange, testing};

    #[test]
    fn the_last_close_holds_until_the_next_pre_open() {
        let calendar = MarketCalendar::embedded();
        for (now, expected) in [
            // A Friday with a closing auction until 15:35; the Tuesday after it is a holiday.
            ("2026-11-20T08:59:59+05:30", Some("2026-11-19")),
            ("2026-11-20T09:00:00+05:30", None),
            ("2026-11-20T15:34:59+05:30", None),
            ("2026-11-20T15:35:00+05:30", Some("2026-11-20")),
            ("2026-11-22T12:00:00+05:30", Some("2026-11-20")),
            ("2026-11-24T12:00:00+05:30", Some("2026-11-23")),
            // A special session on a Sunday, of whose hours nothing is known.
            ("2026-11-08T12:00:00+05:30", Some("2026-11-06")),
            ("2026-11-08T23:00:00+05:30", None),
            ("2026-11-09T08:00:00+05:30", None),
            // One on a holiday.
            ("2025-10-21T13:29:59+05:30", Some("2025-10-20")),
            ("2025-10-21T14:44:59+05:30", None),
            ("2025-10-21T14:45:00+05:30", Some("2025-10-21")),
            ("2025-10-22T12:00:00+05:30", Some("2025-10-21")),
            // The auction of December 2026 ends five minutes later than those before.
            ("2026-12-07T15:39:59+05:30", None),
            ("2026-12-07T15:40:00+05:30", Some("2026-12-07")),
            // The last date for which the calendar knows the next one.
            ("2026-12-31T23:00:00+05:30", Some("2026-12-31")),
            ("2027-01-01T01:00:00+05:30", None),
        ] {
            let last = calendar.last_close(now.parse().unwrap());
            assert_eq!(last.map(|last| last.date.to_string()).as_deref(), expected, "{now}");
        }
    }

    #[test]
    fn a_price_of_an_earlier_session_keeps_its_own_previous_close_and_range() {
        let calendar = MarketCalendar::embedded();
        // The high is the previous close, so that each tells of which session it is.
        let range = |high: i64| DayRange::around(90.into(), Some(80.into()), Some(high.into()));
        let quote = |as_of: &str, asked: &str, close: Option<i64>| Quote {
            previous_close: close.map(Into::into),
            day: close.and_then(range),
            asked: format!("{asked}+05:30").parse().unwrap(),
            ..testing::quote("NSE:INFY", "90", format!("{as_of}+05:30").parse().unwrap())
        };
        let friday = quote("2026-11-20T15:30:00", "2026-11-20T16:00:00", Some(99));
        let thursday = quote("2026-11-19T15:30:00", "2026-11-19T16:00:00", Some(90));
        for (as_of, now, held, expected) in [
            // In its session the source's value counts, and after it the one that was shown.
            ("2026-11-20T11:00:00", "2026-11-20T11:00:01", Some(&thursday), Some(100)),
            ("2026-11-20T15:30:00", "2026-11-20T23:59:59", None, Some(100)),
            ("2026-11-20T15:30:00", "2026-11-22T12:00:00", None, Some(100)),
            // On Monday before the first price, Friday's value counts, or nothing.
            ("2026-11-20T15:30:00", "2026-11-23T00:00:00", Some(&friday), Some(99)),
            ("2026-11-20T15:30:00", "2026-11-23T09:14:59", Some(&friday), Some(99)),
            ("2026-11-20T15:30:00", "2026-11-23T00:00:00", Some(&thursday), None),
            ("2026-11-20T15:30:00", "2026-11-23T00:00:00", None, None),
            ("2026-11-23T09:15:00", "2026-11-23T09:15:01", Some(&friday), Some(100)),
            // A share that has not traded on Monday yet.
            ("2026-11-20T14:10:00", "2026-11-23T11:00:00", Some(&friday), Some(99)),
            // The Tuesday is a holiday.
            ("2026-11-23T15:30:00", "2026-11-24T12:00:00", None, Some(100)),
        ] {
            // It was asked for five seconds before, at midnight on the date before.
            let mut given = quote(as_of, now, Some(100));
            let now = given.asked;
            given.asked -= SignedDuration::from_secs(5);
            let seen = Seen {
                held,
                close_of: &|_| None,
                index_stands: None,
            };
            calendar.keep_to_session(&mut given, &seen, now);
            let expected = (expected.map(Decimal::from), expected.and_then(range));
            assert_eq!((given.previous_close, given.day), expected, "{as_of} received {now}");
        }
        // A price that was corrected after the session leaves its range.
        let mut given = quote("2026-11-20T15:30:00", "2026-11-23T09:00:00", Some(100));
        given.last_price = 120.into();
        let now = given.asked;
        let seen = Seen {
            held: Some(&friday),
            close_of: &|_| None,
            index_stands: None,
        };
        calendar.keep_to_session(&mut given, &seen, now);
        assert_eq!((given.previous_close, given.day), (Some(99.into()), None));
    }

    #[test]
    fn in_a_pre_open_the_close_before_it_is_known_and_what_is_said_is_of_the_session() {
        let calendar = MarketCalendar::embedded();
        for (now, close, date) in [
            ("2026-11-25T08:59:59+05:30", None, "2026-11-23"),
            // The day before is a holiday.
            ("2026-11-25T09:00:00+05:30", Some("2026-11-23T15:35:00+05:30"), "2026-11-25"),
            ("2026-11-25T09:14:59+05:30", Some("2026-11-23T15:35:00+05:30"), "2026-11-25"),
            ("2026-11-25T09:15:00+05:30", None, "2026-11-25"),
            ("2026-11-25T20:00:00+05:30", None, "2026-11-25"),
            ("2026-11-28T12:00:00+05:30", None, "2026-11-27"),
        ] {
            let day = calendar.market_day(now.parse().unwrap());
            let close = close.map(|close| close.parse::<Timestamp>().unwrap());
            assert_eq!(day.close_before_open, close, "{now}");
            assert_eq!(day.trading_date().to_string(), date, "{now}");
        }
    }

    #[test]
    fn indices_that_have_not_moved_long_after_trading_began_stand() {
        let calendar = MarketCalendar::embedded();
        let time = |text: &str| format!("{text}+05:30").parse::<Timestamp>().unwrap();
        let monday = "2026-11-16T15:35:00";
        for (now, quotes, expected) in [
            ("2026-11-17T09:34:59", &[(monday, "2026-11-17T09:34:59")][..], None),
            ("2026-11-17T09:35:00", &[(monday, "2026-11-17T09:35:00")], Some(monday)),
            ("2026-11-17T18:00:00", &[(monday, "2026-11-17T18:00:00")], Some(monday)),
            ("2026-11-17T23:59:59", &[(monday, "2026-11-17T09:40:00")], Some(monday)),
            // Nobody has been asked today.
            ("2026-11-17T11:00:00", &[(monday, "2026-11-16T23:00:00")], None),
            ("2026-11-17T11:00:00", &[], None),
            // One has moved.
            (
                "2026-11-17T11:00:00",
                &[
                    (monday, "2026-11-17T11:00:00"),
                    ("2026-11-17T09:15:01", "2026-11-17T11:00:00"),
                ],
                None,
            ),
            (
                "2026-11-17T11:00:00",
                &[
                    (monday, "2026-11-17T11:00:00"),
                    ("2026-11-16T15:29:59", "2026-11-17T11:00:00"),
                ],
                Some(monday),
            ),
            // The evening and the night after a session, and a Saturday.
            ("2026-11-16T20:00:00", &[(monday, "2026-11-16T20:00:00")], None),
            ("2026-11-17T08:59:59", &[(monday, "2026-11-17T08:59:59")], None),
            ("2026-11-21T12:00:00", &[("2026-11-20T15:35:00", "2026-11-21T12:00:00")], None),
        ] {
            let day = calendar.market_day(time(now));
            let quote = |(as_of, asked): &(&str, &str)| Quote {
                asked: time(asked),
                ..testing::quote("NSE:NIFTY 50", "90", time(as_of))
            };
            let quotes: Vec<Quote> = quotes.iter().map(quote).collect();
            assert_eq!(calendar.stood_at(&day, &quotes), expected.map(time), "{now} {quotes:?}");
        }
    }

    #[test]
    fn a_trading_date_has_begun_once_continuous_trading_has() {
        let calendar = MarketCalendar::embedded();
        for (now, session, day) in [
            ("2026-11-20T08:00:00+05:30", "2026-11-20", Some("2026-11-19")),
            ("2026-11-20T09:14:59+05:30", "2026-11-20", Some("2026-11-19")),
            ("2026-11-20T09:15:00+05:30", "2026-11-20", Some("2026-11-20")),
            ("2026-11-21T09:15:00+05:30", "2026-11-20", Some("2026-11-20")),
            ("2026-11-24T12:00:00+05:30", "2026-11-23", Some("2026-11-23")),
            ("2027-02-01T12:00:00+05:30", "2027-02-01", None),
        ] {
            let found = calendar.market_day(now.parse().unwrap());
            assert_eq!(found.session.to_string(), session, "{now}");
            assert_eq!(found.day.map(|day| day.to_string()).as_deref(), day, "{now}");
        }
    }
}
