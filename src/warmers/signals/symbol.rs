//! One symbol of the universe: what is stored of it, how the date's fetch goes, and whom to ask
//! next. Pure.

use jiff::civil::Date;

use crate::base::{Source, Symbol};
use crate::store::{CandleHistory, SplitSuspicion};

/// Failures of a source, for one symbol and date, after which the other is asked.
const FAILURES_MAX: u32 = 3;
/// Looks for a date's candle that a source does not have yet.
const LACKS_MAX: u32 = 3;
/// Between two of them.
const LATE_RETRY_MS: u64 = 10 * 60_000;
/// After a failure: longer than a failed feed rests, so that others have their turn.
const FAILED_RETRY_MS: u64 = 60_000;
/// What was given up is tried again, for the days to come.
const GIVEN_UP_RETRY_MS: u64 = 30 * 60_000;

/// Whether a source can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Ready,
    /// Pace or the evening's order; in a moment.
    Soon,
    /// Its circuit is open, or it has not said yet what it knows.
    Later,
    /// Off, no token, no permission; or it cannot have the symbol.
    Absent,
}

/// Both sources, for one symbol.
#[derive(Debug, Clone, Copy)]
pub struct Sources {
    pub broker_a: Availability,
    pub public: Availability,
    /// The date has been due for so long that a source that stays away is replaced.
    pub patience_ended: bool,
}

/// A symbol with its state.
#[derive(Debug)]
pub struct TrackedSymbol {
    pub symbol: Symbol,
    /// `None` before its first whole history.
    pub history: Option<CandleHistory>,
    pub in_flight: bool,
    /// The next call asks for everything although the stored history stands.
    whole_next: bool,
    /// Its candle of the date will not come, as far as can be said.
    pub given_up: bool,
    /// A whole history with holes was refused once; holes are accepted from then on.
    pub patchy: bool,
    failures_broker_a: u32,
    failures_public: u32,
    lacks: u32,
    rests_until_mono_ms: u64,
}

impl TrackedSymbol {
    pub fn new(symbol: Symbol) -> Self {
        Self {
            symbol,
            history: None,
            in_flight: false,
            whole_next: false,
            given_up: false,
            patchy: false,
            failures_broker_a: 0,
            failures_public: 0,
            lacks: 0,
            rests_until_mono_ms: 0,
        }
    }

    /// Another date is due: what failed may work.
    pub fn begin_date(&mut self) {
        let (symbol, history) = (self.symbol.clone(), self.history.take());
        *self = Self { history, in_flight: self.in_flight, ..Self::new(symbol) };
    }

    /// Newest stored candle.
    pub fn last(&self) -> Option<Date> {
        self.history.as_ref()?.last
    }

    /// Whether the candle of `date` is stored.
    pub fn has(&self, date: Date) -> bool {
        self.last() >= Some(date)
    }

    /// Its candles are suspect, so it gives no signals.
    pub fn is_silenced(&self) -> bool {
        let unconfirmed = |suspicion: &SplitSuspicion| !suspicion.confirmed;
        self.history
            .as_ref()
            .is_some_and(|held| held.refetch || held.suspicions.iter().any(unconfirmed))
    }

    /// Whether the whole history is to be asked for. A suspicion waits for a later date: by then
    /// the vendor has rewritten what it sent before, or never will.
    pub fn wants_whole(&self, date: Date, source: Source) -> bool {
        let Some(held) = &self.history else { return true };
        let open = |suspicion: &SplitSuspicion| !suspicion.confirmed && suspicion.date < date;
        self.whole_next
            || held.last.is_none()
            || held.refetch
            || held.source != source
            || held.suspicions.iter().any(open)
    }

    fn needs_work(&self, date: Date) -> bool {
        let source = self.history.as_ref().map_or(Source::BrokerA, |held| held.source);
        !self.has(date) || self.wants_whole(date, source)
    }

    /// Nothing more is expected of it for `date`.
    pub fn is_settled(&self, date: Date) -> bool {
        !self.in_flight && (self.given_up || !self.needs_work(date))
    }

    /// Whom to ask now, if anybody. Notes where no source is left to ask.
    pub fn source_to_ask(
        &mut self,
        date: Date,
        sources: Sources,
        now_mono_ms: u64,
    ) -> Option<Source> {
        if self.in_flight || now_mono_ms < self.rests_until_mono_ms || !self.needs_work(date) {
            return None;
        }
        let Sources { broker_a, public, patience_ended } = sources;
        let left = |failures, source| failures < FAILURES_MAX && source != Availability::Absent;
        let (a_left, public_left) =
            (left(self.failures_broker_a, broker_a), left(self.failures_public, public));
        let is_broker_a = self.history.as_ref().is_some_and(|h| h.source == Source::BrokerA);
        let waits_for_broker_a =
            is_broker_a && !patience_ended && self.failures_broker_a < FAILURES_MAX;
        match broker_a {
            Availability::Ready if a_left => Some(Source::BrokerA),
            Availability::Soon if a_left => None,
            _ if waits_for_broker_a => None,
            _ if public_left => (public == Availability::Ready).then_some(Source::Public),
            // It may come back, or say what it knows.
            Availability::Later if a_left => None,
            _ => {
                self.give_up(now_mono_ms);
                None
            }
        }
    }

    fn give_up(&mut self, now_mono_ms: u64) {
        self.given_up = true;
        (self.failures_broker_a, self.failures_public) = (0, 0);
        self.rests_until_mono_ms = now_mono_ms + GIVEN_UP_RETRY_MS;
    }

    /// A call to `source` failed; `for_good` where asking again says the same.
    pub fn failed(&mut self, source: Source, for_good: bool, now_mono_ms: u64) {
        let failures = match source {
            Source::BrokerA => &mut self.failures_broker_a,
            Source::Public => &mut self.failures_public,
        };
        *failures = if for_good { FAILURES_MAX } else { *failures + 1 };
        self.rests_until_mono_ms = now_mono_ms + if for_good { 0 } else { FAILED_RETRY_MS };
    }

    /// Its stored history is now `held`. `gap`: an earlier session is missing before newer ones.
    pub fn stored(&mut self, held: CandleHistory, date: Date, gap: bool, now_mono_ms: u64) {
        self.history = Some(held);
        self.whole_next = false;
        if self.has(date) {
            (self.failures_broker_a, self.failures_public, self.lacks) = (0, 0, 0);
            self.given_up = false;
            return;
        }
        if self.is_silenced() {
            return;
        }
        self.lacks += 1;
        self.rests_until_mono_ms = now_mono_ms + LATE_RETRY_MS;
        // A whole history may have a hole where an appended one may not.
        self.whole_next = gap && self.lacks + 1 >= LACKS_MAX;
        if self.lacks >= LACKS_MAX {
            self.lacks = 0;
            self.give_up(now_mono_ms);
        }
    }
}

#[cfg(test)]
#[path = "symbol_tests.rs"]
mod tests;
