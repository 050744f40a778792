//! Signals of running candles, if the operator wants them.
//!
//! During a session the running candle of each trusted symbol is fetched in rotation, from the
//! source of its stored candles, and searched for patterns. It is kept here only: it never joins
//! the stored candles, and its signals have a ledger of their own. Belongs to the scheduler's
//! thread, and is pure: `fetch` makes the calls, `look` has the jobs.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::base::Source;
use crate::brokers::DailyCandles;
use crate::warmers::signals::look::Prepared;

/// Interval between the starts of two rotations. A day's candle changes little in a minute, and
/// every symbol costs a call. A rotation ends after this time at the latest. The symbols that it
/// did not reach come first in the next.
pub(crate) const ROTATION_MS: u64 = 5 * 60_000;
/// A running candle is searched, and its signals are published, for this long after it arrived. Two
/// rotations may fail.
pub(crate) const FRESH_MS: u64 = 15 * 60_000;

/// The state of the current session.
#[derive(Default)]
pub(crate) struct Provisional {
    /// The operator's switch.
    pub on: bool,
    /// The current session; `None` outside of one, and while switched off.
    pub date: Option<Date>,
    /// `None` also after the stored candles have changed.
    pub prepared: Option<Arc<Prepared>>,
    /// By the symbols' positions.
    running: Vec<Running>,
    /// Start of the last rotation.
    began_mono_ms: Option<u64>,
    rotating: bool,
    /// A search is due: not once one has begun, again if its outcome was lost.
    pub to_look: bool,
    pub looked_at: Option<Timestamp>,
}

/// One symbol's running candle.
#[derive(Default, Clone)]
struct Running {
    asked_mono_ms: Option<u64>,
    /// Arrival time and answer, which includes some earlier days.
    answer: Option<(u64, Arc<DailyCandles>)>,
}

impl Provisional {
    /// Starts without a session, for `symbols` symbols.
    pub(crate) fn new(symbols: usize) -> Self {
        Self { running: vec![Running::default(); symbols], ..Self::default() }
    }

    /// Switches to another session, or to none. The state of the last one is dropped.
    pub(crate) fn follow(&mut self, on: bool, date: Option<Date>) {
        if (on, date) != (self.on, self.date) {
            *self = Self { on, date, ..Self::new(self.running.len()) };
        }
    }

    /// Whether the current session is not prepared yet.
    pub(crate) fn wants_preparing(&self) -> bool {
        self.date.is_some() && self.prepared.is_none()
    }

    /// Begins a rotation that is due. Ends one that has asked for every symbol whose source
    /// `serves`, or took too long. `under_way`: some call has not ended.
    pub(crate) fn rotate(
        &mut self,
        serves: impl Fn(Source) -> bool,
        under_way: bool,
        now_mono_ms: u64,
    ) {
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

    /// The next symbol of `source` in this rotation: the one asked for longest ago.
    pub(crate) fn next(&self, source: Source) -> Option<usize> {
        let prepared = self.prepared.as_ref()?;
        let began = self.began_mono_ms?;
        let of_source = |at: &usize| {
            let tail = prepared.tails.get(*at).and_then(Option::as_ref);
            tail.is_some_and(|tail| tail.source == source)
        };
        let asked = |at: &usize| self.running[*at].asked_mono_ms;
        let places = (0..self.running.len()).filter(|_| self.rotating).filter(of_source);
        places.filter(|at| asked(at).is_none_or(|asked| asked < began)).min_by_key(asked)
    }

    /// Notes when the symbol was asked for; `None` if the call was not made.
    pub(crate) fn asked(&mut self, at: usize, asked_mono_ms: Option<u64>) {
        self.running[at].asked_mono_ms = asked_mono_ms;
    }

    /// Takes the source's answer for a symbol; `None`: it has no candle.
    pub(crate) fn answered(&mut self, at: usize, read: Option<DailyCandles>, now_mono_ms: u64) {
        self.running[at].answer = read.map(|read| (now_mono_ms, Arc::new(read)));
    }

    /// The recent answers, and until when all of them are valid.
    pub(crate) fn fresh(&self, now_mono_ms: u64) -> (Vec<(usize, Arc<DailyCandles>)>, u64) {
        let mut until_mono_ms = u64::MAX;
        let mut fresh = Vec::new();
        for (at, running) in self.running.iter().enumerate() {
            let Some((came_mono_ms, answer)) = &running.answer else { continue };
            let good_until = came_mono_ms + FRESH_MS;
            if now_mono_ms < good_until {
                until_mono_ms = until_mono_ms.min(good_until);
                fresh.push((at, Arc::clone(answer)));
            }
        }
        (fresh, until_mono_ms)
    }

    /// The preparation for a search, if one is due.
    pub(crate) fn to_look(&self) -> Option<Arc<Prepared>> {
        self.prepared.as_ref().filter(|_| self.to_look).cloned()
    }
}

#[cfg(test)]
#[path = "provisional_tests.rs"]
mod tests;
