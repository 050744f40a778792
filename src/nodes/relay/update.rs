//! The message of the leader, the list of symbols that a node wants, and the bytes of both. Pure.
//!
//! Prices are sent as the leader judged them: with the time since their source vouched for them,
//! and with the rules by which they become stale. Times are sent as durations, because each node
//! has a monotonic clock of its own. So every node shows the same bytes at the same time.
//!
//! The server keeps and passes on signed values (`nodes/valkey/installation.rs`). Their epoch and
//! number are the message's, or 0 and the time at which a node sent its list. The body is JSON with
//! a version (`encoding`). Bytes that are over a limit or make no plausible quote are refused as a
//! whole: only a program that is not ours writes them.

use std::collections::HashMap;

use jiff::civil::Date;

use crate::base::{Quote, Source, Symbol};
use crate::cache::{FreshnessRules, Vouched};
use crate::market::{IndexList, InstrumentList, Origin};
use crate::store::Epoch;

/// Most quotes, and most unknown symbols, of a message: what a ticker gives and some more.
pub(super) const SYMBOLS_MAX: usize = 10_000;
/// Most symbols that one node wants: one of broker A's batches.
pub(crate) const WANTED_MAX: usize = 500;
/// Largest message: that many quotes of some 250 bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The calls after which the leading indices are asked again, by source.
pub(super) type Calls = [u8; Source::ALL.len()];

/// The message of the leader: the content of one round, or of several together.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// Epoch of the leader. The publisher sets this and the next three fields.
    pub epoch: Epoch,
    /// The number of the message in its epoch, from 1.
    pub seq: u64,
    /// Time at which it was sent, in milliseconds by the server's clock.
    pub sent_ms: u64,
    /// The node that sends.
    pub node: String,
    /// Age of the update.
    pub age_ms: u64,
    pub rules: FreshnessRules,
    pub(super) calls: Calls,
    pub evening: Evening,
    /// The quotes of the snapshot, and those that were brought or confirmed since the last message.
    pub quotes: Vec<Aged>,
    /// Symbols that no source knows.
    pub unknown: Vec<Symbol>,
}

impl Update {
    /// An update without prices.
    pub fn new(rules: FreshnessRules, evening: Evening) -> Self {
        Self {
            epoch: Epoch::default(),
            seq: 0,
            sent_ms: 0,
            node: String::new(),
            age_ms: 0,
            rules,
            calls: [1; Source::ALL.len()],
            evening,
            quotes: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// Adds a quote as the leader holds it.
    pub fn add_quote(&mut self, quote: Quote, vouched: Vouched, now_mono_ms: u64) {
        let calls = &mut self.calls[quote.source as usize];
        *calls = vouched.calls.max(*calls);
        let age_ms = match vouched.mono_ms {
            never if never == Vouched::NEVER.mono_ms => Aged::NEVER_MS,
            mono_ms => (now_mono_ms as i64)
                .saturating_sub(mono_ms)
                .max(0)
                .unsigned_abs(),
        };
        self.quotes.push(Aged { quote, age_ms });
    }

    /// The quotes for a node that receives this now. Messages state the calls of the leading
    /// indices only; all other symbols are polled in turn.
    pub(crate) fn take_quotes(
        &mut self,
        now_mono_ms: u64,
        indices: &IndexList,
    ) -> Vec<(Quote, Vouched)> {
        let calls = self.calls;
        let held = |Aged { quote, age_ms }: Aged| {
            let leads = indices
                .leads()
                .iter()
                .any(|lead| lead.symbol == quote.symbol);
            let vouched = i64::try_from(age_ms).map_or(Vouched::NEVER, |age_ms| Vouched {
                mono_ms: (now_mono_ms as i64).saturating_sub(age_ms),
                calls: if leads {
                    calls[quote.source as usize]
                } else {
                    Vouched::IN_TURN
                },
            });
            (quote, vouched)
        };
        std::mem::take(&mut self.quotes)
            .into_iter()
            .map(held)
            .collect()
    }

    /// Merges a later update into this one, which has waited.
    pub(super) fn add(&mut self, mut newer: Self, waited_ms: u64) {
        self.grow_older(waited_ms);
        let waits = std::mem::take(&mut self.quotes).into_iter();
        let quotes: HashMap<Symbol, Aged> = waits
            .chain(std::mem::take(&mut newer.quotes))
            .map(|aged| (aged.quote.symbol.clone(), aged))
            .collect();
        let is_news = |symbol: &Symbol| !newer.unknown.contains(symbol);
        self.unknown
            .retain(|symbol| is_news(symbol) && !quotes.contains_key(symbol));
        newer.unknown.append(&mut self.unknown);
        *self = Self {
            quotes: quotes.into_values().collect(),
            ..newer
        };
    }

    /// Makes everything in it older by this time.
    pub(super) fn grow_older(&mut self, by_ms: u64) {
        self.age_ms = self.age_ms.saturating_add(by_ms);
        for aged in &mut self.quotes {
            aged.age_ms = aged.age_ms.saturating_add(by_ms);
        }
    }
}

/// A quote, and how long ago its source vouched for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Aged {
    pub quote: Quote,
    pub age_ms: u64,
}

impl Aged {
    /// Nobody has vouched for it since the leader's start.
    pub(super) const NEVER_MS: u64 = u64::MAX;
}

/// The state of the store and of the second level, from where every node reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evening {
    /// The date whose signals were published last.
    pub signals: Option<Date>,
    /// The date of broker A's list of instruments; `None` before the first.
    pub instruments: Option<Date>,
}

impl Evening {
    /// The state at this node.
    pub(crate) fn of(signals: Option<Date>, list: &InstrumentList) -> Self {
        let fetched = list.origin() == Origin::BrokerA;
        Self {
            signals,
            instruments: fetched.then(|| list.as_of()),
        }
    }
}

#[cfg(test)]
#[path = "update_tests.rs"]
pub(crate) mod tests;
