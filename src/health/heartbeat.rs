//! The scheduler's heartbeat: when it last finished a tick, and what is being served.
//!
//! Written by the scheduler after each tick, read from any thread. No locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::market::snapshot::MarketView;
use crate::market::{Age, Phase, Snapshot};
use arc_swap::ArcSwapOption;

/// What the published snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serving {
    /// How old the primary index's price is.
    pub age: Age,
    pub phase: Phase,
}

impl Serving {
    /// What an operator wants to know of a snapshot.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let MarketView { age, phase, .. } = snapshot.market;
        Self { age, phase }
    }
}

/// When the scheduler last finished a tick, and what it serves.
#[derive(Debug, Default)]
pub struct Heartbeat {
    beat_mono_ms: AtomicU64,
    serving: ArcSwapOption<Serving>,
}

impl Heartbeat {
    /// The scheduler has finished a tick.
    pub(crate) fn beat(&self, now_mono_ms: u64, serving: Option<Serving>) {
        if serving != self.serving() {
            self.serving.store(serving.map(Arc::new));
        }
        self.beat_mono_ms.store(now_mono_ms, Ordering::Release);
    }

    /// Monotonic time of its last tick.
    pub(crate) fn beat_mono_ms(&self) -> u64 {
        self.beat_mono_ms.load(Ordering::Acquire)
    }

    /// What has been served since; `None` before there is a snapshot.
    pub(crate) fn serving(&self) -> Option<Serving> {
        self.serving.load().as_deref().copied()
    }
}
