//! The trading calendar as data: hours by date, holidays and special sessions, each with its source
//! and confidence.
//!
//! Built on the main thread, at start and at each reload, from the embedded file and the
//! operator's. A calendar never changes once it is built, so any thread may read it. It never
//! guesses: in a year without a list of holidays no date is a trading date.

use std::path::Path;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use crate::market::calendar_entries::{CalendarEntries, Entry, Session};
#[cfg(test)]
use crate::market::calendar_entries::{Day, Holiday, Regime};
use crate::market::calendar_file::parse;
use crate::market::data_file::{DataError, operators};
use crate::market::phase::{MarketStatus, Timeline, UNKNOWN, floor_second};

const EMBEDDED: &str = include_str!("data/calendar.toml");

/// An official close that is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FinalClose {
    /// When it became final.
    pub at: Timestamp,
    /// The earliest time that its prices can have.
    pub prices_from: Timestamp,
}

/// Phases, trading dates and special sessions of the equity segment.
#[derive(Debug)]
pub struct MarketCalendar {
    entries: CalendarEntries,
    timeline: Timeline,
}

impl MarketCalendar {
    /// The calendar that is compiled in.
    pub fn embedded() -> Self {
        Self::of(embedded_entries())
    }

    /// The embedded calendar, with the entries of the operator's file on top.
    ///
    /// For a date that the file names, the file's entry counts. `years` adds covered years and
    /// drops the embedded estimates of these years. A regime replaces the one that begins on the
    /// same date, and is otherwise added to the others.
    ///
    /// # Errors
    /// The file cannot be read, or has faults: all of them, each with its line.
    pub fn load(operator_file: Option<&Path>) -> Result<Self, DataError> {
        operators(operator_file, Self::embedded, Self::with_operator_text)
    }

    /// Same as [`load`](Self::load), from text. `origin` is the name of the text in faults.
    ///
    /// # Errors
    /// The text has faults: all of them, each with its line.
    pub(crate) fn with_operator_text(text: &str, origin: &str) -> Result<Self, DataError> {
        let mut entries = embedded_entries();
        let operator = parse(text, origin, &entries)?;
        entries.overlay(operator);
        Ok(Self::of(entries))
    }

    fn of(entries: CalendarEntries) -> Self {
        let timeline = Timeline::build(&entries.years, |date| entries.day(date));
        Self { entries, timeline }
    }

    /// Phase and trading date at `at`. A binary search; any thread, never blocks.
    pub fn status(&self, at: Timestamp) -> MarketStatus {
        let Timeline { transitions, days } = &self.timeline;
        let now_s = floor_second(at);
        let after = transitions.partition_point(|transition| transition.at_s <= now_s);
        let current = after.checked_sub(1).map_or(UNKNOWN, |index| transitions[index].state);
        let next = transitions.get(after);
        let next = next.filter(|transition| current.known && transition.state.known);
        let begun = days.partition_point(|day| day.begin_s <= now_s);
        MarketStatus {
            is_open: current.is_open,
            phase: current.phase,
            next_transition_at: next
                .and_then(|transition| Timestamp::from_second(transition.at_s).ok()),
            trading_date: begun.checked_sub(1).map(|index| days[index].date),
            calendar_known: current.known,
        }
    }

    /// Whether a list of holidays covers the year of `date`.
    pub(crate) fn covers(&self, date: Date) -> bool {
        self.entries.years.contains(&date.year())
    }

    /// The last covered date: the end of the last year before the first gap at or after `date`.
    /// `None` if the year of `date` is not covered. Operators are warned when it is near.
    pub(crate) fn covered_until(&self, date: Date) -> Option<Date> {
        let mut year = self.covers(date).then_some(date.year())?;
        while self.entries.years.contains(&(year + 1)) {
            year += 1;
        }
        Date::new(year, 12, 31).ok()
    }

    /// Whether the market has a session on `date`, special sessions included. False in a year that
    /// is not covered.
    pub fn is_trading_date(&self, date: Date) -> bool {
        self.timeline.find(date).is_some()
    }

    /// The trading date before `date`; `None` if a date in between is in a year that is not
    /// covered.
    pub fn previous_trading_date(&self, date: Date) -> Option<Date> {
        let days = &self.timeline.days;
        let before = days.partition_point(|day| day.date < date).checked_sub(1)?;
        let found = days[before].date;
        self.covers_between(found, date).then_some(found)
    }

    /// The trading date after `date`; `None` if a date in between is in a year that is not covered.
    pub fn next_trading_date(&self, date: Date) -> Option<Date> {
        let days = &self.timeline.days;
        let found = days.get(days.partition_point(|day| day.date <= date))?.date;
        self.covers_between(date, found).then_some(found)
    }

    /// Whether every date strictly between `from` and `to` is in a covered year.
    fn covers_between(&self, from: Date, to: Date) -> bool {
        let (Ok(first), Ok(last)) = (from.tomorrow(), to.yesterday()) else { return false };
        first > last || (first.year()..=last.year()).all(|year| self.entries.years.contains(&year))
    }

    /// When the official close of `date` is final: at the end of its closing auction, or of
    /// continuous trading if it has none. `None` if `date` is no trading date.
    pub fn official_close(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.timeline.find(date)?.close_s).ok()
    }

    /// When the first phase of `date` begins. From then on prices may be of that date. `None` if
    /// `date` is no trading date.
    pub(crate) fn opens(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.timeline.find(date)?.opens_s).ok()
    }

    /// When the first continuous trading of `date` begins. `None` if `date` is no trading date.
    pub(crate) fn begins(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.timeline.find(date)?.begin_s).ok()
    }

    /// The earliest time that a closing price of `date` can have, if it was made by the last trade
    /// of all or by the auction. `None` if `date` is no trading date.
    pub(crate) fn closing_prices_from(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.timeline.find(date)?.closing_prices_from_s).ok()
    }

    /// The last official close that was final at `at`, and the earliest time that its prices can
    /// have. `None` before the first known session.
    pub(crate) fn final_close(&self, at: Timestamp) -> Option<FinalClose> {
        let days = &self.timeline.days;
        let closed = days.partition_point(|day| day.close_s * 1_000 <= at.as_millisecond());
        let day = &days[closed.checked_sub(1)?];
        Some(FinalClose {
            at: Timestamp::from_second(day.close_s).ok()?,
            prices_from: Timestamp::from_second(day.closing_prices_from_s).ok()?,
        })
    }

    /// The part of the time between `from` and `to` that was continuous trading of the indices, in
    /// which they move every second. Zero if `to` is before `from`.
    pub(crate) fn trading_between(&self, from: Timestamp, to: Timestamp) -> SignedDuration {
        let (from_ms, to_ms) = (from.as_millisecond(), to.as_millisecond());
        let spans = self.timeline.trading_before(to_ms).take_while(|(_, end_ms)| *end_ms > from_ms);
        let within =
            |(start_ms, end_ms): (i64, i64)| (end_ms.min(to_ms) - start_ms.max(from_ms)).max(0);
        SignedDuration::from_millis(spans.map(within).sum())
    }

    /// The start of the indices' continuous trading that is under way at `at`, or else of the last
    /// one before `at`. `None` before the first known session.
    pub(crate) fn trading_began(&self, at: Timestamp) -> Option<Timestamp> {
        let (start_ms, _) = self.timeline.trading_before(at.as_millisecond() + 1).next()?;
        Timestamp::from_millisecond(start_ms).ok()
    }

    /// The latest moment, at most `at`, at which an index can have got a new price. That is `at`
    /// itself during continuous trading, otherwise the end of trading, or the official close once
    /// it is final.
    pub(crate) fn last_move(&self, at: Timestamp) -> Option<Timestamp> {
        let at_ms = at.as_millisecond();
        let traded = self.timeline.trading_before(at_ms + 1).next();
        let traded_ms = traded.map(|(_, end_ms)| end_ms.min(at_ms));
        let days = &self.timeline.days;
        let closed = days.partition_point(|day| day.close_s * 1_000 <= at_ms);
        let closed_ms = closed.checked_sub(1).map(|index| days[index].close_s * 1_000);
        Timestamp::from_millisecond(traded_ms.max(closed_ms)?).ok()
    }

    /// The holiday listed for `date`.
    #[cfg(test)]
    pub(crate) fn holiday(&self, date: Date) -> Option<&Holiday> {
        match self.entries.days.get(&date)? {
            Entry::Holiday(holiday) => Some(holiday),
            Entry::Session(_) | Entry::TradingDay => None,
        }
    }

    /// Special sessions on or after `from` with unconfirmed hours, which the operator should check.
    pub(crate) fn unconfirmed_sessions(
        &self,
        from: Date,
    ) -> impl Iterator<Item = (Date, &Session)> {
        self.entries.days.range(from..).filter_map(|(date, entry)| match entry {
            Entry::Session(session) if !session.hours_confirmed => Some((*date, session)),
            _ => None,
        })
    }

    /// The regime in force on `date`: its hours if no special session is listed.
    #[cfg(test)]
    pub(crate) fn regime(&self, date: Date) -> Option<&Regime> {
        self.entries.regime(date)
    }

    #[cfg(test)]
    pub(super) fn day(&self, date: Date) -> Day<'_> {
        self.entries.day(date)
    }
}

fn embedded_entries() -> CalendarEntries {
    parse(EMBEDDED, "the embedded calendar", &CalendarEntries::default())
        .expect("the embedded calendar has no faults: a test reads it")
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;
