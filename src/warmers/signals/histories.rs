//! The histories of all symbols of the universe, and behind them of those that are only drawn: the
//! indices and what users hold. With broker A's tokens for them. The rest of the task refers to a
//! symbol by its position here. Pure.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::civil::Date;

use crate::base::{Source, Symbol};
use crate::brokers::broker_a::Tokens;
use crate::market::instruments::embedded_instruments;
use crate::market::{IndexList, Universe};
use crate::store::CandleHistory;
use crate::warmers::signals::symbol::{Availability, Sources, TrackedSymbol};

/// All symbols with the states of their histories.
pub(crate) struct Histories {
    pub tracked: Vec<TrackedSymbol>,
    /// Number of symbols of the universe, which come first. Signals are made of these alone.
    searched: usize,
    /// Most symbols behind them, which are only drawn.
    pub chart_only_max: usize,
    pub universe: Arc<HashSet<Symbol>>,
    tokens: Tokens,
    /// Broker A's list of the day has been read, so it has no token for a symbol that lacks one
    /// here.
    tokens_learned: bool,
}

impl Histories {
    pub(crate) fn new(universe: &Universe, indices: &IndexList, chart_only_max: usize) -> Self {
        let embedded = embedded_instruments();
        let drawn = indices
            .all()
            .map(|index| TrackedSymbol::of_index(index.symbol.clone()));
        let searched = universe.symbols().iter().cloned().map(TrackedSymbol::new);
        let tracked: Vec<_> = searched.chain(drawn.take(chart_only_max)).collect();
        let wanted = tracked.iter().map(|TrackedSymbol { symbol, .. }| {
            let row = embedded.iter().find(|row| row.symbol == *symbol);
            (symbol.clone(), row.and_then(|row| row.broker_a_token))
        });
        Self {
            universe: Arc::new(universe.symbols().iter().cloned().collect()),
            searched: universe.symbols().len(),
            chart_only_max,
            tokens: Tokens::new(wanted),
            tracked,
            tokens_learned: false,
        }
    }

    /// Adds symbols that users hold, as far as there is room. They stay until the next start, and
    /// their tokens at broker A are known from its next list.
    pub(crate) fn draw(&mut self, held: Vec<Symbol>) {
        for symbol in held {
            let is_new = self.tracked.iter().all(|tracked| tracked.symbol != symbol);
            if is_new && self.tracked.len() < self.searched + self.chart_only_max {
                self.tokens.want(symbol.clone());
                self.tracked.push(TrackedSymbol::new(symbol));
            }
        }
    }

    /// Number of symbols of the universe.
    pub(crate) fn len(&self) -> usize {
        self.searched
    }

    /// Broker A's tokens, and whether the day's list has been read.
    pub(crate) fn tokens(&self) -> (&Tokens, bool) {
        (&self.tokens, self.tokens_learned)
    }

    /// Takes the tokens of the list of the day.
    pub(crate) fn learn_tokens(&mut self, tokens: Tokens) {
        self.tokens = tokens;
        self.tokens_learned = true;
    }

    /// The symbols of the universe.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TrackedSymbol> {
        self.tracked[..self.searched].iter()
    }

    pub(crate) fn count(&self, holds: impl Fn(&TrackedSymbol) -> bool) -> usize {
        self.iter().filter(|tracked| holds(tracked)).count()
    }

    /// Whether nothing more is expected of any symbol of the universe for `date`.
    pub(crate) fn are_settled(&self, date: Date) -> bool {
        self.iter().all(|tracked| tracked.is_settled(date))
    }

    pub(crate) fn begin_date(&mut self) {
        self.tracked.iter_mut().for_each(TrackedSymbol::begin_date);
    }

    /// Takes the histories that were read from the store. `in_flight` tells by position which calls
    /// are still under way; the candles of a failed job are lost.
    pub(crate) fn loaded(
        &mut self,
        mut stored: Vec<CandleHistory>,
        in_flight: impl Fn(usize) -> bool,
    ) {
        for (place, tracked) in self.tracked.iter_mut().enumerate() {
            let at = stored.iter().position(|held| held.symbol == tracked.symbol);
            tracked.history = at.map(|at| stored.swap_remove(at));
            tracked.in_flight = in_flight(place);
        }
    }

    /// The next symbol to ask `source` for: of the universe, or of those that are only drawn.
    pub(crate) fn next_to_ask(
        &mut self,
        source: Source,
        date: Date,
        usual: Sources,
        is_drawn: bool,
        now_mono_ms: u64,
    ) -> Option<usize> {
        let Self {
            tracked,
            searched,
            tokens,
            tokens_learned,
            ..
        } = self;
        let first = if is_drawn { *searched } else { 0 };
        let end = if is_drawn { tracked.len() } else { *searched };
        let found = tracked[first..end].iter_mut().position(|tracked| {
            let mut sources = usual;
            if tokens.of(&tracked.symbol).is_none()
                && usual.of[Source::BrokerA] != Availability::Absent
            {
                // Until the list of the day has been read, broker A may have one.
                let unknown = !*tokens_learned;
                sources.of[Source::BrokerA] = if unknown {
                    Availability::Later
                } else {
                    Availability::Absent
                };
            }
            tracked.source_to_ask(date, sources, now_mono_ms) == Some(source)
        });
        found.map(|at| first + at)
    }
}
