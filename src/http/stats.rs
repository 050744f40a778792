//! Counters of the HTTP layer, read for health and metrics.

use crate::ops::Counter;

/// What happened on the wire. Requests themselves are counted in the connection table.
#[derive(Debug, Default)]
pub struct HttpStats {
    pub accepted: Counter,
    pub accept_errors: Counter,
    /// Times accepting paused at the connection cap.
    pub accept_pauses: Counter,
    pub address_refusals: Counter,
    pub idle_closed: Counter,
    pub read_timeouts: Counter,
    pub write_timeouts: Counter,
    pub handler_panics: Counter,
    pub client_errors: Counter,
    pub server_errors: Counter,
}

impl HttpStats {
    pub(super) fn count_status(&self, status: u16) {
        match status {
            400..=499 => self.client_errors.increment(),
            500.. => self.server_errors.increment(),
            _ => {}
        }
    }
}
