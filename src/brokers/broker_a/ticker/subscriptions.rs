//! What is subscribed, and what has to change so that it is what is wanted. Pure.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::base::{BoundedMap, Symbol};

/// A symbol that nobody wants any more stays subscribed for this long: dashboards come back.
const UNWANTED_MS: u64 = 5 * 60_000;

/// An instrument that is to be asked for again is, at most so often.
const RENEW_MS: u64 = 60_000;

/// Instruments of one request.
const REQUEST_TOKENS_MAX: usize = 500;

/// Symbols whose token is remembered; more than can be subscribed.
const TOKENS_MAX: usize = 16_384;

/// What the scheduler wants of the ticker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Ticks are of use now: the market trades, or soon will.
    pub awake: bool,
    /// Prices of indices move, so that one that stands is a fault.
    pub moves: bool,
    /// The exchange's previous close is that of the session before.
    pub trades: bool,
    /// Indices and sectors: always subscribed.
    pub indices: Vec<Symbol>,
    /// Shares that clients ask for, the most wanted first.
    pub shares: Vec<Symbol>,
    /// Those whose ticks have stopped, though others tick and calls bring newer prices.
    pub standing: Vec<Symbol>,
}

/// Broker A's tokens of symbols, as today's answers to quote calls have them. The broker gives the
/// tokens of what has expired to others, so nothing older is used.
pub(in crate::brokers::broker_a) struct KnownTokens(Mutex<BoundedMap<Symbol, u32>>);

impl Default for KnownTokens {
    fn default() -> Self {
        Self(Mutex::new(BoundedMap::evicting_in_batches(TOKENS_MAX)))
    }
}

impl KnownTokens {
    /// Takes over what an answer says.
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

/// What to tell the broker.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) add: Vec<u32>,
    pub(super) drop: Vec<u32>,
}

impl Changes {
    /// As requests, each of a bounded size. Who leaves makes room first.
    pub(super) fn requests(&self) -> Vec<String> {
        let mut requests: Vec<String> =
            self.drop.chunks(REQUEST_TOKENS_MAX).map(|of| request("unsubscribe", of)).collect();
        for tokens in self.add.chunks(REQUEST_TOKENS_MAX) {
            requests.push(request("subscribe", tokens));
            // Only full packets have the exchange's time.
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

/// What is subscribed on one connection.
#[derive(Default)]
pub(super) struct Subscriptions {
    by_token: HashMap<u32, Subscribed>,
}

struct Subscribed {
    symbol: Symbol,
    wanted_mono_ms: u64,
    /// When it was last asked for.
    asked_mono_ms: u64,
}

impl Subscriptions {
    pub(super) fn len(&self) -> usize {
        self.by_token.len()
    }

    pub(super) fn symbol(&self, token: u32) -> Option<&Symbol> {
        self.by_token.get(&token).map(|subscribed| &subscribed.symbol)
    }

    /// Everything anew, as if nothing were subscribed.
    pub(super) fn all(&self) -> Changes {
        Changes { add: self.by_token.keys().copied().collect(), drop: Vec::new() }
    }

    /// Goes over to what is wanted, of at most `max`. Indices come before shares; of shares, those
    /// wanted before those that are only still there.
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
            let Some(token) = known.of(symbol) else { continue };
            if keep.len() < max && taken.insert(symbol) {
                let (symbol, asked_mono_ms) = (symbol.clone(), now_mono_ms);
                keep.insert(
                    token,
                    Subscribed { symbol, wanted_mono_ms: now_mono_ms, asked_mono_ms },
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
        changes.add = keep.keys().filter(|token| !there.contains(token)).copied().collect();
        for symbol in &wanted.standing {
            let Some(token) = known.of(symbol) else { continue };
            let Some(subscribed) = keep.get_mut(&token) else { continue };
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
