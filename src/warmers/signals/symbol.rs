//! The states of one symbol's history: what is stored of it, how the date's fetch goes, and which
//! source to ask next. Pure.
//!
//! For the date that is due a history is
//!
//! - *missing* or *behind*: a source is asked for all of it, or for what follows the last candle;
//! - *in flight*: a call is under way, or what it brought waits to be judged and stored;
//! - *resting*: a call failed, or the source does not have the candle yet, so nothing is asked for
//!   a while;
//! - *given up*: no source is left to ask; tried again later;
//! - *silenced*: its candles are suspect, so it gives no signals until all of it was fetched again;
//! - *current*: nothing is missing.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::civil::Date;

use crate::base::{Source, Symbol};
use crate::brokers::broker_a::Tokens;
use crate::market::Universe;
use crate::market::instruments::embedded_instruments;
use crate::store::{CandleHistory, SplitSuspicion};

/// Failures of a source, for one symbol and date, after which the other is asked.
const FAILURES_MAX: u32 = 3;
/// Calls for a date's candle that a source does not have yet.
const LACKS_MAX: u32 = 3;
/// Between two of them.
const LATE_RETRY_MS: u64 = 10 * 60_000;
/// After a failure: longer than a failed feed rests, so that other symbols are asked for first.
const FAILED_RETRY_MS: u64 = 60_000;
/// What was given up is tried again, for the days to come.
const GIVEN_UP_RETRY_MS: u64 = 30 * 60_000;

/// Whether a source can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    Ready,
    /// Rate limit or the evening's order; in a moment.
    Soon,
    /// Its circuit is open, or it has not said yet what it knows.
    Later,
    /// Off, no token, no permission; or it cannot have the symbol.
    Absent,
}

/// Both sources, for one symbol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources {
    pub broker_a: Availability,
    pub public: Availability,
    /// The date has been due for so long that a source that stays away is replaced.
    pub patience_ended: bool,
}

impl Sources {
    pub(crate) fn of(self, source: Source) -> Availability {
        match source {
            Source::BrokerA => self.broker_a,
            Source::Public => self.public,
        }
    }
}

/// A symbol with the state of its history.
#[derive(Debug)]
pub(crate) struct TrackedSymbol {
    symbol: Symbol,
    /// `None` before its first whole history.
    history: Option<CandleHistory>,
    in_flight: bool,
    /// The next call asks for everything although the stored history stands.
    whole_next: bool,
    /// Its candle of the date will not come, as far as can be said.
    given_up: bool,
    /// A whole history with holes was refused once; holes are accepted from then on.
    patchy: bool,
    failures_broker_a: u32,
    failures_public: u32,
    lacks: u32,
    rests_until_mono_ms: u64,
}

impl TrackedSymbol {
    pub(crate) fn new(symbol: Symbol) -> Self {
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

    pub(crate) fn symbol(&self) -> &Symbol {
        &self.symbol
    }

    /// What is stored.
    pub(crate) fn history(&self) -> Option<&CandleHistory> {
        self.history.as_ref()
    }

    /// Whether its candle of the date will not come, as far as can be said.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Whether holes are a reason to ask again.
    pub(crate) fn is_strict(&self, source: Source) -> bool {
        source == Source::BrokerA && !self.patchy
    }

    /// The store was read: this is what it has. `in_flight`: a call for the symbol is under way all
    /// the same, or what it brought is not stored yet.
    pub(crate) fn loaded(&mut self, history: Option<CandleHistory>, in_flight: bool) {
        (self.history, self.in_flight) = (history, in_flight);
    }

    /// A call for it goes out.
    pub(crate) fn asked(&mut self) {
        self.in_flight = true;
    }

    /// The call for it, or the storing of what it brought, has ended.
    pub(crate) fn landed(&mut self) {
        self.in_flight = false;
    }

    /// Its whole history was refused for its holes, which are accepted from now on.
    pub(crate) fn refused(&mut self, source: Source, now_mono_ms: u64) {
        self.patchy = true;
        self.failed(source, false, now_mono_ms);
    }

    /// Another date is due: what failed may work.
    pub(crate) fn begin_date(&mut self) {
        let (symbol, history) = (self.symbol.clone(), self.history.take());
        *self = Self { history, in_flight: self.in_flight, ..Self::new(symbol) };
    }

    /// Newest stored candle.
    pub(crate) fn last(&self) -> Option<Date> {
        self.history.as_ref()?.last
    }

    /// Whether the candle of `date` is stored.
    pub(crate) fn has(&self, date: Date) -> bool {
        self.last() >= Some(date)
    }

    /// Its candles are suspect, so it gives no signals.
    pub(crate) fn is_silenced(&self) -> bool {
        let unconfirmed = |suspicion: &SplitSuspicion| !suspicion.confirmed;
        self.history
            .as_ref()
            .is_some_and(|held| held.refetch || held.suspicions.iter().any(unconfirmed))
    }

    /// Whether the whole history is to be asked for. A suspicion waits for a later date: by then
    /// the vendor has rewritten what it sent before, or never will.
    pub(crate) fn wants_whole(&self, date: Date, source: Source) -> bool {
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

    /// Whether nothing more is expected of it for `date`.
    pub(crate) fn is_settled(&self, date: Date) -> bool {
        !self.in_flight && (self.given_up || !self.needs_work(date))
    }

    /// Whom to ask now, if anybody. Notes where no source is left to ask.
    pub(crate) fn source_to_ask(
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

    pub(super) fn give_up(&mut self, now_mono_ms: u64) {
        self.given_up = true;
        (self.failures_broker_a, self.failures_public) = (0, 0);
        self.rests_until_mono_ms = now_mono_ms + GIVEN_UP_RETRY_MS;
    }

    /// A call to `source` failed; `for_good` where asking again says the same.
    pub(crate) fn failed(&mut self, source: Source, for_good: bool, now_mono_ms: u64) {
        let failures = match source {
            Source::BrokerA => &mut self.failures_broker_a,
            Source::Public => &mut self.failures_public,
        };
        *failures = if for_good { FAILURES_MAX } else { *failures + 1 };
        self.rests_until_mono_ms = now_mono_ms + if for_good { 0 } else { FAILED_RETRY_MS };
    }

    /// Its stored history is now `held`. `gap`: an earlier session is missing before newer ones.
    pub(crate) fn stored(&mut self, held: CandleHistory, date: Date, gap: bool, now_mono_ms: u64) {
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

// ---- Histories
//
// The histories of all symbols of the universe, with broker A's tokens for them. A symbol is known
// to the rest of the task by its place. Pure.

/// All symbols with the states of their histories.
pub(crate) struct Histories {
    tracked: Vec<TrackedSymbol>,
    universe: Arc<HashSet<Symbol>>,
    tokens: Tokens,
    /// The day's list of broker A has been read, so a symbol without a token has none.
    tokens_learned: bool,
}

impl Histories {
    /// Nothing is known of what the store has.
    pub(crate) fn new(universe: &Universe) -> Self {
        let embedded = embedded_instruments();
        let wanted = universe.symbols().iter().map(|symbol| {
            let row = embedded.iter().find(|row| row.symbol == *symbol);
            (symbol.clone(), row.and_then(|row| row.broker_a_token))
        });
        Self {
            universe: Arc::new(universe.symbols().iter().cloned().collect()),
            tracked: universe.symbols().iter().cloned().map(TrackedSymbol::new).collect(),
            tokens: Tokens::new(wanted),
            tokens_learned: false,
        }
    }

    pub(crate) fn universe(&self) -> &Arc<HashSet<Symbol>> {
        &self.universe
    }

    pub(crate) fn len(&self) -> usize {
        self.tracked.len()
    }

    /// Broker A's tokens, and whether the day's list has been read.
    pub(crate) fn tokens(&self) -> (&Tokens, bool) {
        (&self.tokens, self.tokens_learned)
    }

    /// The day's list has been read.
    pub(crate) fn learn_tokens(&mut self, tokens: Tokens) {
        self.tokens = tokens;
        self.tokens_learned = true;
    }

    pub(crate) fn at(&self, at: usize) -> &TrackedSymbol {
        &self.tracked[at]
    }

    pub(crate) fn at_mut(&mut self, at: usize) -> &mut TrackedSymbol {
        &mut self.tracked[at]
    }

    /// In the order of their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TrackedSymbol> {
        self.tracked.iter()
    }

    /// How many are so.
    pub(crate) fn count(&self, holds: impl Fn(&TrackedSymbol) -> bool) -> usize {
        self.tracked.iter().filter(|tracked| holds(tracked)).count()
    }

    /// Whether nothing more is expected of any for `date`.
    pub(crate) fn are_settled(&self, date: Date) -> bool {
        self.tracked.iter().all(|tracked| tracked.is_settled(date))
    }

    /// Another date is due.
    pub(crate) fn begin_date(&mut self) {
        self.tracked.iter_mut().for_each(TrackedSymbol::begin_date);
    }

    /// The store was read: this is what it has. Calls under way go on, as `in_flight` says by
    /// place; what a failed job carried is gone.
    pub(crate) fn loaded(
        &mut self,
        mut stored: Vec<CandleHistory>,
        in_flight: impl Fn(usize) -> bool,
    ) {
        for (place, tracked) in self.tracked.iter_mut().enumerate() {
            let at = stored.iter().position(|held| held.symbol == *tracked.symbol());
            tracked.loaded(at.map(|at| stored.swap_remove(at)), in_flight(place));
        }
    }

    /// The next symbol that `source` is to be asked for.
    pub(crate) fn next_to_ask(
        &mut self,
        source: Source,
        date: Date,
        usual: Sources,
        now_mono_ms: u64,
    ) -> Option<usize> {
        let Self { tracked, tokens, tokens_learned, .. } = self;
        tracked.iter_mut().position(|tracked| {
            let mut sources = usual;
            if tokens.of(tracked.symbol()).is_none() && usual.broker_a != Availability::Absent {
                // Before the day's list has been read, it may have one.
                let unknown = !*tokens_learned;
                sources.broker_a = if unknown { Availability::Later } else { Availability::Absent };
            }
            tracked.source_to_ask(date, sources, now_mono_ms) == Some(source)
        })
    }
}

#[cfg(test)]
#[path = "symbol_tests.rs"]
mod tests;
