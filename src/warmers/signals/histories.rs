//! The histories of all symbols of the universe, with broker A's tokens for them. A symbol is known
//! to the rest of the task by its place. Pure.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::civil::Date;

use super::symbol::{Availability, Sources, TrackedSymbol};
use crate::base::{Source, Symbol};
use crate::brokers::broker_a::Tokens;
use crate::market::Universe;
use crate::market::instruments::embedded_instruments;
use crate::store::CandleHistory;

/// All symbols with the states of their histories.
pub struct Histories {
    tracked: Vec<TrackedSymbol>,
    universe: Arc<HashSet<Symbol>>,
    tokens: Tokens,
    /// The day's list of broker A has been read, so a symbol without a token has none.
    tokens_learned: bool,
}

impl Histories {
    /// Nothing is known of what the store has.
    pub fn new(universe: &Universe) -> Self {
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

    pub fn universe(&self) -> &Arc<HashSet<Symbol>> {
        &self.universe
    }

    pub fn len(&self) -> usize {
        self.tracked.len()
    }

    /// Broker A's tokens, and whether the day's list has been read.
    pub fn tokens(&self) -> (&Tokens, bool) {
        (&self.tokens, self.tokens_learned)
    }

    /// The day's list has been read.
    pub fn learn_tokens(&mut self, tokens: Tokens) {
        self.tokens = tokens;
        self.tokens_learned = true;
    }

    pub fn at(&self, at: usize) -> &TrackedSymbol {
        &self.tracked[at]
    }

    pub fn at_mut(&mut self, at: usize) -> &mut TrackedSymbol {
        &mut self.tracked[at]
    }

    /// In the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &TrackedSymbol> {
        self.tracked.iter()
    }

    /// How many are so.
    pub fn count(&self, holds: impl Fn(&TrackedSymbol) -> bool) -> usize {
        self.tracked.iter().filter(|tracked| holds(tracked)).count()
    }

    /// Whether nothing more is expected of any for `date`.
    pub fn are_settled(&self, date: Date) -> bool {
        self.tracked.iter().all(|tracked| tracked.is_settled(date))
    }

    /// Another date is due.
    pub fn begin_date(&mut self) {
        self.tracked.iter_mut().for_each(TrackedSymbol::begin_date);
    }

    /// The store was read: this is what it has. Calls under way go on, as `in_flight` says by
    /// place; what a failed job carried is gone.
    pub fn loaded(&mut self, mut stored: Vec<CandleHistory>, in_flight: impl Fn(usize) -> bool) {
        for (place, tracked) in self.tracked.iter_mut().enumerate() {
            let at = stored.iter().position(|held| held.symbol == *tracked.symbol());
            tracked.loaded(at.map(|at| stored.swap_remove(at)), in_flight(place));
        }
    }

    /// The next symbol that `source` is to be asked for.
    pub fn next_to_ask(
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
