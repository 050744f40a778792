//! Which trading date's candles are due, and how far back they are kept. Pure.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::base::{Source, ist};
use crate::market::{MarketCalendar, Phase};
use crate::signals::history::SESSIONS_KEPT;
use crate::warmers::quotes::pace::close_margin;

/// Stored sessions that are fetched again beside the new ones, to notice a rewritten history.
const OVERLAP_SESSIONS: usize = 5;

/// The latest trading date whose candle `source` can be expected to have, finished. `None` where
/// the calendar does not know.
pub fn settled_date(calendar: &MarketCalendar, source: Source, now: Timestamp) -> Option<Date> {
    let today = ist::zoned(now).date();
    match calendar.official_close(today) {
        Some(close) if now.duration_since(close) >= close_margin(source) => Some(today),
        _ => calendar.previous_trading_date(today),
    }
}

/// The date whose candle is running, or has run and not settled: today, once continuous trading can
/// have begun. `None` on days without a session and before it.
pub fn running_date(calendar: &MarketCalendar, now: Timestamp) -> Option<Date> {
    let today = ist::zoned(now).date();
    let has_opened = calendar.opens(today)? <= now;
    let trades = calendar.status(now).phase != Phase::PreOpen;
    (has_opened && trades).then_some(today)
}

/// The first session of a whole history that ends at `to`.
pub fn window_from(calendar: &MarketCalendar, to: Date) -> Date {
    back(calendar, to, SESSIONS_KEPT - 1)
}

/// From where to ask for what follows `last`.
pub fn overlap_from(calendar: &MarketCalendar, last: Date) -> Date {
    back(calendar, last, OVERLAP_SESSIONS - 1)
}

/// As many sessions back as asked for, or as the calendar knows.
fn back(calendar: &MarketCalendar, from: Date, sessions: usize) -> Date {
    let mut date = from;
    for _ in 0..sessions {
        match calendar.previous_trading_date(date) {
            Some(before) => date = before,
            None => break,
        }
    }
    date
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(source: Source, now: &str) -> Option<String> {
        let date = settled_date(&MarketCalendar::embedded(), source, now.parse().unwrap());
        date.map(|date| date.to_string())
    }

    #[test]
    fn a_date_settles_after_its_close_and_stays_due_until_the_next_one_has() {
        let (a, public) = (Source::BrokerA, Source::Public);
        for (source, now, expected) in [
            (a, "2026-11-20T15:44:59+05:30", Some("2026-11-19")),
            (a, "2026-11-20T15:45:00+05:30", Some("2026-11-20")),
            (public, "2026-11-20T16:04:59+05:30", Some("2026-11-19")),
            (public, "2026-11-20T16:05:00+05:30", Some("2026-11-20")),
            // Through the weekend and Monday's session; Tuesday the 24th is a holiday.
            (a, "2026-11-23T12:00:00+05:30", Some("2026-11-20")),
            (a, "2026-11-24T18:00:00+05:30", Some("2026-11-23")),
            // A Sunday evening's special session.
            (a, "2026-11-08T17:00:00+05:30", Some("2026-11-06")),
            (a, "2026-11-08T23:00:00+05:30", Some("2026-11-08")),
            (a, "2027-02-01T12:00:00+05:30", None),
        ] {
            assert_eq!(settled(source, now).as_deref(), expected, "{source:?} {now}");
        }
    }

    #[test]
    fn a_candle_runs_from_continuous_trading_on() {
        for (now, expected) in [
            ("2026-11-20T08:59:59+05:30", None),
            ("2026-11-20T09:14:59+05:30", None),
            ("2026-11-20T09:15:00+05:30", Some("2026-11-20")),
            ("2026-11-20T15:20:00+05:30", Some("2026-11-20")),
            ("2026-11-20T15:36:00+05:30", Some("2026-11-20")),
            // A Sunday evening's special session, a holiday, and a year without a list.
            ("2026-11-08T12:00:00+05:30", None),
            ("2026-11-08T18:30:00+05:30", Some("2026-11-08")),
            ("2026-11-24T12:00:00+05:30", None),
            ("2027-02-01T12:00:00+05:30", None),
        ] {
            let date = running_date(&MarketCalendar::embedded(), now.parse().unwrap());
            assert_eq!(date.map(|date| date.to_string()).as_deref(), expected, "{now}");
        }
    }

    #[test]
    fn the_window_is_as_deep_as_asked_or_known() {
        let calendar = MarketCalendar::embedded();
        let to = jiff::civil::date(2026, 11, 20);
        let from = window_from(&calendar, to);
        let days = from.series(jiff::Span::new().days(1)).take_while(|date| *date <= to);
        let sessions = days.filter(|date| calendar.is_trading_date(*date)).count();
        assert_eq!(sessions, SESSIONS_KEPT, "{from}");
        assert_eq!(overlap_from(&calendar, to).to_string(), "2026-11-16");
        let early = window_from(&calendar, jiff::civil::date(2023, 3, 1));
        assert_eq!(early.year(), 2023, "not guessed beyond what the calendar knows");
    }
}
