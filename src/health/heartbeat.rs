//! What the main thread sees of the scheduler: that it gets on, and what is being served.
//!
//! Written by the scheduler after each round of work, read from anywhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::market::snapshot::MarketView;
use crate::market::{Age, Phase, Snapshot};
use arc_swap::ArcSwapOption;

/// What the published snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
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

/// The scheduler's sign of life.
#[derive(Debug, Default)]
pub struct Heartbeat {
    beat_mono_ms: AtomicU64,
    serving: ArcSwapOption<Serving>,
}

impl Heartbeat {
    /// The scheduler has done a round.
    pub(crate) fn beat(&self, now_mono_ms: u64, serving: Option<Serving>) {
        if serving != self.serving() {
            self.serving.store(serving.map(Arc::new));
        }
        self.beat_mono_ms.store(now_mono_ms, Ordering::Release);
    }

    /// When it last did.
    pub fn beat_mono_ms(&self) -> u64 {
        self.beat_mono_ms.load(Ordering::Acquire)
    }

    /// What is served since; `None` before there is a snapshot.
    pub fn serving(&self) -> Option<Serving> {
        self.serving.load().as_deref().copied()
    }
}
