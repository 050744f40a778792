//! What calendars are made of: hours by date, holidays and special sessions, each with its source
//! and confidence; and the entries of one calendar file. Plain values.

use std::collections::BTreeMap;

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
    /// Closing auction of shares with derivatives, which all constituents of the indices are.
    pub(crate) closing: Option<Auction>,
    /// Trades at the closing price.
    pub(crate) post_close: Option<DaySpan>,
}

/// A closing auction, IST. It ends at a random second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Auction {
    /// From the end of continuous trading of its shares to the latest end: the phase `closing`.
    pub(crate) span: DaySpan,
    /// The reference price is computed.
    pub(crate) reference: Option<DaySpan>,
    /// Limit and market orders are taken.
    pub(crate) orders: Option<DaySpan>,
    /// Limit orders alone are taken.
    pub(crate) limit_orders: Option<DaySpan>,
    /// The first second of the day in which its price can exist.
    pub(crate) earliest_end_s: u32,
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
    /// The last date for which the hours are known; `None` until the next regime.
    pub(crate) known_until: Option<Date>,
    pub(crate) provenance: Provenance,
}

/// A complete list of a year's holidays: every other weekday of the year is a trading date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YearList {
    /// The last date for which the list is complete.
    pub(crate) known_until: Date,
    pub(crate) provenance: Provenance,
}

/// A day on which the market trades and nothing is settled. It changes what a demat account shows,
/// and no price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettlementHoliday {
    pub(crate) name: String,
    pub(crate) provenance: Provenance,
}

/// An entry of a calendar file for one date.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Holiday(Holiday),
    Session(Session),
    /// Normal hours, although an embedded entry or the weekend closes the market.
    TradingDay,
}

/// The kind of a date, after weekend and entries are considered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Day<'a> {
    /// No regime has begun.
    Unknown,
    Weekend,
    Holiday,
    Trading(&'a [Hours]),
}

/// The entries of one calendar file, or of the embedded file with the operator's on top.
#[derive(Debug, Default)]
pub(crate) struct CalendarEntries {
    pub(crate) years: BTreeMap<i16, YearList>,
    pub(crate) regimes: BTreeMap<Date, Regime>,
    pub(crate) days: BTreeMap<Date, Entry>,
    pub(crate) settlement_holidays: BTreeMap<Date, SettlementHoliday>,
}

impl CalendarEntries {
    /// The regime in force on `date`.
    pub(crate) fn regime(&self, date: Date) -> Option<&Regime> {
        self.regimes
            .range(..=date)
            .next_back()
            .map(|(_, regime)| regime)
    }

    /// The kind of `date`. Where no list of holidays covers it, that is what its weekday says, and
    /// what is listed for it all the same, but for estimates.
    pub(crate) fn day(&self, date: Date) -> Day<'_> {
        let normal = || match self.regime(date) {
            Some(regime) => Day::Trading(std::slice::from_ref(&regime.hours)),
            None => Day::Unknown,
        };
        let weekend = matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday);
        match self.days.get(&date) {
            Some(Entry::Session(session)) => Day::Trading(&session.parts),
            Some(Entry::TradingDay) => normal(),
            _ if weekend => Day::Weekend,
            Some(Entry::Holiday(holiday)) if self.counts(date, holiday) => Day::Holiday,
            _ => normal(),
        }
    }

    fn counts(&self, date: Date, holiday: &Holiday) -> bool {
        holiday.provenance.confidence != Confidence::Estimate || self.is_listed(date)
    }

    /// Whether a list of holidays covers `date`: it is then known whether it is a trading date.
    pub(crate) fn is_listed(&self, date: Date) -> bool {
        self.years
            .get(&date.year())
            .is_some_and(|list| date <= list.known_until)
    }

    /// Whether `date` is a trading date at the hours of its regime.
    pub(crate) fn trades_at_normal_hours(&self, date: Date) -> bool {
        let is_special = matches!(self.days.get(&date), Some(Entry::Session(_)));
        !is_special && matches!(self.day(date), Day::Trading(_))
    }

    /// Whether the hours of `date` are known, if it is a trading date.
    pub(crate) fn has_known_hours(&self, date: Date) -> bool {
        match self.days.get(&date) {
            Some(Entry::Session(session)) => session.hours_confirmed,
            _ => {
                let until = self.regime(date).map(|regime| regime.known_until);
                until.is_some_and(|until| until.is_none_or(|until| date <= until))
            }
        }
    }

    /// Lays the entries of `upper` over these. If both have an entry for a date, `upper` wins.
    pub(super) fn overlay(&mut self, upper: Self) {
        self.days.retain(|date, entry| {
            let estimate = matches!(entry, Entry::Holiday(holiday)
                if holiday.provenance.confidence == Confidence::Estimate);
            !(estimate && upper.years.contains_key(&date.year()))
        });
        self.years.extend(upper.years);
        self.regimes.extend(upper.regimes);
        self.days.extend(upper.days);
        self.settlement_holidays.extend(upper.settlement_holidays);
    }
}

impl Hours {
    /// First second of the day that has a phase.
    pub(super) fn start_s(&self) -> u32 {
        self.pre_open.unwrap_or(self.continuous).start_s
    }

    /// First second of the day after the last phase.
    pub(super) fn end_s(&self) -> u32 {
        self.post_close.map_or(self.close_s(), |span| span.end_s)
    }

    /// The second of the day at which the official close is final: the auction's latest end, or
    /// that of continuous trading without an auction.
    pub(crate) fn close_s(&self) -> u32 {
        self.closing
            .map_or(self.continuous.end_s, |auction| auction.span.end_s)
    }
}
