//! Counters of the HTTP server, for health and metrics.

use crate::ops::histogram::DurationCounts;
use crate::ops::{Counter, Durations, RefusalLines, Sharded};

/// Classes of status codes.
pub const STATUS_CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// Counters of connections and requests.
#[derive(Debug)]
pub struct HttpStats {
    pub accepted: Counter,
    pub accept_errors: Counter,
    /// How often accepting paused at the connection limit.
    pub accept_pauses: Counter,
    pub address_refusals: Counter,
    pub idle_closed: Counter,
    pub read_timeouts: Counter,
    /// Connections closed because the client read too slowly.
    pub write_timeouts: Counter,
    /// Connections closed because the unread output of all connections exceeded its limit and this
    /// one was the slowest.
    pub unread_cuts: Counter,
    pub handler_panics: Counter,
    pub client_errors: Counter,
    pub server_errors: Counter,
    /// Limits log lines about requests refused before a handler saw them.
    pub refusal_lines: RefusalLines,
    /// Requests whose handler was called, and requests refused before that.
    begun: Sharded,
    /// Time from the complete request to the complete response in the output buffer, by kind, then
    /// by status class.
    durations: Durations,
}

impl HttpStats {
    /// `kinds`: see [`Serve::kinds`](crate::http::Serve::kinds).
    pub(crate) fn new(kinds: usize) -> Self {
        Self {
            accepted: Counter::new(),
            accept_errors: Counter::new(),
            accept_pauses: Counter::new(),
            address_refusals: Counter::new(),
            idle_closed: Counter::new(),
            read_timeouts: Counter::new(),
            write_timeouts: Counter::new(),
            unread_cuts: Counter::new(),
            handler_panics: Counter::new(),
            client_errors: Counter::new(),
            server_errors: Counter::new(),
            refusal_lines: RefusalLines::default(),
            begun: Sharded::new(),
            durations: Durations::new((kinds + 1) * STATUS_CLASSES.len()),
        }
    }

    pub(crate) fn begin(&self) {
        self.begun.increment();
    }

    /// Counts one response. `kind` is 0 if the request is of no known kind.
    pub(crate) fn count(&self, kind: usize, status: u16, took_ns: u64) {
        match status {
            400..=499 => self.client_errors.increment(),
            500.. => self.server_errors.increment(),
            _ => {}
        }
        let class = usize::from((status / 100).clamp(2, 5) - 2);
        self.durations.record(kind * STATUS_CLASSES.len() + class, took_ns);
    }

    /// Durations of the requests of a kind, by class in the order of [`STATUS_CLASSES`].
    pub fn durations(&self, kind: usize) -> [DurationCounts; STATUS_CLASSES.len()] {
        let first = kind * STATUS_CLASSES.len();
        std::array::from_fn(|class| self.durations.read(first + class))
    }

    /// Requests being handled, including those that wait for a lane.
    pub fn in_flight(&self) -> u64 {
        // Read the ended ones first, so that the difference cannot be negative.
        let ended = self.durations.count();
        self.begun.value().saturating_sub(ended)
    }
}
