//! The trading calendar as data: hours by date, holidays and special sessions, each with its source
//! and confidence.
//!
//! Built on the main thread, at start and at each reload, from the embedded file and the
//! operator's. A calendar never changes once it is built, so any thread may read it. What it does
//! not know it says: on a date without a list of holidays or without known hours the phase follows
//! from weekday and hours, and nothing of that date is official.

use std::path::Path;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use crate::market::calendar_entries::{CalendarEntries, Day, Entry, Hours, Session};
#[cfg(test)]
use crate::market::calendar_entries::{Holiday, Regime};
use crate::market::calendar_file::parse;
use crate::market::data_file::{DataError, operators};
use crate::market::phase::{
    CloseTimes, DayKind, MarketStatus, Timeline, Trading, UNKNOWN, floor_second,
};

const EMBEDDED: &str = include_str!("data/calendar.toml");

/// The times of an official close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FinalClose {
    /// When it is final.
    pub at: Timestamp,
    /// The earliest time that its prices can have.
    pub prices_from: Timestamp,
}

impl FinalClose {
    fn of(times: CloseTimes) -> Option<Self> {
        Some(Self {
            at: Timestamp::from_second(times.final_s).ok()?,
            prices_from: Timestamp::from_second(times.prices_from_s).ok()?,
        })
    }
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
    pub fn with_operator_text(text: &str, origin: &str) -> Result<Self, DataError> {
        let mut entries = embedded_entries();
        let operator = parse(text, origin, &entries)?;
        entries.overlay(operator);
        Ok(Self::of(entries))
    }

    fn of(entries: CalendarEntries) -> Self {
        let first = entries.years.first_key_value().map(|(year, _)| *year);
        let last = entries.years.last_key_value().map(|(year, _)| *year);
        let timeline = Timeline::build(first.zip(last), |date| DayKind {
            day: entries.day(date),
            is_listed: entries.is_listed(date),
            has_known_hours: entries.has_known_hours(date),
        });
        Self { entries, timeline }
    }

    /// Phase and trading date at `at`. A binary search; any thread, never blocks.
    pub fn status(&self, at: Timestamp) -> MarketStatus {
        let Timeline { transitions, days } = &self.timeline;
        let now_s = floor_second(at);
        let after = transitions.partition_point(|transition| transition.at_s <= now_s);
        let current = after
            .checked_sub(1)
            .map_or(UNKNOWN, |index| transitions[index].state);
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

    /// Whether it is known if `date` is a trading date: a list of holidays covers it.
    pub(crate) fn covers(&self, date: Date) -> bool {
        self.entries.is_listed(date)
    }

    /// Whether kind and hours of `date` are known.
    pub(crate) fn knows(&self, date: Date) -> bool {
        let trades = matches!(self.entries.day(date), Day::Trading(_));
        self.covers(date) && (!trades || self.entries.has_known_hours(date))
    }

    /// The last date up to which every date from `date` on is covered by a list of holidays.
    /// `None` if `date` itself is not.
    pub(crate) fn covered_until(&self, date: Date) -> Option<Date> {
        let mut until = self.covered_in_year(date)?;
        while let Some(next) = until
            .tomorrow()
            .ok()
            .and_then(|next| self.covered_in_year(next))
        {
            until = next;
        }
        Some(until)
    }

    fn covered_in_year(&self, date: Date) -> Option<Date> {
        let list = self.entries.years.get(&date.year())?;
        (date <= list.known_until).then_some(list.known_until)
    }

    /// What the calendar is made of.
    pub(crate) fn entries(&self) -> &CalendarEntries {
        &self.entries
    }

    /// Whether the market has a session on `date`, special sessions included. False for a date that
    /// is not covered.
    pub fn is_trading_date(&self, date: Date) -> bool {
        self.timeline.find(date).is_some()
    }

    /// The trading date before `date`; `None` if a date in between is not
    /// covered.
    pub fn previous_trading_date(&self, date: Date) -> Option<Date> {
        let days = &self.timeline.days;
        let before = days.partition_point(|day| day.date < date).checked_sub(1)?;
        let found = days[before].date;
        self.covers_between(found, date).then_some(found)
    }

    /// The trading date after `date`; `None` if a date in between is not covered.
    pub fn next_trading_date(&self, date: Date) -> Option<Date> {
        let days = &self.timeline.days;
        let found = days.get(days.partition_point(|day| day.date <= date))?.date;
        self.covers_between(date, found).then_some(found)
    }

    /// Whether what was traded before settles on this trading date.
    pub(crate) fn settles(&self, date: Date) -> bool {
        !self.entries.settlement_holidays.contains_key(&date)
    }

    /// Whether every date strictly between `from` and `to` is covered.
    fn covers_between(&self, from: Date, to: Date) -> bool {
        let (Ok(first), Ok(last)) = (from.tomorrow(), to.yesterday()) else {
            return false;
        };
        first > last || self.covered_until(first).is_some_and(|until| last <= until)
    }

    /// When the official close of `date` is final: at the latest end of its closing auction, or at
    /// the end of continuous trading if it has none. `None` if `date` is no trading date or its
    /// hours are not known.
    pub fn official_close(&self, date: Date) -> Option<Timestamp> {
        Some(self.close_of(Trading::WithAuction, date)?.at)
    }

    /// The official close of `date` by `whose` hours. `None` if `date` is no trading date or its
    /// hours are not known.
    pub(crate) fn close_of(&self, whose: Trading, date: Date) -> Option<FinalClose> {
        FinalClose::of(self.timeline.find(date)?.close?.of(whose))
    }

    /// A trade of a share with derivatives is its close of `date` only if it was made before this
    /// moment. Later ones go into the average that stands for an auction without a price. `None` if
    /// there is no auction.
    pub(crate) fn reference_from(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.timeline.find(date)?.close?.reference_s?).ok()
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
    /// of all or by the auction. `None` if `date` has no official close.
    pub(crate) fn closing_prices_from(&self, date: Date) -> Option<Timestamp> {
        Some(self.close_of(Trading::WithAuction, date)?.prices_from)
    }

    /// The last official close that was final at `at`, and the earliest time that its prices can
    /// have. `None` before the first known session.
    pub(crate) fn final_close(&self, at: Timestamp) -> Option<FinalClose> {
        FinalClose::of(
            self.timeline
                .final_close(Trading::WithAuction, at.as_millisecond())?,
        )
    }

    /// The part of the time between `from` and `to` that was continuous trading of the indices, in
    /// which they move every second. Zero if `to` is before `from`.
    pub(crate) fn trading_between(&self, from: Timestamp, to: Timestamp) -> SignedDuration {
        self.trading_of_between(Trading::WithAuction, from, to)
    }

    /// Same as [`trading_between`](Self::trading_between), of `whose` trading.
    pub(crate) fn trading_of_between(
        &self,
        whose: Trading,
        from: Timestamp,
        to: Timestamp,
    ) -> SignedDuration {
        let from_ms = from.as_millisecond();
        let to_ms = to.as_millisecond();
        let spans = self.timeline.trading_before(whose, to_ms);
        let spans = spans.take_while(|(_, end_ms)| *end_ms > from_ms);
        let within =
            |(start_ms, end_ms): (i64, i64)| (end_ms.min(to_ms) - start_ms.max(from_ms)).max(0);
        SignedDuration::from_millis(spans.map(within).sum())
    }

    /// The start of the indices' continuous trading that is under way at `at`, or else of the last
    /// one before `at`. `None` before the first known session.
    pub(crate) fn trading_began(&self, at: Timestamp) -> Option<Timestamp> {
        let before_ms = at.as_millisecond() + 1;
        let (start_ms, _) = self
            .timeline
            .trading_before(Trading::WithAuction, before_ms)
            .next()?;
        Timestamp::from_millisecond(start_ms).ok()
    }

    /// The latest moment, at most `at`, at which an index can have got a new price. That is `at`
    /// itself during continuous trading, otherwise the end of trading, or the official close once
    /// it is final.
    pub(crate) fn last_move(&self, at: Timestamp) -> Option<Timestamp> {
        self.last_move_of(Trading::WithAuction, at)
    }

    /// Same as [`last_move`](Self::last_move), by `whose` trading.
    pub(crate) fn last_move_of(&self, whose: Trading, at: Timestamp) -> Option<Timestamp> {
        let at_ms = at.as_millisecond();
        let traded = self.timeline.trading_before(whose, at_ms + 1).next();
        let traded_ms = traded.map(|(_, end_ms)| end_ms.min(at_ms));
        let closed_ms = self
            .timeline
            .final_close(whose, at_ms)
            .map(|close| close.final_s * 1_000);
        Timestamp::from_millisecond(traded_ms.max(closed_ms)?).ok()
    }

    /// The hours of `date` in order of time, or normal hours at that time if the calendar does not
    /// call it a trading date. Empty before the first regime.
    pub(crate) fn hours(&self, date: Date) -> &[Hours] {
        match self.entries.day(date) {
            Day::Trading(parts) => parts,
            _ => self
                .entries
                .regime(date)
                .map_or(&[], |regime| std::slice::from_ref(&regime.hours)),
        }
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
        self.entries
            .days
            .range(from..)
            .filter_map(|(date, entry)| match entry {
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
