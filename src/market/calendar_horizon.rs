//! What the calendar does not know, or soon will not: the ends of its rules.
//!
//! Pure. Asked once a day for the log and once a second for health.

use jiff::civil::Date;
use jiff::{Span, ToSpan};

use crate::market::calendar::MarketCalendar;

/// An end is announced so many days ahead. Exchanges publish the next year's holidays in December.
pub(crate) const AHEAD_DAYS: i32 = 30;

impl MarketCalendar {
    /// What the calendar does not know of `today`, or of a date within [`AHEAD_DAYS`] after it,
    /// each in words with its date.
    pub(crate) fn unknown_ahead(&self, today: Date) -> Vec<String> {
        let horizon = today.saturating_add(AHEAD_DAYS.days());
        let mut dates = today
            .series(Span::new().days(1))
            .take_while(|date| *date <= horizon);
        let mut found = Vec::new();
        if let Some(date) = dates.clone().find(|date| !self.covers(*date)) {
            found.push(format!("trading holidays from {date} on"));
        }
        let lacks_hours = |date: &Date| {
            self.covers(*date) && self.entries().trades_at_normal_hours(*date) && !self.knows(*date)
        };
        if let Some(date) = dates.find(lacks_hours) {
            found.push(format!("trading hours from {date} on"));
        }
        let sessions = self
            .unconfirmed_sessions(today)
            .take_while(|(date, _)| *date <= horizon);
        found
            .extend(sessions.map(|(date, session)| format!("hours of {} on {date}", session.name)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_be_unknown_is_said_thirty_days_ahead() {
        let session = "[[session]]\ndate=\"2026-12-20\"\nname=\"Drill\"\nhours_confirmed=false\n\
                       [[session.part]]\ncontinuous=\"10:00-11:00\"";
        for (text, today, expected) in [
            ("", "2026-12-01", vec![]),
            ("", "2026-12-02", vec!["trading holidays from 2027-01-01 on"]),
            ("", "2026-12-31", vec!["trading holidays from 2027-01-01 on"]),
            ("", "2027-01-05", vec!["trading holidays from 2027-01-05 on"]),
            ("years=[2027]", "2026-12-31", vec![]),
            ("years=[2027, 2028]", "2027-12-04", vec!["trading hours from 2028-01-03 on"]),
            ("years=[2027, 2028]", "2028-02-01", vec!["trading hours from 2028-02-01 on"]),
            ("", "2026-11-01", vec!["hours of Muhurat on 2026-11-08"]),
            (session, "2026-11-28", vec!["hours of Drill on 2026-12-20"]),
        ] {
            let calendar = MarketCalendar::with_operator_text(text, "mine.toml").unwrap();
            assert_eq!(calendar.unknown_ahead(today.parse().unwrap()), expected, "{text} {today}");
        }
    }
}
