//! Counters and rate limits of the simulator: what was asked, what was turned away. Plain values
//! behind the world's locks.

use std::collections::BTreeMap;

use crate::base::{BoundedMap, CallWindow};

/// API keys whose calls are counted; of more, some are forgotten.
const KEYS_MAX: usize = 4_096;

/// The documented limits: the brokers' of each API key, whoever uses it.
#[derive(Debug)]
pub(crate) struct Limits {
    keys: BoundedMap<String, OfKey>,
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
    /// Those of an API key, known or not.
    pub(crate) fn of(&mut self, api_key: &str) -> &mut OfKey {
        self.keys.or_insert_with(api_key.to_owned(), |_| Some(()), OfKey::default)
    }
}

/// What was asked since the start.
#[derive(Debug)]
pub(crate) struct Stats {
    /// By route.
    pub(crate) requests: BTreeMap<&'static str, i64>,
    /// Turned away for the caller's own doing (not by a fault), by route.
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

    /// Counts a request that was turned away.
    pub(crate) fn turned_away(&mut self, route: &'static str) {
        *self.rejected.entry(route).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_limits_of_its_own() {
        let mut limits = Limits::default();
        assert!(limits.of("one").quotes.admit(0) && !limits.of("one").quotes.admit(0));
        assert!(limits.of("two").quotes.admit(0));
        for number in 0..2 * KEYS_MAX {
            limits.of(&number.to_string());
        }
        assert!(limits.keys.len() <= KEYS_MAX);
    }
}
