//! Limits and counters of the simulator, one set for all of its servers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

use crate::base::{BoundedMap, CallWindow};

/// Most API keys whose calls are counted. If there are more, some are forgotten.
pub(super) const KEYS_MAX: usize = 4_096;

/// The documented rate limits. Those of the brokers are per API key, whoever uses it.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(super) keys: BoundedMap<String, OfKey>,
    pub(crate) public: CallWindow,
}

/// The limits of one API key.
#[derive(Debug)]
pub(crate) struct OfKey {
    /// Broker A's three quote calls together.
    pub(crate) quotes: CallWindow,
    /// Broker A's candles.
    pub(crate) candles: CallWindow,
    /// Everything else of broker A.
    pub(crate) broker_a: CallWindow,
    pub(crate) broker_b_minute: CallWindow,
    pub(crate) broker_b_day: CallWindow,
}

impl Default for Limits {
    fn default() -> Self {
        // No number is published; this is the figure that users report.
        Self {
            keys: BoundedMap::evicting_in_batches(KEYS_MAX),
            public: CallWindow::new(360, 3_600_000),
        }
    }
}

impl Default for OfKey {
    fn default() -> Self {
        Self {
            quotes: CallWindow::new(1, 1_000),
            candles: CallWindow::new(3, 1_000),
            broker_a: CallWindow::new(10, 1_000),
            broker_b_minute: CallWindow::new(100, 60_000),
            broker_b_day: CallWindow::new(5_000, 24 * 3_600_000),
        }
    }
}

impl Limits {
    /// The limits of an API key, known or not.
    pub(crate) fn of(&mut self, api_key: &str) -> &mut OfKey {
        self.keys
            .or_insert_with(api_key.to_owned(), |_| Some(()), OfKey::default)
    }
}

/// Counters of requests since the start.
#[derive(Debug)]
pub(crate) struct Stats {
    /// Requests by route.
    pub(crate) requests: BTreeMap<&'static str, i64>,
    /// Requests rejected for a mistake of the caller, not by a fault, by route.
    pub(crate) rejected: BTreeMap<&'static str, i64>,
    /// Most quote calls of broker A that ever came within one second, answered or not.
    pub(crate) quote_calls_in_1s_max: i64,
    quotes: CallWindow,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            requests: BTreeMap::new(),
            rejected: BTreeMap::new(),
            quote_calls_in_1s_max: 0,
            quotes: CallWindow::new(usize::MAX, 1_000),
        }
    }
}

impl Stats {
    /// Counts a request that came in at `now_ms`.
    pub(crate) fn asked(&mut self, route: &'static str, is_quote: bool, now_ms: u64) {
        *self.requests.entry(route).or_default() += 1;
        if !is_quote {
            return;
        }
        self.quotes.count(1, now_ms);
        let within = self.quotes.calls(now_ms) as i64;
        self.quote_calls_in_1s_max = self.quote_calls_in_1s_max.max(within);
    }

    /// Counts a rejected request.
    pub(crate) fn turned_away(&mut self, route: &'static str) {
        *self.rejected.entry(route).or_default() += 1;
    }
}

/// Most sent prices that are remembered of watched instruments; the oldest are forgotten.
const SENT_MAX: usize = 32_768;

/// Open connections of the ticker by API key, and the number of subscriptions on all of them.
#[derive(Debug, Default)]
pub(crate) struct Tickers {
    pub(super) open: BTreeMap<String, usize>,
    pub(super) subscribed: usize,
    /// Tokens whose sent prices are remembered.
    watched: BTreeSet<i64>,
    sent: VecDeque<Sent>,
}

/// A price that went to a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) token: i64,
    pub(crate) paise: i64,
    /// The time stated in the packet.
    pub(crate) as_of: Timestamp,
    /// Wall time of the machine just before it was sent, in milliseconds.
    pub(crate) at_ms: i64,
}

impl Tickers {
    /// Remembers prices sent for these tokens from now on, and forgets all earlier ones.
    pub(crate) fn watch(&mut self, tokens: BTreeSet<i64>) {
        self.sent.clear();
        self.watched = tokens;
    }

    /// The prices sent for watched tokens, oldest first.
    pub(crate) fn sent(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter()
    }

    pub(super) fn note(&mut self, sent: Sent) {
        if self.watched.contains(&sent.token) {
            if self.sent.len() >= SENT_MAX {
                self.sent.pop_front();
            }
            self.sent.push_back(sent);
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.open.values().sum()
    }
}
