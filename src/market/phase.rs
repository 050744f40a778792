//! The phase of the market at an instant.
//!
//! When a calendar is built it is unrolled into a sorted list of transitions: the instants at which
//! the phase changes. A query is a binary search in that list and may come from any thread. Nothing
//! here reads a clock; callers pass the instant.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use super::calendar::{Day, Hours};
use crate::base::ist;

/// The phase, as the API names it.
///
/// `closed` covers everything outside the hours of a trading date, and the gaps within its hours:
/// between the two parts of a drill, from 15:30 to 15:40 before August 2026, and from 15:35 to
/// 15:50 since. A weekend is `closed`. A weekday holiday is `holiday` from midnight to midnight. A
/// holiday with a muhurat session is a trading date, so it is `closed` outside that session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Pre-open: orders, matching and the buffer before continuous trading.
    PreOpen,
    /// Continuous trading of the constituents of the indices.
    Open,
    /// Closing auction of the constituents. An index that does not move is normal in it. Other
    /// shares trade on until 15:30.
    Closing,
    /// Trades at the closing price.
    PostClose,
    /// None of the others.
    Closed,
    /// A weekday on which the market does not trade.
    Holiday,
}

impl Phase {
    /// Name of the phase in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreOpen => "pre_open",
            Self::Open => "open",
            Self::Closing => "closing",
            Self::PostClose => "post_close",
            Self::Closed => "closed",
            Self::Holiday => "holiday",
        }
    }
}

/// What kind of trading date `trading_date` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    Regular,
    /// A session with its own hours: muhurat (at Diwali), budget day or a drill.
    Special,
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
    /// Whether today's hours are regular or special. `None` if today is no trading date.
    pub session: Option<SessionKind>,
    /// Whether the year has a list of holidays. If not, the market counts as closed.
    pub calendar_known: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    phase: Phase,
    is_open: bool,
    known: bool,
}

const UNKNOWN: State = State { phase: Phase::Closed, is_open: false, known: false };

#[derive(Debug, Clone, Copy)]
struct Transition {
    /// Seconds since the Unix epoch.
    at_s: i64,
    state: State,
}

#[derive(Debug, Clone, Copy)]
struct TradingDay {
    date: Date,
    /// Continuous trading begins, seconds since the Unix epoch.
    begin_s: i64,
    /// The first phase, pre-open or continuous trading, begins.
    opens_s: i64,
    /// The last continuous trading ends.
    continuous_end_s: i64,
    /// The official close stands.
    close_s: i64,
    kind: SessionKind,
}

/// The unrolled calendar: about 2,000 transitions and 250 trading dates a year.
#[derive(Debug)]
pub(super) struct Timeline {
    transitions: Vec<Transition>,
    days: Vec<TradingDay>,
}

impl Timeline {
    /// Unrolls the years from the first to the last of `years`. `special` says whether a date has
    /// special hours.
    pub(super) fn build<'a>(
        years: &BTreeSet<i16>,
        day: impl Fn(Date) -> Day<'a>,
        special: impl Fn(Date) -> bool,
    ) -> Self {
        let mut timeline = Self { transitions: Vec::new(), days: Vec::new() };
        let (Some(first), Some(last)) = (years.first(), years.last()) else { return timeline };
        let end = Date::constant(*last, 12, 31);
        let mut date = Date::constant(*first, 1, 1);
        loop {
            let kind = if special(date) { SessionKind::Special } else { SessionKind::Regular };
            timeline.push_day(date, &day(date), kind);
            if date >= end {
                break;
            }
            // `end` lies far inside jiff's range.
            let Ok(next) = date.tomorrow() else { break };
            date = next;
        }
        timeline.push(midnight_s(date) + DAY_S, UNKNOWN);
        timeline
    }

    fn push(&mut self, at_s: i64, state: State) {
        if self.transitions.last().map_or(UNKNOWN, |transition| transition.state) != state {
            self.transitions.push(Transition { at_s, state });
        }
    }

    fn push_day(&mut self, date: Date, day: &Day<'_>, kind: SessionKind) {
        let base_s = midnight_s(date);
        let plain = |phase| State { phase, is_open: false, known: true };
        let parts = match day {
            Day::Unknown => return self.push(base_s, UNKNOWN),
            Day::Weekend => return self.push(base_s, plain(Phase::Closed)),
            Day::Holiday => return self.push(base_s, plain(Phase::Holiday)),
            Day::Trading(parts) => *parts,
        };
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return self.push(base_s, plain(Phase::Closed));
        };
        self.days.push(TradingDay {
            date,
            begin_s: base_s + i64::from(first.continuous.start_s),
            opens_s: base_s + i64::from(first.start_s()),
            continuous_end_s: base_s + i64::from(last.continuous.end_s),
            close_s: base_s + i64::from(last.closing.unwrap_or(last.continuous).end_s),
            kind,
        });
        let mut seconds: BTreeSet<u32> = parts.iter().flat_map(transition_seconds).collect();
        seconds.insert(0);
        for second in seconds {
            self.push(base_s + i64::from(second), state_within(parts, second));
        }
    }

    pub(super) fn status(&self, at: Timestamp) -> MarketStatus {
        let now_s = floor_second(at);
        let after = self.transitions.partition_point(|transition| transition.at_s <= now_s);
        let current = after.checked_sub(1).map_or(UNKNOWN, |index| self.transitions[index].state);
        let next = self
            .transitions
            .get(after)
            .filter(|transition| current.known && transition.state.known);
        let begun = self.days.partition_point(|day| day.begin_s <= now_s);
        let today = ist::zoned(at).date();
        MarketStatus {
            is_open: current.is_open,
            phase: current.phase,
            next_transition_at: next
                .and_then(|transition| Timestamp::from_second(transition.at_s).ok()),
            trading_date: begun.checked_sub(1).map(|index| self.days[index].date),
            session: self.find(today).map(|day| day.kind),
            calendar_known: current.known,
        }
    }

    /// The spans of continuous trading that begin before `at_ms`, the latest one first. Each is a
    /// pair of its first millisecond and the first one after it, since the Unix epoch.
    fn trading_before(&self, at_ms: i64) -> impl Iterator<Item = (i64, i64)> {
        let begun = self.transitions.partition_point(|transition| transition.at_s * 1_000 < at_ms);
        let open = |at: &usize| self.transitions[*at].state.phase == Phase::Open;
        (0..begun).rev().filter(open).map(|at| {
            let end_ms = self.transitions.get(at + 1).map_or(i64::MAX, |next| next.at_s * 1_000);
            (self.transitions[at].at_s * 1_000, end_ms)
        })
    }

    pub(super) fn trading_between(&self, from: Timestamp, to: Timestamp) -> SignedDuration {
        let (from_ms, to_ms) = (from.as_millisecond(), to.as_millisecond());
        let spans = self.trading_before(to_ms).take_while(|(_, end_ms)| *end_ms > from_ms);
        let within =
            |(start_ms, end_ms): (i64, i64)| (end_ms.min(to_ms) - start_ms.max(from_ms)).max(0);
        SignedDuration::from_millis(spans.map(within).sum())
    }

    pub(super) fn trading_began(&self, at: Timestamp) -> Option<Timestamp> {
        let (start_ms, _) = self.trading_before(at.as_millisecond() + 1).next()?;
        Timestamp::from_millisecond(start_ms).ok()
    }

    pub(super) fn last_move(&self, at: Timestamp) -> Option<Timestamp> {
        let at_ms = at.as_millisecond();
        let traded_ms = self.trading_before(at_ms + 1).next().map(|(_, end_ms)| end_ms.min(at_ms));
        let closed = self.days.partition_point(|day| day.close_s * 1_000 <= at_ms);
        let closed_ms = closed.checked_sub(1).map(|index| self.days[index].close_s * 1_000);
        Timestamp::from_millisecond(traded_ms.max(closed_ms)?).ok()
    }

    fn find(&self, date: Date) -> Option<&TradingDay> {
        self.days.binary_search_by_key(&date, |day| day.date).ok().map(|index| &self.days[index])
    }

    pub(super) fn is_trading_date(&self, date: Date) -> bool {
        self.find(date).is_some()
    }

    pub(super) fn official_close(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.find(date)?.close_s).ok()
    }

    pub(super) fn opens(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.find(date)?.opens_s).ok()
    }

    pub(super) fn begins(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.find(date)?.begin_s).ok()
    }

    pub(super) fn continuous_end(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.find(date)?.continuous_end_s).ok()
    }

    pub(super) fn trading_date_before(&self, date: Date) -> Option<Date> {
        let index = self.days.partition_point(|day| day.date < date);
        index.checked_sub(1).map(|index| self.days[index].date)
    }

    pub(super) fn trading_date_after(&self, date: Date) -> Option<Date> {
        self.days.get(self.days.partition_point(|day| day.date <= date)).map(|day| day.date)
    }
}

const DAY_S: i64 = 86_400;

/// Midnight in IST, seconds since the Unix epoch.
fn midnight_s(date: Date) -> i64 {
    ist::instant(date.at(0, 0, 0, 0)).as_second()
}

/// Whole seconds since the Unix epoch, rounded down also before 1970.
fn floor_second(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(1_000)
}

fn transition_seconds(hours: &Hours) -> impl Iterator<Item = u32> {
    [hours.pre_open, Some(hours.continuous), hours.closing, hours.post_close]
        .into_iter()
        .flatten()
        .flat_map(|span| [span.start_s, span.end_s])
}

/// The phase at `second` of a trading date with these hours. The closing auction takes precedence
/// over the continuous trading of other shares.
fn state_within(parts: &[Hours], second: u32) -> State {
    let within = |span: Option<super::calendar::DaySpan>| span.is_some_and(|s| s.contains(second));
    let is_open = parts.iter().any(|hours| hours.continuous.contains(second));
    let phase = if parts.iter().any(|hours| within(hours.closing)) {
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
    State { phase, is_open, known: true }
}

#[cfg(test)]
#[path = "phase_tests.rs"]
mod tests;
