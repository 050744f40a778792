//! What calendars are made of: hours by date, holidays and special sessions, each with its source
//! and confidence; and the entries of one calendar file. Plain values.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, Weekday};

use crate::base::words;
use crate::market::data_file::DaySpan;

words! {
    /// Reliability of an entry.
    pub(crate) enum Confidence {
        /// At least two independent sources, or price data.
        Confirmed = "confirmed",
        /// Published by the exchange, not yet seen in price data.
        Announced = "announced",
        /// One source, or sources that disagree.
        Unconfirmed = "unconfirmed",
        /// Computed by a library; has no effect once an operator's file covers the year.
        Estimate = "estimate",
    }
}

/// Origin of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Provenance {
    pub source: String,
    pub(crate) confidence: Confidence,
}

/// The phases of one stretch of trading, IST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hours {
    /// The part of `pre_open` in which orders are taken.
    pub(crate) orders: Option<DaySpan>,
    pub(crate) pre_open: Option<DaySpan>,
    /// Continuous trading of at least some shares.
    pub(crate) continuous: DaySpan,
    /// Closing auction of the constituents of the indices.
    pub(crate) closing: Option<DaySpan>,
    /// Trades at the closing price.
    pub(crate) post_close: Option<DaySpan>,
}

/// A weekday on which the market stays closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holiday {
    pub name: String,
    pub(crate) provenance: Provenance,
}

/// A trading date with hours of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub name: String,
    /// Ordered by time, not overlapping.
    pub parts: Vec<Hours>,
    /// False if the hours are a placeholder or sources disagree.
    pub hours_confirmed: bool,
    pub(crate) provenance: Provenance,
}

/// The hours of normal trading days, in force from a date on until the next regime begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Regime {
    pub hours: Hours,
    pub(crate) provenance: Provenance,
}

/// An entry of a calendar file for one date.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    Holiday(Holiday),
    Session(Session),
    /// Normal hours, although an embedded entry or the weekend closes the market.
    TradingDay,
}

/// The kind of a date, after years, weekend and entries are considered.
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

impl CalendarEntries {
    pub(super) fn regime(&self, date: Date) -> Option<&Regime> {
        self.regimes.range(..=date).next_back().map(|(_, regime)| regime)
    }

    pub(super) fn day(&self, date: Date) -> Day<'_> {
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

    /// Lays the entries of `upper` over these. If both have an entry for a date, `upper` wins.
    pub(super) fn overlay(&mut self, upper: Self) {
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
