//! Counters of the HTTP layer. Relaxed; read for health and metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Count(AtomicU64);

impl Count {
    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn sum(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What happened on the wire. Requests themselves are counted in the connection table.
#[derive(Debug, Default)]
pub struct HttpStats {
    pub accepted: Count,
    pub accept_errors: Count,
    /// Times accepting paused at the connection cap.
    pub accept_pauses: Count,
    pub address_refusals: Count,
    pub idle_closed: Count,
    pub read_timeouts: Count,
    pub write_timeouts: Count,
    pub handler_panics: Count,
    pub client_errors: Count,
    pub server_errors: Count,
}

impl HttpStats {
    pub(super) fn count_status(&self, status: u16) {
        match status {
            400..=499 => self.client_errors.add(1),
            500.. => self.server_errors.add(1),
            _ => {}
        }
    }
}
