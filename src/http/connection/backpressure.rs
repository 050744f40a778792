//! Output that waits for slow readers: how much all connections hold together, and who is cut off
//! when that is too much.
//!
//! Runs in connections' coroutines. The lock is held for a few instructions, except past the
//! limit, where the holders are walked once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use may::io::WaitIoWaker;
use parking_lot::Mutex;

use crate::base::limiter::{Limiter, Rate};

/// Output waiting for slow readers, all connections together: past it the slowest lose.
pub const UNREAD_OUTPUT_TOTAL_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What a client must take of its answers within the timeout of unread output, again and again: 64
/// KiB in the usual 30 seconds are slower than any network on which a dashboard can be used, and
/// who takes less holds memory for longer than a page is open.
pub const PACE_BYTES: usize = 64 * 1024;

/// A client that does not read costs at most one line of the log in this time; the line says how
/// many there were.
const LOG_EVERY_MS: u64 = 10_000;

/// Who holds unread output.
pub struct Backpressure {
    bytes: AtomicUsize,
    /// By the connection's number.
    holders: Mutex<HashMap<u32, Holder>>,
    lines: Limiter,
    /// Connections cut off since the last line.
    unsaid: AtomicU64,
}

struct Holder {
    bytes: usize,
    state: Arc<State>,
    waker: WaitIoWaker,
}

struct State {
    /// When the client last took [`PACE_BYTES`], or began to hold.
    renewed_ms: AtomicU64,
    is_cut: AtomicBool,
}

/// Why a client is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It took too little in time.
    Slow,
    /// All together held too much, and nobody had stood still for longer.
    Crowded,
}

impl Default for Backpressure {
    fn default() -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            holders: Mutex::default(),
            lines: Limiter::new(Rate::every_ms(LOG_EVERY_MS)),
            unsaid: AtomicU64::new(0),
        }
    }
}

impl Backpressure {
    /// Bytes held by all together.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes a share for a connection. Whoever has stood still for longest is cut off, one after
    /// the other, until all shares fit: that may be this one.
    pub fn hold(&self, number: u32, bytes: usize, now_ms: u64, waker: WaitIoWaker) -> Held<'_> {
        let renewed_ms = AtomicU64::new(now_ms);
        let state = Arc::new(State { renewed_ms, is_cut: AtomicBool::new(false) });
        let mut holders = self.holders.lock();
        holders.insert(number, Holder { bytes, state: Arc::clone(&state), waker });
        let mut total = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        while total > UNREAD_OUTPUT_TOTAL_BYTES_MAX {
            // Of those that moved at the same time the largest.
            let slowest = holders.iter().min_by_key(|(_, holder)| {
                (holder.state.renewed_ms.load(Ordering::Relaxed), usize::MAX - holder.bytes)
            });
            let Some(number) = slowest.map(|(number, _)| *number) else { break };
            let Some(holder) = holders.remove(&number) else { break };
            self.bytes.fetch_sub(holder.bytes, Ordering::Relaxed);
            total -= holder.bytes;
            holder.state.is_cut.store(true, Ordering::Relaxed);
            holder.waker.wakeup();
        }
        drop(holders);
        Held { unread: self, number, state }
    }

    /// Logs that somebody was cut off, if nothing was said of that lately.
    pub fn note_cut(&self, why: Cut, unread_bytes: usize, now_ms: u64) {
        self.unsaid.fetch_add(1, Ordering::Relaxed);
        if self.lines.admit(now_ms).is_err() {
            return;
        }
        let connections = self.unsaid.swap(0, Ordering::Relaxed);
        let (held_bytes, max_bytes) = (self.bytes(), UNREAD_OUTPUT_TOTAL_BYTES_MAX);
        let why = match why {
            Cut::Slow => "the client reads too slowly",
            Cut::Crowded => "all unread answers together are too much, and it was the slowest",
        };
        tracing::warn!(
            why,
            unread_bytes,
            held_bytes,
            max_bytes,
            connections,
            "answers cut off before they were read"
        );
    }
}

/// A connection's share, given back on drop.
pub struct Held<'a> {
    unread: &'a Backpressure,
    number: u32,
    state: Arc<State>,
}

impl Held<'_> {
    /// Whether others need the memory more.
    pub fn is_cut(&self) -> bool {
        self.state.is_cut.load(Ordering::Relaxed)
    }

    /// The client has taken [`PACE_BYTES`] more.
    pub fn renew(&self, now_ms: u64) {
        self.state.renewed_ms.store(now_ms, Ordering::Relaxed);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut holders = self.unread.holders.lock();
        // One that was cut has lost its share already.
        if !self.is_cut()
            && let Some(holder) = holders.remove(&self.number)
        {
            self.unread.bytes.fetch_sub(holder.bytes, Ordering::Relaxed);
        }
    }
}
