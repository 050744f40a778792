//! What health and metrics show of the relay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwapOption;

use crate::base::Epoch;

/// What the thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Connecting,
    /// Subscribed; the leader speaks.
    Following,
    /// Subscribed, and nobody publishes.
    Silent,
    /// After a failure, before the next try.
    Waiting,
}

/// The words for what the thread does.
pub const RELAY_STATES: [&str; 4] = ["connecting", "following", "silent", "waiting"];

/// Counters since the start; `state` and `age_ms` are current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayReading {
    pub state: &'static str,
    /// Since the leader was last heard; `None` before that.
    pub age_ms: Option<u64>,
    /// Epoch of the newest message.
    pub epoch: u64,
    /// The node that told it; `None` before the first.
    pub leader: Option<String>,
    pub messages: u64,
    /// Messages missed: numbers left out.
    pub gaps: u64,
    /// Messages heard twice, or of a leader that was replaced.
    pub old: u64,
    /// Times that all was read.
    pub loads: u64,
    /// Updates that waited because the one before was not taken yet.
    pub merged: u64,
    pub connects: u64,
    /// Connections that failed or broke.
    pub failures: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    state: AtomicU8,
    /// 0 is never.
    heard_mono_ms: AtomicU64,
    epoch: AtomicU64,
    leader: ArcSwapOption<String>,
    pub(super) messages: AtomicU64,
    pub(super) gaps: AtomicU64,
    pub(super) old: AtomicU64,
    pub(super) loads: AtomicU64,
    pub(super) merged: AtomicU64,
    pub(super) connects: AtomicU64,
    pub(super) failures: AtomicU64,
}

impl Counters {
    pub(super) fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    /// The leader of `epoch` told something at this time.
    pub(super) fn heard(&self, epoch: Epoch, leader: &str, told_mono_ms: u64) {
        self.heard_mono_ms.fetch_max(told_mono_ms.max(1), Relaxed);
        self.epoch.store(epoch.0, Relaxed);
        if self.leader.load().as_ref().is_none_or(|known| **known != leader) {
            self.leader.store(Some(Arc::new(leader.to_owned())));
        }
    }

    pub(super) fn read(&self, now_mono_ms: u64) -> RelayReading {
        let heard_mono_ms = self.heard_mono_ms.load(Relaxed);
        RelayReading {
            state: RELAY_STATES[usize::from(self.state.load(Relaxed)).min(3)],
            age_ms: (heard_mono_ms > 0).then(|| now_mono_ms.saturating_sub(heard_mono_ms)),
            epoch: self.epoch.load(Relaxed),
            leader: self.leader.load().as_ref().map(|leader| (**leader).clone()),
            messages: self.messages.load(Relaxed),
            gaps: self.gaps.load(Relaxed),
            old: self.old.load(Relaxed),
            loads: self.loads.load(Relaxed),
            merged: self.merged.load(Relaxed),
            connects: self.connects.load(Relaxed),
            failures: self.failures.load(Relaxed),
        }
    }
}
