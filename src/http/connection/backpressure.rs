//! Memory limit for output that clients have not read yet, over all connections together. When it
//! is exceeded, the connections that have made no progress for longest are cut off.
//!
//! Runs in the connections' coroutines and on the threads that write streams. The lock is held for
//! a few instructions, except when the limit is exceeded: then all holders are scanned.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::base::limiter::{Limiter, Rate};
use crate::http::server::connection_table::Waker;

/// Limit of unread output, all connections together. Above it the slowest connections are cut off.
pub const UNREAD_OUTPUT_TOTAL_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes that a client must read within each `unread_output_timeout_ms`. With the default of 30
/// seconds this is slower than any network on which a dashboard is usable.
const PACE_BYTES: usize = 64 * 1024;

/// Least time between two log lines about connections cut off. Each line has their number.
const LOG_EVERY_MS: u64 = 10_000;

/// The unread output of all connections.
pub struct Backpressure {
    bytes: AtomicUsize,
    /// By the connection's index in the connection table.
    holders: Mutex<HashMap<u32, Holder>>,
    log_limit: Limiter,
    /// Connections cut off since the last log line.
    unlogged_cuts: AtomicU64,
}

struct Holder {
    bytes: usize,
    state: Arc<State>,
    waker: Waker,
}

struct State {
    /// Time at which the client last completed reading [`PACE_BYTES`], or began to hold output.
    renewed_ms: AtomicU64,
    is_cut: AtomicBool,
}

/// The reason for cutting off a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It read less than [`PACE_BYTES`] in time.
    Slow,
    /// The limit over all connections was exceeded, and this one had made no progress for longest.
    Crowded,
}

impl Default for Backpressure {
    fn default() -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            holders: Mutex::default(),
            log_limit: Limiter::new(Rate::every_ms(LOG_EVERY_MS)),
            unlogged_cuts: AtomicU64::new(0),
        }
    }
}

impl Backpressure {
    /// Bytes of unread output, all connections together.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Registers `bytes` of unread output for a connection. While the total exceeds the limit, the
    /// connection that has made no progress for longest is cut off; that may be this one.
    pub(crate) fn hold(
        self: &Arc<Self>,
        number: u32,
        bytes: usize,
        now_ms: u64,
        waker: Waker,
    ) -> Held {
        let renewed_ms = AtomicU64::new(now_ms);
        let state = Arc::new(State {
            renewed_ms,
            is_cut: AtomicBool::new(false),
        });
        let mut holders = self.holders.lock();
        holders.insert(
            number,
            Holder {
                bytes,
                state: Arc::clone(&state),
                waker,
            },
        );
        let mut total = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        while total > UNREAD_OUTPUT_TOTAL_BYTES_MAX {
            // Among equally slow ones, the one that holds most.
            let slowest = holders.iter().min_by_key(|(_, holder)| {
                (holder.state.renewed_ms.load(Ordering::Relaxed), usize::MAX - holder.bytes)
            });
            let Some(number) = slowest.map(|(number, _)| *number) else {
                break;
            };
            let Some(holder) = holders.remove(&number) else {
                break;
            };
            self.bytes.fetch_sub(holder.bytes, Ordering::Relaxed);
            total -= holder.bytes;
            holder.state.is_cut.store(true, Ordering::Relaxed);
            holder.waker.wake();
        }
        drop(holders);
        Held {
            unread: Arc::clone(self),
            number,
            state,
            taken_bytes: 0,
        }
    }

    /// Logs that a connection was cut off, at most once in `LOG_EVERY_MS`.
    pub(crate) fn log_cut(&self, why: Cut, unread_bytes: usize, now_ms: u64) {
        self.unlogged_cuts.fetch_add(1, Ordering::Relaxed);
        if self.log_limit.admit(now_ms).is_err() {
            return;
        }
        let connections = self.unlogged_cuts.swap(0, Ordering::Relaxed);
        let held_bytes = self.bytes();
        let max_bytes = UNREAD_OUTPUT_TOTAL_BYTES_MAX;
        let why = match why {
            Cut::Slow => "the client reads too slowly",
            Cut::Crowded => "unread output of all clients exceeds its limit; this was the slowest",
        };
        tracing::warn!(
            why,
            unread_bytes,
            held_bytes,
            max_bytes,
            connections,
            "connection closed: its client does not read the responses"
        );
    }
}

/// A connection's registered output; unregistered on drop.
pub struct Held {
    unread: Arc<Backpressure>,
    number: u32,
    state: Arc<State>,
    /// Bytes that the client has read since it last earned a new timeout.
    taken_bytes: usize,
}

impl Held {
    /// Whether the connection was cut off, because the limit over all connections was exceeded.
    pub(crate) fn is_cut(&self) -> bool {
        self.state.is_cut.load(Ordering::Relaxed)
    }

    /// Counts `bytes` read by the client. True if it has earned a new timeout, having read
    /// [`PACE_BYTES`] since the last one.
    pub(crate) fn is_kept_up_by(&mut self, bytes: usize, now_ms: u64) -> bool {
        self.taken_bytes += bytes;
        let is_enough = self.taken_bytes >= PACE_BYTES;
        if is_enough {
            self.taken_bytes = 0;
            self.state.renewed_ms.store(now_ms, Ordering::Relaxed);
        }
        is_enough
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut holders = self.unread.holders.lock();
        // `hold` has already unregistered a connection that it cut off.
        if !self.is_cut()
            && let Some(holder) = holders.remove(&self.number)
        {
            self.unread.bytes.fetch_sub(holder.bytes, Ordering::Relaxed);
        }
    }
}
