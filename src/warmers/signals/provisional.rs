//! Signals of candles that are not finished, while the operator wants them.
//!
//! During a session the running candle of each trusted symbol is asked for in rotation, from the
//! source of its stored ones, and looked at for patterns. It lives here and nowhere else: it never
//! joins the stored candles, and what is found in it has a ledger of its own. State of the
//! scheduler's thread, and pure: `fetch` makes the calls, `look` is the jobs.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;

use super::look::Prepared;
use crate::base::Source;
use crate::brokers::DailyCandles;

/// From the beginning of a rotation to that of the next. A day's candle says little more a minute
/// later, and every symbol costs a call. A rotation ends by then at the latest; those whom it did
/// not reach come first in the next.
pub const ROTATION_MS: u64 = 5 * 60_000;
/// A running candle is looked at, and what it showed is shown, for so long after it came: two
/// rotations may fail.
pub const FRESH_MS: u64 = 15 * 60_000;

/// What of the running session is known.
#[derive(Default)]
pub struct Provisional {
    /// The operator's switch.
    on: bool,
    /// The session under way; `None` outside of one, and while switched off.
    date: Option<Date>,
    prepared: Option<Arc<Prepared>>,
    /// By the symbols' places.
    running: Vec<Running>,
    /// Of the last rotation.
    began_mono_ms: Option<u64>,
    rotating: bool,
    /// Something is to be found that was not looked at.
    to_look: bool,
    pub looked_at: Option<Timestamp>,
}

/// One symbol's running candle.
#[derive(Default, Clone)]
struct Running {
    asked_mono_ms: Option<u64>,
    /// With the days before it that the source sent along, and when it came.
    said: Option<(u64, Arc<DailyCandles>)>,
}

impl Provisional {
    /// At rest, for so many symbols.
    pub fn new(symbols: usize) -> Self {
        Self { running: vec![Running::default(); symbols], ..Self::default() }
    }

    /// Goes over to another session, or to none. What was known of the last one is forgotten.
    pub fn follow(&mut self, on: bool, date: Option<Date>) {
        if (on, date) != (self.on, self.date) {
            *self = Self { on, date, ..Self::new(self.running.len()) };
        }
    }

    pub fn is_on(&self) -> bool {
        self.on
    }

    /// The session under way.
    pub fn date(&self) -> Option<Date> {
        self.date
    }

    /// Whether a session is under way for which nothing is prepared.
    pub fn wants_preparing(&self) -> bool {
        self.date.is_some() && self.prepared.is_none()
    }

    /// The stored candles have changed.
    pub fn unprepare(&mut self) {
        self.prepared = None;
    }

    pub fn prepare(&mut self, prepared: Prepared) {
        self.prepared = Some(Arc::new(prepared));
    }

    /// Begins a rotation that has come due, and ends one that has asked everybody whose source
    /// `serves`, or took too long. `under_way`: some call has not ended.
    pub fn rotate(&mut self, serves: impl Fn(Source) -> bool, under_way: bool, now_mono_ms: u64) {
        if self.prepared.is_none() {
            return;
        }
        let since = |began: u64| now_mono_ms.saturating_sub(began);
        let due = self.began_mono_ms.is_none_or(|began| since(began) >= ROTATION_MS);
        if self.rotating {
            let left = |source| serves(source) && self.next(source).is_some();
            let done = !under_way && !left(Source::BrokerA) && !left(Source::Public);
            if due || done {
                self.rotating = false;
                self.to_look = true;
            }
        }
        if due && !self.rotating {
            self.rotating = true;
            self.began_mono_ms = Some(now_mono_ms);
        }
    }

    /// The symbol of `source` that this rotation has not asked for, longest ago asked first.
    pub fn next(&self, source: Source) -> Option<usize> {
        let (prepared, began) = (self.prepared.as_ref()?, self.began_mono_ms?);
        let of_source = |at: &usize| {
            let tail = prepared.tails.get(*at).and_then(Option::as_ref);
            tail.is_some_and(|tail| tail.source == source)
        };
        let asked = |at: &usize| self.running[*at].asked_mono_ms;
        let places = (0..self.running.len()).filter(|_| self.rotating).filter(of_source);
        places.filter(|at| asked(at).is_none_or(|asked| asked < began)).min_by_key(asked)
    }

    pub fn asked(&mut self, at: usize, now_mono_ms: u64) {
        self.running[at].asked_mono_ms = Some(now_mono_ms);
    }

    /// The call was not made: its turn comes again.
    pub fn not_asked(&mut self, at: usize) {
        self.running[at].asked_mono_ms = None;
    }

    /// What its source said of a symbol; `None`: that it has nothing.
    pub fn said(&mut self, at: usize, read: Option<DailyCandles>, now_mono_ms: u64) {
        self.running[at].said = read.map(|read| (now_mono_ms, Arc::new(read)));
    }

    /// What was said lately, and until when all of it is good.
    pub fn fresh(&self, now_mono_ms: u64) -> (Vec<(usize, Arc<DailyCandles>)>, u64) {
        let mut until_mono_ms = u64::MAX;
        let mut fresh = Vec::new();
        for (at, running) in self.running.iter().enumerate() {
            let Some((came_mono_ms, said)) = &running.said else { continue };
            let good_until = came_mono_ms + FRESH_MS;
            if now_mono_ms < good_until {
                until_mono_ms = until_mono_ms.min(good_until);
                fresh.push((at, Arc::clone(said)));
            }
        }
        (fresh, until_mono_ms)
    }

    /// What a look is made with, if there is to be one.
    pub fn to_look(&self) -> Option<Arc<Prepared>> {
        self.prepared.as_ref().filter(|_| self.to_look).cloned()
    }

    /// A look has begun, or its outcome was lost and there is to be another.
    pub fn set_to_look(&mut self, to_look: bool) {
        self.to_look = to_look;
    }
}

#[cfg(test)]
#[path = "provisional_tests.rs"]
mod tests;
