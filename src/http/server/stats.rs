//! Counters of the HTTP layer, read for health and metrics.

use crate::ops::histogram::DurationCounts;
use crate::ops::{Counter, Durations, RefusalLines, Sharded};

/// Classes of status codes that answers have: 2xx to 5xx.
pub const STATUS_CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// What happened on the wire.
#[derive(Debug)]
pub struct HttpStats {
    pub accepted: Counter,
    pub accept_errors: Counter,
    /// Times accepting paused at the connection cap.
    pub accept_pauses: Counter,
    pub address_refusals: Counter,
    pub idle_closed: Counter,
    pub read_timeouts: Counter,
    /// Clients that took too little of their answers in time.
    pub write_timeouts: Counter,
    /// Answers cut off because all together held too much and this one was the slowest.
    pub unread_cuts: Counter,
    pub handler_panics: Counter,
    pub client_errors: Counter,
    pub server_errors: Counter,
    /// Of requests that were refused before a handler saw them.
    pub refusal_lines: RefusalLines,
    /// Requests that a handler began to answer, or that were refused before.
    begun: Sharded,
    /// From the whole request to its whole answer in the buffer, by kind, then by class.
    durations: Durations,
}

impl HttpStats {
    /// `kinds`: how many kinds of requests the service tells apart.
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

    /// One answer; `kind` 0 is none that the service knows.
    pub(crate) fn count(&self, kind: usize, status: u16, took_ns: u64) {
        match status {
            400..=499 => self.client_errors.increment(),
            500.. => self.server_errors.increment(),
            _ => {}
        }
        let class = usize::from((status / 100).clamp(2, 5) - 2);
        self.durations.record(kind * STATUS_CLASSES.len() + class, took_ns);
    }

    /// How long answers of a kind took, by class in the order of [`STATUS_CLASSES`].
    pub fn durations(&self, kind: usize) -> [DurationCounts; STATUS_CLASSES.len()] {
        let first = kind * STATUS_CLASSES.len();
        std::array::from_fn(|class| self.durations.read(first + class))
    }

    /// Requests whose answer is being made, such as those that wait for a lane.
    pub fn in_flight(&self) -> u64 {
        // The ends first: what begins meanwhile must not make the difference negative.
        let ended = self.durations.count();
        self.begun.value().saturating_sub(ended)
    }
}
