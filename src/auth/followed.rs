//! What a node has followed of the log of changes, the file that keeps it over a restart, and the
//! bell that asks for a reading.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::store::{LastRead, small_file};

/// Progress of reading the changes.
#[derive(Default)]
pub(super) struct Followed {
    /// The last change that was applied. Locked while changes are applied, never while something
    /// parks.
    pub(super) read: Mutex<LastRead>,
    /// Content of the file.
    pub(super) kept: Mutex<Option<Mark>>,
    /// Start of the last complete reading; monotonic.
    pub(super) read_mono_ms: AtomicU64,
    /// Set on one node of several.
    pub(super) bell: OnceLock<ChangesBell>,
    pub(super) is_failing: AtomicBool,
}

impl Followed {
    /// Starts with the mark of the last run, if its file can be read. Blocks.
    pub(super) fn since_last_run(state_dir: &Path) -> Self {
        let bytes = small_file::read(&state_dir.join(MARK_FILE)).ok().flatten();
        let kept = bytes.and_then(|bytes| sonic_rs::from_slice(&bytes).ok());
        Self {
            kept: Mutex::new(kept),
            ..Self::default()
        }
    }
}

/// The file in the state directory with the last change read.
pub(super) const MARK_FILE: &str = "changes.mark";

/// Content of that file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) incarnation: String,
    pub(super) number: i64,
    pub(super) mark: Option<i64>,
}

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
