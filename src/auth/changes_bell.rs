//! Wakes the thread that reads the log of changes: after a change of this node, and when another
//! node reports one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};

/// Wakes the thread `changes`. Never blocks.
#[derive(Clone)]
pub(crate) struct ChangesBell {
    pub(super) has_own: Arc<AtomicBool>,
    wake: Sender<()>,
}

impl ChangesBell {
    /// A bell, and the channel that it wakes.
    pub(crate) fn new() -> (Self, Receiver<()>) {
        // A pending reading includes every change made before it.
        let (wake, woken) = bounded(1);
        (
            Self {
                has_own: Arc::default(),
                wake,
            },
            woken,
        )
    }

    /// Reports a change that another node has made.
    pub(crate) fn ring(&self) {
        let _ = self.wake.try_send(());
    }

    /// Reports a change of this node, which the other nodes have to learn of.
    pub(super) fn ring_own(&self) {
        self.has_own.store(true, Ordering::SeqCst);
        self.ring();
    }
}
