//! The trading calendar as data: dated hours, holidays, special sessions, with source and
//! confidence.
//!
//! Built on the main thread, at start and at each reload, from the embedded file and an operator's;
//! one that is built never changes; any thread may read it. Must never guess: a date of a year
//! without a list of holidays is not a trading date.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::Path;

use jiff::civil::{Date, Weekday};
use jiff::{SignedDuration, Timestamp};

use super::calendar_file::parse;
use super::data_file::operators;
pub use super::data_file::{DataError, DaySpan, Fault};
use super::phase::{MarketStatus, Timeline};

/// Years that entries may have: bounds the timeline that is built from them.
pub const YEARS: RangeInclusive<i16> = 2000..=2100;

/// Most parts of one special session; the drills had two.
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
    /// Some share is in continuous trading.
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

/// The hours of normal days from a date on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regime {
    pub hours: Hours,
    pub provenance: Provenance,
}

/// What stands at one date.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    Holiday(Holiday),
    Session(Session),
    /// Normal hours, in spite of an entry or a weekend.
    TradingDay,
}

/// What a date is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Day<'a> {
    /// No list of holidays covers this date.
    Unknown,
    Weekend,
    Holiday,
    Trading(&'a [Hours]),
}

/// One file's entries, or several laid over each other.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) years: BTreeSet<i16>,
    pub(super) regimes: BTreeMap<Date, Regime>,
    pub(super) days: BTreeMap<Date, Entry>,
}

/// Phases, trading dates and special sessions of the equity segment.
#[derive(Debug)]
pub struct MarketCalendar {
    book: Book,
    timeline: Timeline,
}

impl MarketCalendar {
    /// The calendar that is compiled in.
    pub fn embedded() -> Self {
        Self::of(embedded_book())
    }

    /// The embedded calendar, with the entries of the operator's file on top: a date that the file
    /// names is what the file says, `years` adds covered years (and drops the embedded estimates of
    /// them), and a regime replaces the one that begins on the same date and else stands between
    /// the others.
    ///
    /// # Errors
    /// The file cannot be read, or has faults: all of them, each with its line.
    pub fn load(operator_file: Option<&Path>) -> Result<Self, DataError> {
        operators(operator_file, Self::embedded, Self::with_operator_text)
    }

    /// As [`load`](Self::load), from text; `origin` names it in faults.
    ///
    /// # Errors
    /// The text has faults: all of them, each with its line.
    pub fn with_operator_text(text: &str, origin: &str) -> Result<Self, DataError> {
        let mut book = embedded_book();
        let operator = parse(text, origin, &book)?;
        book.overlay(operator);
        Ok(Self::of(book))
    }

    fn of(book: Book) -> Self {
        let special = |date| matches!(book.days.get(&date), Some(Entry::Session(_)));
        let timeline = Timeline::build(&book.years, |date| book.day(date), special);
        Self { book, timeline }
    }

    /// Phase and trading date at `at`. A binary search; any thread, never blocks.
    pub fn status(&self, at: Timestamp) -> MarketStatus {
        self.timeline.status(at)
    }

    /// Whether a list of holidays covers the year of `date`.
    pub fn covers(&self, date: Date) -> bool {
        self.book.years.contains(&date.year())
    }

    /// Last day before the first gap in the covered years at or after `date`; `None` if `date` is
    /// in a gap. Something to warn about when it is near.
    pub fn covered_until(&self, date: Date) -> Option<Date> {
        let mut year = self.covers(date).then_some(date.year())?;
        while self.book.years.contains(&(year + 1)) {
            year += 1;
        }
        Date::new(year, 12, 31).ok()
    }

    /// Whether the market has a session on `date`, special sessions included. False in a year that
    /// is not covered.
    pub fn is_trading_date(&self, date: Date) -> bool {
        self.timeline.is_trading_date(date)
    }

    /// The trading date before `date`; `None` if a date that is not covered lies between.
    pub fn previous_trading_date(&self, date: Date) -> Option<Date> {
        let found = self.timeline.trading_date_before(date)?;
        self.covers_between(found, date).then_some(found)
    }

    /// The trading date after `date`; `None` if a date that is not covered lies between.
    pub fn next_trading_date(&self, date: Date) -> Option<Date> {
        let found = self.timeline.trading_date_after(date)?;
        self.covers_between(date, found).then_some(found)
    }

    /// Every date strictly between `from` and `to` is in a covered year.
    fn covers_between(&self, from: Date, to: Date) -> bool {
        let (Ok(first), Ok(last)) = (from.tomorrow(), to.yesterday()) else { return false };
        first > last || (first.year()..=last.year()).all(|year| self.book.years.contains(&year))
    }

    /// When the official close of `date` stands: the end of its closing auction, or of continuous
    /// trading where there is none. `None` if it is no trading date.
    pub fn official_close(&self, date: Date) -> Option<Timestamp> {
        self.timeline.official_close(date)
    }

    /// When the first phase of `date` begins: from here on prices may be that date's. `None` if it
    /// is no trading date.
    pub fn opens(&self, date: Date) -> Option<Timestamp> {
        self.timeline.opens(date)
    }

    /// When the last continuous trading of `date` ends. `None` if it is no trading date.
    pub fn continuous_end(&self, date: Date) -> Option<Timestamp> {
        self.timeline.continuous_end(date)
    }

    /// How much of the time from `from` to `to` the indices were in continuous trading, in which
    /// they move every second.
    pub fn trading_between(&self, from: Timestamp, to: Timestamp) -> SignedDuration {
        self.timeline.trading_between(from, to)
    }

    /// When the continuous trading of the indices that runs at `at` began, or the last one before
    /// it; `None` before the first one known.
    pub fn trading_began(&self, at: Timestamp) -> Option<Timestamp> {
        self.timeline.trading_began(at)
    }

    /// The latest moment up to `at` at which an index can have got a new price: `at` itself in
    /// continuous trading, else its end, or the official close once that stands.
    pub fn last_move(&self, at: Timestamp) -> Option<Timestamp> {
        self.timeline.last_move(at)
    }

    /// The holiday listed at `date`.
    pub fn holiday(&self, date: Date) -> Option<&Holiday> {
        match self.book.days.get(&date)? {
            Entry::Holiday(holiday) => Some(holiday),
            Entry::Session(_) | Entry::TradingDay => None,
        }
    }

    /// Special sessions from `from` on whose hours must still be checked.
    pub fn unconfirmed_sessions(&self, from: Date) -> impl Iterator<Item = (Date, &Session)> {
        self.book.days.range(from..).filter_map(|(date, entry)| match entry {
            Entry::Session(session) if !session.hours_confirmed => Some((*date, session)),
            _ => None,
        })
    }

    /// The hours that a date without a special session has.
    pub fn regime(&self, date: Date) -> Option<&Regime> {
        self.book.regime(date)
    }

    #[cfg(test)]
    pub(super) fn day(&self, date: Date) -> Day<'_> {
        self.book.day(date)
    }
}

impl Book {
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

    /// `upper` wins, date by date.
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

fn embedded_book() -> Book {
    parse(EMBEDDED, "the embedded calendar", &Book::default())
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
