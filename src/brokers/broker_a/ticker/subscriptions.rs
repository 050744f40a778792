//! Tracks the subscribed instruments and computes the changes towards the wanted ones. Pure.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::base::{BoundedMap, Symbol};

/// An unwanted symbol stays subscribed for this long, because dashboards come back.
const UNWANTED_MS: u64 = 5 * 60_000;

/// Least time between two renewed requests for one instrument.
const RENEW_MS: u64 = 60_000;

/// Maximum number of instruments in one request.
const REQUEST_TOKENS_MAX: usize = 500;

/// Maximum number of remembered tokens; more than can be subscribed.
const TOKENS_MAX: usize = 16_384;

/// The scheduler's wishes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Ticks are useful now: the market trades, or soon will.
    pub awake: bool,
    /// Prices of indices move, so a stalled one is a fault.
    pub moves: bool,
    /// The market trades, so the broker's previous close is that of the session before.
    pub trades: bool,
    /// Indices and sectors: always subscribed.
    pub indices: Vec<Symbol>,
    /// Shares that clients ask for, the most wanted first.
    pub shares: Vec<Symbol>,
    /// Symbols whose ticks have stopped although others tick and calls return newer prices.
    pub standing: Vec<Symbol>,
}

/// Broker A's tokens of symbols, from today's answers to quote calls. Older ones are not used,
/// because the broker gives tokens of expired instruments to others.
pub(in crate::brokers::broker_a) struct KnownTokens(Mutex<BoundedMap<Symbol, u32>>);

impl Default for KnownTokens {
    fn default() -> Self {
        Self(Mutex::new(BoundedMap::evicting_in_batches(TOKENS_MAX)))
    }
}

impl KnownTokens {
    /// Takes the tokens from an answer.
    pub(in crate::brokers::broker_a) fn learn(
        &self,
        tokens: impl IntoIterator<Item = (Symbol, u32)>,
    ) {
        let mut known = self.0.lock();
        for (symbol, token) in tokens {
            known.insert(symbol, token, |_| Some(()));
        }
    }

    fn of(&self, symbol: &Symbol) -> Option<u32> {
        self.0.lock().get(symbol).copied()
    }
}

/// Changes to send to the broker.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) add: Vec<u32>,
    pub(super) drop: Vec<u32>,
}

impl Changes {
    /// The requests, each of a bounded size. Unsubscribing comes first, to stay within the limit.
    pub(super) fn requests(&self) -> Vec<String> {
        let mut requests: Vec<String> = self
            .drop
            .chunks(REQUEST_TOKENS_MAX)
            .map(|of| request("unsubscribe", of))
            .collect();
        for tokens in self.add.chunks(REQUEST_TOKENS_MAX) {
            requests.push(request("subscribe", tokens));
            // Only the mode `full` sends the exchange's time.
            requests.push(format!(r#"{{"a":"mode","v":["full",{}]}}"#, list(tokens)));
        }
        requests
    }
}

fn request(action: &str, tokens: &[u32]) -> String {
    format!(r#"{{"a":"{action}","v":{}}}"#, list(tokens))
}

fn list(tokens: &[u32]) -> String {
    let tokens: Vec<String> = tokens.iter().map(u32::to_string).collect();
    format!("[{}]", tokens.join(","))
}

/// The subscribed instruments of one connection.
#[derive(Default)]
pub(super) struct Subscriptions {
    by_token: HashMap<u32, Subscribed>,
}

struct Subscribed {
    symbol: Symbol,
    wanted_mono_ms: u64,
    /// Time of the last request for it.
    asked_mono_ms: u64,
}

impl Subscriptions {
    pub(super) fn len(&self) -> usize {
        self.by_token.len()
    }

    pub(super) fn symbol(&self, token: u32) -> Option<&Symbol> {
        self.by_token
            .get(&token)
            .map(|subscribed| &subscribed.symbol)
    }

    /// Changes that subscribe everything again.
    pub(super) fn all(&self) -> Changes {
        Changes {
            add: self.by_token.keys().copied().collect(),
            drop: Vec::new(),
        }
    }

    /// Changes to the wanted instruments, at most `max`. Indices come before wanted shares, and
    /// these before instruments that are only still subscribed.
    pub(super) fn follow(
        &mut self,
        wanted: &Wanted,
        known: &KnownTokens,
        max: usize,
        now_mono_ms: u64,
    ) -> Changes {
        let mut keep: HashMap<u32, Subscribed> = HashMap::new();
        let mut taken: HashSet<&Symbol> = HashSet::new();
        for symbol in wanted.indices.iter().chain(&wanted.shares) {
            let Some(token) = known.of(symbol) else {
                continue;
            };
            if keep.len() < max && taken.insert(symbol) {
                let symbol = symbol.clone();
                let asked_mono_ms = now_mono_ms;
                keep.insert(
                    token,
                    Subscribed {
                        symbol,
                        wanted_mono_ms: now_mono_ms,
                        asked_mono_ms,
                    },
                );
            }
        }
        let mut changes = Changes::default();
        let mut lately: Vec<(u32, Subscribed)> = self.by_token.drain().collect();
        lately.sort_unstable_by_key(|(_, subscribed)| std::cmp::Reverse(subscribed.wanted_mono_ms));
        let mut there: HashSet<u32> = HashSet::new();
        for (token, subscribed) in lately {
            there.insert(token);
            let unwanted_ms = now_mono_ms.saturating_sub(subscribed.wanted_mono_ms);
            let same = known.of(&subscribed.symbol) == Some(token);
            if let Some(kept) = keep.get_mut(&token) {
                kept.asked_mono_ms = subscribed.asked_mono_ms;
            } else if same && unwanted_ms < UNWANTED_MS && keep.len() < max {
                keep.insert(token, subscribed);
            } else {
                changes.drop.push(token);
            }
        }
        changes.add = keep
            .keys()
            .filter(|token| !there.contains(token))
            .copied()
            .collect();
        for symbol in &wanted.standing {
            let Some(token) = known.of(symbol) else {
                continue;
            };
            let Some(subscribed) = keep.get_mut(&token) else {
                continue;
            };
            if now_mono_ms.saturating_sub(subscribed.asked_mono_ms) >= RENEW_MS {
                subscribed.asked_mono_ms = now_mono_ms;
                changes.add.push(token);
            }
        }
        changes.add.sort_unstable();
        changes.drop.sort_unstable();
        self.by_token = keep;
        changes
    }
}

#[cfg(test)]
#[path = "subscriptions_tests.rs"]
mod tests;
