//! What the leader tells: quotes with their ages, and what goes with them.

use std::collections::HashMap;

use crate::base::{Epoch, Quote, Symbol};

/// A quote, and how long ago its source vouched for it. An age and no time, so that the nodes'
/// clocks do not matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Aged {
    pub quote: Quote,
    pub age_ms: u64,
}

/// What one round brought, or several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// Of the leader. Set by who publishes.
    pub epoch: Epoch,
    /// The number of the message in its epoch, from 1. Set by who publishes.
    pub seq: u64,
    /// When it was told, in milliseconds by the server's clock. Set by who publishes.
    pub told_ms: u64,
    /// The node that publishes. Set by who publishes.
    pub node: String,
    /// How long ago the leader's source vouched for the snapshot.
    pub age_ms: u64,
    /// The snapshot, in the form that its owner writes; empty if it is as before.
    pub snapshot: Vec<u8>,
    /// How far the evening's close and signals are, in the form that its owner writes; empty if it
    /// is as before.
    pub evening: Vec<u8>,
    pub quotes: Vec<Aged>,
    /// Symbols that the source does not know.
    pub unknown: Vec<Symbol>,
}

impl Update {
    /// Adds what came later; what is older by then is dropped.
    pub fn add(&mut self, newer: Self, waited_ms: u64) {
        self.grow_older(waited_ms);
        (self.epoch, self.seq, self.told_ms) = (newer.epoch, newer.seq, newer.told_ms);
        self.node = newer.node;
        if !newer.snapshot.is_empty() {
            (self.snapshot, self.age_ms) = (newer.snapshot, newer.age_ms);
        }
        if !newer.evening.is_empty() {
            self.evening = newer.evening;
        }
        let mut quotes: HashMap<Symbol, Aged> = HashMap::new();
        for aged in std::mem::take(&mut self.quotes).into_iter().chain(newer.quotes) {
            quotes.insert(aged.quote.symbol.clone(), aged);
        }
        let known = |symbol: &Symbol| quotes.contains_key(symbol);
        self.unknown.retain(|symbol| !newer.unknown.contains(symbol) && !known(symbol));
        self.unknown.extend(newer.unknown);
        self.quotes = quotes.into_values().collect();
    }

    /// Everything in it is older by so much.
    pub fn grow_older(&mut self, by_ms: u64) {
        self.age_ms = self.age_ms.saturating_add(by_ms);
        for aged in &mut self.quotes {
            aged.age_ms = aged.age_ms.saturating_add(by_ms);
        }
    }
}
