//! Counters and rate limits of the simulator: what was asked, what was turned away. Plain values
//! behind the world's locks.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Calls within a sliding span of time.
#[derive(Debug)]
pub(crate) struct Window {
    calls_max: usize,
    span_ms: u64,
    times_ms: VecDeque<u64>,
}

impl Window {
    fn new(calls_max: usize, span_ms: u64) -> Self {
        Self { calls_max, span_ms, times_ms: VecDeque::new() }
    }

    /// Counts a call at `now_ms`, unless that would be one too many.
    pub(crate) fn admit(&mut self, now_ms: u64) -> bool {
        while self
            .times_ms
            .front()
            .is_some_and(|first| now_ms.saturating_sub(*first) >= self.span_ms)
        {
            self.times_ms.pop_front();
        }
        let admitted = self.times_ms.len() < self.calls_max;
        if admitted {
            self.times_ms.push_back(now_ms);
        }
        admitted
    }
}

/// API keys whose calls are counted; of more, all are forgotten.
const KEYS_MAX: usize = 4_096;

/// The documented limits: the brokers' of each API key, whoever uses it.
#[derive(Debug)]
pub(crate) struct Limits {
    keys: HashMap<String, OfKey>,
    pub(crate) public: Window,
}

/// The limits of one API key.
#[derive(Debug)]
pub(crate) struct OfKey {
    /// Broker A's three quote calls together.
    pub(crate) quotes: Window,
    /// Broker A's candles.
    pub(crate) candles: Window,
    /// Everything else of broker A.
    pub(crate) broker_a: Window,
    pub(crate) broker_b_minute: Window,
    pub(crate) broker_b_day: Window,
}

impl Default for Limits {
    fn default() -> Self {
        // No number is published; this is the figure that users report.
        Self { keys: HashMap::new(), public: Window::new(360, 3_600_000) }
    }
}

impl Default for OfKey {
    fn default() -> Self {
        Self {
            quotes: Window::new(1, 1_000),
            candles: Window::new(3, 1_000),
            broker_a: Window::new(10, 1_000),
            broker_b_minute: Window::new(100, 60_000),
            broker_b_day: Window::new(5_000, 24 * 3_600_000),
        }
    }
}

impl Limits {
    /// Those of an API key, known or not.
    pub(crate) fn of(&mut self, api_key: &str) -> &mut OfKey {
        if self.keys.len() >= KEYS_MAX && !self.keys.contains_key(api_key) {
            self.keys.clear();
        }
        self.keys.entry(api_key.to_owned()).or_default()
    }
}

/// What was asked since the start.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    /// By route.
    pub(crate) requests: BTreeMap<&'static str, i64>,
    /// Turned away for the caller's own doing (not by a fault), by route.
    pub(crate) rejected: BTreeMap<&'static str, i64>,
    /// Most quote calls of broker A that ever came within one second, answered or not.
    pub(crate) quote_calls_in_1s_max: i64,
    quote_times_ms: VecDeque<u64>,
}

impl Stats {
    /// Counts a request that came in at `now_ms`.
    pub(crate) fn asked(&mut self, route: &'static str, is_quote: bool, now_ms: u64) {
        *self.requests.entry(route).or_default() += 1;
        if !is_quote {
            return;
        }
        while self
            .quote_times_ms
            .front()
            .is_some_and(|first| now_ms.saturating_sub(*first) >= 1_000)
        {
            self.quote_times_ms.pop_front();
        }
        self.quote_times_ms.push_back(now_ms);
        let within = self.quote_times_ms.len() as i64;
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
    fn a_window_slides() {
        let mut window = Window::new(2, 1_000);
        let admitted = [0, 999, 999, 1_000, 1_500, 1_999, 2_000].map(|at| window.admit(at));
        assert_eq!(admitted, [true, true, false, true, false, true, true]);
    }

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
