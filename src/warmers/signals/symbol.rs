//! The states of one symbol's history: what is stored, how far the date's fetch is, and which
//! source to ask next. Pure.
//!
//! A history is, for the due date,
//!
//! - *missing* or *behind*: a source is asked for the whole history, or for the candles after the
//!   last;
//! - *in flight*: a call is under way, or its answer waits to be judged and stored;
//! - *resting*: a call failed, or the source does not have the candle yet, so no call is made for a
//!   while;
//! - *given up*: no source is left to ask; retried later;
//! - *silenced*: its candles are suspect, so it gives no signals until the whole history was
//!   fetched again;
//! - *current*: nothing is missing.

use jiff::civil::Date;

use crate::base::{BySource, Source, Symbol};
use crate::store::{CandleHistory, SplitSuspicion};

/// Failures of a source, for one symbol and date, after which the other source is asked.
const FAILURES_MAX: u32 = 3;
/// Maximum calls for a date's candle that a source does not have yet.
const LACKS_MAX: u32 = 3;
/// Interval between two such calls.
const LATE_RETRY_MS: u64 = 10 * 60_000;
/// Pause after a failure. Longer than the rest of a failed feed, so that other symbols are asked
/// for first.
const FAILED_RETRY_MS: u64 = 60_000;
/// Interval after which a symbol that was given up is retried, which helps the following dates.
const GIVEN_UP_RETRY_MS: u64 = 30 * 60_000;

/// Whether a source can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    Ready,
    /// Held back for a moment, by the rate limit or the evening's order.
    Soon,
    /// Its circuit is open, or its list of symbols is not known yet.
    Later,
    /// Off, no token or no permission, or it does not have the symbol.
    Absent,
}

/// Both sources, for one symbol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources {
    pub of: BySource<Availability>,
    /// The date has been due for so long that an unavailable source is replaced.
    pub patience_ended: bool,
}

/// A symbol with the state of its history.
#[derive(Debug)]
pub(crate) struct TrackedSymbol {
    pub symbol: Symbol,
    /// An index is not traded, so its candles have no volume.
    pub is_index: bool,
    /// `None` before its first whole history.
    pub history: Option<CandleHistory>,
    /// A call for it is under way, or its answer is not stored yet.
    pub in_flight: bool,
    /// The next call asks for the whole history although a sound one is stored.
    whole_next: bool,
    /// The date for which the whole history was fetched last.
    whole_of: Option<Date>,
    /// The candle of the date is not expected any more.
    pub given_up: bool,
    /// A whole history with holes was refused once; holes are accepted from then on.
    patchy: bool,
    failures: BySource<u32>,
    lacks: u32,
    rests_until_mono_ms: u64,
}

impl TrackedSymbol {
    pub(crate) fn new(symbol: Symbol) -> Self {
        Self {
            symbol,
            is_index: false,
            history: None,
            in_flight: false,
            whole_next: false,
            whole_of: None,
            given_up: false,
            patchy: false,
            failures: BySource::default(),
            lacks: 0,
            rests_until_mono_ms: 0,
        }
    }

    pub(crate) fn of_index(symbol: Symbol) -> Self {
        Self {
            is_index: true,
            ..Self::new(symbol)
        }
    }

    /// Whether holes are a reason to ask again.
    pub(crate) fn is_strict(&self, source: Source) -> bool {
        source == Source::BrokerA && !self.patchy
    }

    /// Notes that its whole history was refused for its holes, which are accepted from now on.
    pub(crate) fn refused(&mut self, source: Source, now_mono_ms: u64) {
        self.patchy = true;
        self.failed(source, false, now_mono_ms);
    }

    /// Begins another date: failures are forgotten.
    pub(crate) fn begin_date(&mut self) {
        let symbol = self.symbol.clone();
        let history = self.history.take();
        let Self {
            is_index,
            in_flight,
            ..
        } = *self;
        *self = Self {
            is_index,
            history,
            in_flight,
            ..Self::new(symbol)
        };
    }

    /// Whether its candles are not available: given up, or none stored yet and a call has failed
    /// or was refused for what it brought.
    pub(crate) fn lacks_candles(&self) -> bool {
        let has_failed = self.failures.0.iter().any(|failures| *failures > 0);
        self.given_up || self.history.is_none() && has_failed
    }

    /// Date of the newest stored candle.
    pub(crate) fn last(&self) -> Option<Date> {
        self.history.as_ref()?.last
    }

    /// Whether the candle of `date` is stored.
    pub(crate) fn has(&self, date: Date) -> bool {
        self.last() >= Some(date)
    }

    /// Whether its candles are suspect, so that it gives no signals.
    pub(crate) fn is_silenced(&self) -> bool {
        let unconfirmed = |suspicion: &SplitSuspicion| !suspicion.confirmed;
        self.history
            .as_ref()
            .is_some_and(|held| held.refetch || held.suspicions.iter().any(unconfirmed))
    }

    /// Notes that its whole history was fetched for `date`.
    pub(crate) fn has_whole_of(&mut self, date: Date) {
        self.whole_of = Some(date);
    }

    /// Whether to ask for the whole history. A suspicion waits for a later date, on which the
    /// vendor may have rewritten the earlier candles, and is asked about once a date.
    pub(crate) fn wants_whole(&self, date: Date, source: Source) -> bool {
        let Some(held) = &self.history else {
            return true;
        };
        let is_asked = self.whole_of == Some(date);
        let open =
            |suspicion: &SplitSuspicion| !suspicion.confirmed && suspicion.date < date && !is_asked;
        self.whole_next
            || held.last.is_none()
            || held.refetch
            || held.source != source
            || held.suspicions.iter().any(open)
    }

    fn needs_work(&self, date: Date) -> bool {
        let source = self
            .history
            .as_ref()
            .map_or(Source::BrokerA, |held| held.source);
        !self.has(date) || self.wants_whole(date, source)
    }

    /// Whether nothing more is expected of it for `date`.
    pub(crate) fn is_settled(&self, date: Date) -> bool {
        !self.in_flight && (self.given_up || !self.needs_work(date))
    }

    /// The source to ask now, if any. Gives up if no source is left.
    pub(crate) fn source_to_ask(
        &mut self,
        date: Date,
        sources: Sources,
        now_mono_ms: u64,
    ) -> Option<Source> {
        if self.in_flight || now_mono_ms < self.rests_until_mono_ms || !self.needs_work(date) {
            return None;
        }
        let Sources {
            of: BySource([broker_a, public]),
            patience_ended,
        } = sources;
        let left = |source| {
            self.failures[source] < FAILURES_MAX && sources.of[source] != Availability::Absent
        };
        let a_left = left(Source::BrokerA);
        let public_left = left(Source::Public);
        let is_broker_a = self
            .history
            .as_ref()
            .is_some_and(|h| h.source == Source::BrokerA);
        let waits_for_broker_a =
            is_broker_a && !patience_ended && self.failures[Source::BrokerA] < FAILURES_MAX;
        match broker_a {
            Availability::Ready if a_left => Some(Source::BrokerA),
            Availability::Soon if a_left => None,
            _ if waits_for_broker_a => None,
            _ if public_left => (public == Availability::Ready).then_some(Source::Public),
            // It may become available, or its list of symbols known.
            Availability::Later if a_left => None,
            _ => {
                self.give_up(now_mono_ms);
                None
            }
        }
    }

    pub(super) fn give_up(&mut self, now_mono_ms: u64) {
        self.given_up = true;
        self.failures = BySource::default();
        self.rests_until_mono_ms = now_mono_ms + GIVEN_UP_RETRY_MS;
    }

    /// Notes a failed call to `source`. `for_good`: a repeated call would fail the same way.
    pub(crate) fn failed(&mut self, source: Source, for_good: bool, now_mono_ms: u64) {
        let failures = &mut self.failures[source];
        *failures = if for_good {
            FAILURES_MAX
        } else {
            *failures + 1
        };
        self.rests_until_mono_ms = now_mono_ms + if for_good { 0 } else { FAILED_RETRY_MS };
    }

    /// Notes that `held` is stored now. `gap`: an earlier session is missing before newer ones.
    pub(crate) fn stored(&mut self, held: CandleHistory, date: Date, gap: bool, now_mono_ms: u64) {
        self.history = Some(held);
        self.whole_next = false;
        if self.has(date) {
            (self.failures, self.lacks) = (BySource::default(), 0);
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
