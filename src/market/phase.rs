//! The phase of the market at an instant.
//!
//! When a calendar is built it is unrolled into a sorted list of transitions: the instants at which
//! the phase changes. A query is a binary search in that list and may come from any thread. Nothing
//! here reads a clock; callers pass the instant.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::{Span, Timestamp};

use crate::base::{clock, words};
use crate::market::calendar_entries::{Day, Hours};
use crate::market::data_file::{DaySpan, YEARS};

words! {
    /// The phase, as the API names it.
    ///
    /// `closed` covers everything outside the hours of a trading date, and the gaps within its
    /// hours: between the two parts of a drill, and between the close and the post-close. A weekend
    /// is `closed`. A weekday holiday is `holiday` from midnight to midnight. A holiday with a
    /// muhurat session is a trading date, so it is `closed` outside that session.
    #[derive(Hash)]
    pub enum Phase else Closed {
        /// Pre-open: orders, matching and the buffer before continuous trading.
        PreOpen = "pre_open",
        /// Continuous trading of the constituents of the indices.
        Open = "open",
        /// Closing auction of the constituents. An index that does not move is normal in it. Other
        /// shares may trade on: `is_open` says so.
        Closing = "closing",
        /// Trades at the closing price.
        PostClose = "post_close",
        /// None of the others.
        Closed = "closed",
        /// A weekday on which the market does not trade.
        Holiday = "holiday",
    }
}

/// The market at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarketStatus {
    /// Whether some share is in continuous trading. True from the first second of trading, false
    /// from the end on.
    pub is_open: bool,
    pub phase: Phase,
    /// The next instant at which `phase` or `is_open` changes. `None` if that is beyond the covered
    /// years.
    pub next_transition_at: Option<Timestamp>,
    /// The trading date that prices belong to: the last one whose continuous trading has begun.
    /// `None` before the first known one.
    pub trading_date: Option<Date>,
    /// Whether the date's kind and hours are known. If not, the phase is what weekday and hours of
    /// the last regime say, and nothing of that date is final.
    pub calendar_known: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) is_open: bool,
    pub(super) known: bool,
}

pub(super) const UNKNOWN: State = State {
    phase: Phase::Closed,
    is_open: false,
    known: false,
};

#[derive(Debug, Clone, Copy)]
pub(super) struct Transition {
    /// Seconds since the Unix epoch.
    pub(super) at_s: i64,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TradingDay {
    pub(super) date: Date,
    /// Continuous trading begins, seconds since the Unix epoch.
    pub(super) begin_s: i64,
    /// The first phase, pre-open or continuous trading, begins.
    pub(super) opens_s: i64,
    /// `None` if the hours of the date are not known: nothing of it is official then.
    pub(super) close: Option<Closes>,
}

/// The official close of a date, by whose it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closes {
    with_auction: CloseTimes,
    without_auction: CloseTimes,
    /// A trade of a share with an auction is its close only if it was made before this second, when
    /// the average that stands for an auction without a price began to be taken.
    pub(super) reference_s: Option<i64>,
}

impl Closes {
    pub(super) fn of(&self, whose: Trading) -> CloseTimes {
        match whose {
            Trading::WithAuction => self.with_auction,
            Trading::WithoutAuction => self.without_auction,
        }
    }
}

/// The times of a close, in seconds since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct CloseTimes {
    /// No closing price has an earlier time.
    pub(super) prices_from_s: i64,
    /// It is final.
    pub(super) final_s: i64,
}

/// A date as the calendar's entries say it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DayKind<'a> {
    pub(super) day: Day<'a>,
    /// Whether a list of holidays covers the date.
    pub(super) is_listed: bool,
    /// Whether its hours are known, if it is a trading date.
    pub(super) has_known_hours: bool,
}

/// Whose continuous trading is meant. A closing auction may begin while other shares trade on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trading {
    /// Of the indices and of shares with derivatives, which take part in the auction.
    WithAuction,
    /// Of shares without derivatives.
    WithoutAuction,
}

/// So many years after the last one with a list of holidays, phases follow from weekday and hours.
/// Beyond them the market counts as closed.
const ASSUMED_YEARS: i16 = 10;

/// The unrolled calendar: about 2,000 transitions and 250 trading dates a year.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) transitions: Vec<Transition>,
    pub(super) days: Vec<TradingDay>,
}

impl Timeline {
    /// Unrolls the years from `first` to `last`, and [`ASSUMED_YEARS`] more.
    pub(super) fn build<'a>(years: Option<(i16, i16)>, day: impl Fn(Date) -> DayKind<'a>) -> Self {
        let mut timeline = Self {
            transitions: Vec::new(),
            days: Vec::new(),
        };
        let Some((first, last)) = years else {
            return timeline;
        };
        let end = Date::constant((last + ASSUMED_YEARS).min(*YEARS.end()), 12, 31);
        let dates = Date::constant(first, 1, 1).series(Span::new().days(1));
        dates
            .take_while(|date| *date <= end)
            .for_each(|date| timeline.push_day(date, &day(date)));
        timeline.push(midnight_s(end) + DAY_S, UNKNOWN);
        timeline
    }

    fn push(&mut self, at_s: i64, state: State) {
        if self
            .transitions
            .last()
            .map_or(UNKNOWN, |transition| transition.state)
            != state
        {
            self.transitions.push(Transition { at_s, state });
        }
    }

    fn push_day(&mut self, date: Date, kind: &DayKind<'_>) {
        let base_s = midnight_s(date);
        let known = kind.is_listed;
        let plain = |phase| State {
            phase,
            is_open: false,
            known,
        };
        let parts = match kind.day {
            Day::Unknown => return self.push(base_s, UNKNOWN),
            Day::Weekend => return self.push(base_s, plain(Phase::Closed)),
            Day::Holiday => return self.push(base_s, plain(Phase::Holiday)),
            Day::Trading(parts) => parts,
        };
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return self.push(base_s, plain(Phase::Closed));
        };
        let known = known && kind.has_known_hours;
        if kind.is_listed {
            self.days.push(TradingDay {
                date,
                begin_s: base_s + i64::from(first.continuous.start_s),
                opens_s: base_s + i64::from(first.start_s()),
                close: known.then(|| closes(last, base_s)),
            });
        }
        let mut seconds: BTreeSet<u32> = parts.iter().flat_map(transition_seconds).collect();
        seconds.insert(0);
        for second in seconds {
            let state = State {
                known,
                ..state_within(parts, second)
            };
            self.push(base_s + i64::from(second), state);
        }
    }

    /// The spans of continuous trading that begin before `at_ms`, the latest one first. Each is a
    /// pair of its first millisecond and the first one after it, since the Unix epoch. Adjacent
    /// ones may be one span of trading.
    pub(super) fn trading_before(
        &self,
        whose: Trading,
        at_ms: i64,
    ) -> impl Iterator<Item = (i64, i64)> {
        let begun = self
            .transitions
            .partition_point(|transition| transition.at_s * 1_000 < at_ms);
        let trades = move |at: &usize| {
            let State { phase, is_open, .. } = self.transitions[*at].state;
            match whose {
                Trading::WithAuction => phase == Phase::Open,
                Trading::WithoutAuction => is_open,
            }
        };
        (0..begun).rev().filter(trades).map(|at| {
            let end_ms = self
                .transitions
                .get(at + 1)
                .map_or(i64::MAX, |next| next.at_s * 1_000);
            (self.transitions[at].at_s * 1_000, end_ms)
        })
    }

    /// The last official close, by `whose` hours, that was final at `at_ms`.
    pub(super) fn final_close(&self, whose: Trading, at_ms: i64) -> Option<CloseTimes> {
        let begun = self
            .days
            .partition_point(|day| day.begin_s * 1_000 <= at_ms);
        let closes = self.days[..begun].iter().rev().filter_map(|day| day.close);
        closes
            .map(|closes| closes.of(whose))
            .find(|close| close.final_s * 1_000 <= at_ms)
    }

    pub(super) fn find(&self, date: Date) -> Option<&TradingDay> {
        self.days
            .binary_search_by_key(&date, |day| day.date)
            .ok()
            .map(|index| &self.days[index])
    }
}

const DAY_S: i64 = 86_400;

/// Some sources stamp the last price with one of the last seconds of trading.
const LAST_TRADE_S: i64 = 60;

/// The average that gives an auction's reference price is taken over the last trading before it.
const REFERENCE_S: i64 = 15 * 60;

/// The closes of a date whose last hours are these, and which begins at `base_s`. A closing price
/// can have been made from the auction's earliest end on, without one from the last minute of
/// trading on.
fn closes(last: &Hours, base_s: i64) -> Closes {
    let end_s = base_s + i64::from(last.continuous.end_s);
    let without_auction = CloseTimes {
        prices_from_s: end_s - LAST_TRADE_S,
        final_s: end_s,
    };
    let with_auction = last.closing.map(|auction| CloseTimes {
        prices_from_s: base_s + i64::from(auction.earliest_end_s),
        final_s: base_s + i64::from(auction.span.end_s),
    });
    let begins = last
        .closing
        .map(|auction| base_s + i64::from(auction.span.start_s));
    Closes {
        with_auction: with_auction.unwrap_or(without_auction),
        without_auction,
        reference_s: begins.map(|begins_s| begins_s - REFERENCE_S),
    }
}

/// Midnight in IST, seconds since the Unix epoch.
fn midnight_s(date: Date) -> i64 {
    clock::instant(date.at(0, 0, 0, 0)).as_second()
}

/// Whole seconds since the Unix epoch, rounded down also before 1970.
pub(super) fn floor_second(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(1_000)
}

fn transition_seconds(hours: &Hours) -> impl Iterator<Item = u32> {
    let closing = hours.closing.map(|auction| auction.span);
    [
        hours.pre_open,
        Some(hours.continuous),
        closing,
        hours.post_close,
    ]
    .into_iter()
    .flatten()
    .flat_map(|span| [span.start_s, span.end_s])
}

/// The phase at `second` of a trading date with these hours. The closing auction takes precedence
/// over the continuous trading of other shares.
fn state_within(parts: &[Hours], second: u32) -> State {
    let within = |span: Option<DaySpan>| span.is_some_and(|s| s.contains(second));
    let is_open = parts.iter().any(|hours| hours.continuous.contains(second));
    let phase = if parts
        .iter()
        .any(|hours| within(hours.closing.map(|auction| auction.span)))
    {
        Phase::Closing
    } else if is_open {
        Phase::Open
    } else if parts.iter().any(|hours| within(hours.pre_open)) {
        Phase::PreOpen
    } else if parts.iter().any(|hours| within(hours.post_close)) {
        Phase::PostClose
    } else {
        Phase::Closed
    };
    State {
        phase,
        is_open,
        known: true,
    }
}

#[cfg(test)]
#[path = "phase_tests.rs"]
mod tests;
