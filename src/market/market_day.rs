//! What the calendar says about the age of prices: which official close is the last, and which
//! trading date has begun.

use jiff::Timestamp;
use jiff::civil::Date;

use super::MarketCalendar;
use crate::base::{MarketDay, ist};

/// The last official close, while no newer session has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastClose {
    pub date: Date,
    /// When the close became final.
    pub at: Timestamp,
    /// From this moment on prices may be of the next session. Midnight if the calendar does not
    /// know the next session.
    pub until: Timestamp,
}

impl MarketCalendar {
    /// The last official close. `None` while a session is under way, its pre-open included.
    pub fn last_close(&self, now: Timestamp) -> Option<LastClose> {
        let today = ist::zoned(now).date();
        let date = match self.official_close(today) {
            Some(close) if close <= now => today,
            _ => self.previous_trading_date(today)?,
        };
        let next = self.next_trading_date(date).and_then(|next| self.opens(next));
        let midnight = ist::instant(date.tomorrow().ok()?.at(0, 0, 0, 0));
        let until = next.unwrap_or(midnight);
        let at = self.official_close(date)?;
        (now < until).then_some(LastClose { date, at, until })
    }

    /// The trading date and the last close that prices are compared with at `now`.
    pub fn market_day(&self, now: Timestamp) -> MarketDay {
        let today = ist::zoned(now).date();
        let status = self.status(now);
        let session = match self.is_trading_date(today) {
            true => today,
            false => self.previous_trading_date(today).unwrap_or(today),
        };
        MarketDay {
            today,
            session,
            day: status.trading_date.filter(|_| status.calendar_known),
            last_close: self.last_close(now).map(|last| last.at),
            close_before_open: self.close_before_open(now),
        }
    }

    fn close_before_open(&self, now: Timestamp) -> Option<Timestamp> {
        let today = ist::zoned(now).date();
        let is_pre_open = self.opens(today)? <= now && now < self.begins(today)?;
        self.official_close(self.previous_trading_date(today)?).filter(|_| is_pre_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // A special session on a Sunday.
            ("2026-11-08T12:00:00+05:30", Some("2026-11-06")),
            ("2026-11-08T23:00:00+05:30", Some("2026-11-08")),
            // The last date for which the calendar knows the next one.
            ("2026-12-31T23:00:00+05:30", Some("2026-12-31")),
            ("2027-01-01T01:00:00+05:30", None),
        ] {
            let last = calendar.last_close(now.parse().unwrap());
            assert_eq!(last.map(|last| last.date.to_string()).as_deref(), expected, "{now}");
        }
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
