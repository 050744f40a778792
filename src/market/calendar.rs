//! The trading calendar as data: hours by date, holidays and special sessions, each with its source
//! and confidence.
//!
//! Built on the main thread, at start and at each reload, from the embedded file and the
//! operator's. A calendar never changes once it is built, so any thread may read it. It never
//! guesses: in a year without a list of holidays no date is a trading date.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::Path;

use jiff::civil::{Date, Weekday};
use jiff::{SignedDuration, Timestamp};

use super::calendar_file::parse;
use super::data_file::operators;
pub use super::data_file::{DataError, DaySpan, Fault};
use super::phase::{MarketStatus, Timeline};

/// Years that entries may have. Bounds the size of the timeline that is built from them.
pub const YEARS: RangeInclusive<i16> = 2000..=2100;

/// Most parts of one special session. The exchange's disaster recovery drills had two.
pub const SESSION_PARTS_MAX: usize = 8;

const EMBEDDED: &str = include_str!("data/calendar.toml");

/// How sure an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// At least two independent sources, or price data.
    Confirmed,
    /// Published by the exchange, not yet seen in price data.
    Announced,
    /// One source, or sources that disagree.
    Unconfirmed,
    /// Computed by a library; has no effect once an operator's file covers the year.
    Estimate,
}

/// Where an entry comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    pub source: String,
    pub confidence: Confidence,
}

/// The phases of one stretch of trading, IST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    /// The part of `pre_open` in which orders are taken.
    pub orders: Option<DaySpan>,
    pub pre_open: Option<DaySpan>,
    /// Continuous trading of at least some shares.
    pub continuous: DaySpan,
    /// Closing auction of the constituents of the indices.
    pub closing: Option<DaySpan>,
    /// Trades at the closing price.
    pub post_close: Option<DaySpan>,
}

/// A weekday on which the market stays closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holiday {
    pub name: String,
    pub provenance: Provenance,
}

/// A trading date with hours of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub name: String,
    /// In order of time, not overlapping.
    pub parts: Vec<Hours>,
    /// False where the hours are a placeholder or sources disagree.
    pub hours_confirmed: bool,
    pub provenance: Provenance,
}

/// The hours of normal trading days, in force from a date on until the next regime begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regime {
    pub hours: Hours,
    pub provenance: Provenance,
}

/// What a calendar file lists for one date.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    Holiday(Holiday),
    Session(Session),
    /// Normal hours, although an embedded entry or the weekend says otherwise.
    TradingDay,
}

/// How a date counts once years, weekend and entries are considered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Day<'a> {
    /// No list of holidays covers this date.
    Unknown,
    Weekend,
    Holiday,
    Trading(&'a [Hours]),
}

/// The entries of one calendar file, or of the embedded file with the operator's on top.
#[derive(Debug, Default)]
pub(super) struct CalendarEntries {
    pub(super) years: BTreeSet<i16>,
    pub(super) regimes: BTreeMap<Date, Regime>,
    pub(super) days: BTreeMap<Date, Entry>,
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
        let special = |date| matches!(entries.days.get(&date), Some(Entry::Session(_)));
        let timeline = Timeline::build(&entries.years, |date| entries.day(date), special);
        Self { entries, timeline }
    }

    /// Phase and trading date at `at`. A binary search; any thread, never blocks.
    pub fn status(&self, at: Timestamp) -> MarketStatus {
        self.timeline.status(at)
    }

    /// Whether a list of holidays covers the year of `date`.
    pub fn covers(&self, date: Date) -> bool {
        self.entries.years.contains(&date.year())
    }

    /// The last covered date: the end of the last year before the first gap at or after `date`.
    /// `None` if the year of `date` is not covered. Operators are warned when it is near.
    pub fn covered_until(&self, date: Date) -> Option<Date> {
        let mut year = self.covers(date).then_some(date.year())?;
        while self.entries.years.contains(&(year + 1)) {
            year += 1;
        }
        Date::new(year, 12, 31).ok()
    }

    /// Whether the market has a session on `date`, special sessions included. False in a year that
    /// is not covered.
    pub fn is_trading_date(&self, date: Date) -> bool {
        self.timeline.is_trading_date(date)
    }

    /// The trading date before `date`; `None` if a date in between is in a year that is not
    /// covered.
    pub fn previous_trading_date(&self, date: Date) -> Option<Date> {
        let found = self.timeline.trading_date_before(date)?;
        self.covers_between(found, date).then_some(found)
    }

    /// The trading date after `date`; `None` if a date in between is in a year that is not covered.
    pub fn next_trading_date(&self, date: Date) -> Option<Date> {
        let found = self.timeline.trading_date_after(date)?;
        self.covers_between(date, found).then_some(found)
    }

    /// Every date strictly between `from` and `to` is in a covered year.
    fn covers_between(&self, from: Date, to: Date) -> bool {
        let (Ok(first), Ok(last)) = (from.tomorrow(), to.yesterday()) else { return false };
        first > last || (first.year()..=last.year()).all(|year| self.entries.years.contains(&year))
    }

    /// When the official close of `date` is final: at the end of its closing auction, or of
    /// continuous trading if it has none. `None` if `date` is no trading date.
    pub fn official_close(&self, date: Date) -> Option<Timestamp> {
        self.timeline.official_close(date)
    }

    /// When the first phase of `date` begins. From then on prices may be of that date. `None` if
    /// `date` is no trading date.
    pub fn opens(&self, date: Date) -> Option<Timestamp> {
        self.timeline.opens(date)
    }

    /// When the first continuous trading of `date` begins. `None` if `date` is no trading date.
    pub fn begins(&self, date: Date) -> Option<Timestamp> {
        self.timeline.begins(date)
    }

    /// When the last continuous trading of `date` ends. `None` if `date` is no trading date.
    pub fn continuous_end(&self, date: Date) -> Option<Timestamp> {
        self.timeline.continuous_end(date)
    }

    /// How much of the time between `from` and `to` was continuous trading of the indices, in which
    /// they move every second. Zero if `to` is before `from`.
    pub fn trading_between(&self, from: Timestamp, to: Timestamp) -> SignedDuration {
        self.timeline.trading_between(from, to)
    }

    /// When the continuous trading of the indices that is under way at `at` began, or else the last
    /// one before `at`. `None` before the first known session.
    pub fn trading_began(&self, at: Timestamp) -> Option<Timestamp> {
        self.timeline.trading_began(at)
    }

    /// The latest moment, at most `at`, at which an index can have got a new price. That is `at`
    /// itself during continuous trading, otherwise the end of trading, or the official close once
    /// it is final.
    pub fn last_move(&self, at: Timestamp) -> Option<Timestamp> {
        self.timeline.last_move(at)
    }

    /// The holiday that is listed for `date`.
    pub fn holiday(&self, date: Date) -> Option<&Holiday> {
        match self.entries.days.get(&date)? {
            Entry::Holiday(holiday) => Some(holiday),
            Entry::Session(_) | Entry::TradingDay => None,
        }
    }

    /// Special sessions on or after `from` with unconfirmed hours, which the operator should check.
    pub fn unconfirmed_sessions(&self, from: Date) -> impl Iterator<Item = (Date, &Session)> {
        self.entries.days.range(from..).filter_map(|(date, entry)| match entry {
            Entry::Session(session) if !session.hours_confirmed => Some((*date, session)),
            _ => None,
        })
    }

    /// The regime in force on `date`: its hours if no special session is listed.
    pub fn regime(&self, date: Date) -> Option<&Regime> {
        self.entries.regime(date)
    }

    #[cfg(test)]
    pub(super) fn day(&self, date: Date) -> Day<'_> {
        self.entries.day(date)
    }
}

impl CalendarEntries {
    pub(super) fn regime(&self, date: Date) -> Option<&Regime> {
        self.regimes.range(..=date).next_back().map(|(_, regime)| regime)
    }

    fn day(&self, date: Date) -> Day<'_> {
        if !self.years.contains(&date.year()) {
            return Day::Unknown;
        }
        let normal = || match self.regime(date) {
            Some(regime) => Day::Trading(std::slice::from_ref(&regime.hours)),
            None => Day::Unknown,
        };
        let weekend = matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday);
        match self.days.get(&date) {
            Some(Entry::Session(session)) => Day::Trading(&session.parts),
            Some(Entry::TradingDay) => normal(),
            _ if weekend => Day::Weekend,
            Some(Entry::Holiday(_)) => Day::Holiday,
            None => normal(),
        }
    }

    /// Lays the entries of `upper` over these. Where both have an entry for a date, `upper` wins.
    fn overlay(&mut self, upper: Self) {
        self.days.retain(|date, entry| {
            let estimate = matches!(entry, Entry::Holiday(holiday)
                if holiday.provenance.confidence == Confidence::Estimate);
            !(estimate && upper.years.contains(&date.year()))
        });
        self.years.extend(upper.years);
        self.regimes.extend(upper.regimes);
        self.days.extend(upper.days);
    }
}

fn embedded_entries() -> CalendarEntries {
    parse(EMBEDDED, "the embedded calendar", &CalendarEntries::default())
        .expect("the embedded calendar has no faults: a test reads it")
}

impl Hours {
    /// First second of the day that has a phase.
    pub(super) fn start_s(&self) -> u32 {
        self.pre_open.unwrap_or(self.continuous).start_s
    }

    /// First second of the day after the last phase.
    pub(super) fn end_s(&self) -> u32 {
        self.post_close.or(self.closing).unwrap_or(self.continuous).end_s
    }
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;
