//! Which quotes of one source are fresh in the present market phase.
//!
//! Two relaxed atomics: set by the warmers, read by every look-up on the edge. Never blocks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Limits on when a quote was received.
pub(super) struct Freshness {
    stale_after_ms: AtomicU64,
    since_mono_ms: AtomicU64,
}

impl Freshness {
    pub(super) fn of(stale_after_ms: u64) -> Self {
        Self { stale_after_ms: AtomicU64::new(stale_after_ms), since_mono_ms: AtomicU64::new(0) }
    }

    /// Received longer ago than this is stale.
    pub(super) fn set_stale_after(&self, stale_after_ms: u64) {
        self.stale_after_ms.store(stale_after_ms, Relaxed);
    }

    /// Received before this is stale as well.
    pub(super) fn set_since(&self, since_mono_ms: u64) {
        self.since_mono_ms.store(since_mono_ms, Relaxed);
    }

    /// Whether a quote received then is stale now.
    pub(super) fn is_over(&self, received_mono_ms: u64, now_mono_ms: u64) -> bool {
        now_mono_ms.saturating_sub(received_mono_ms) > self.stale_after_ms.load(Relaxed)
            || received_mono_ms < self.since_mono_ms.load(Relaxed)
    }
}
