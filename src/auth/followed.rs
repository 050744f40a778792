//! What a node has followed of the log of changes, and the file that keeps it over a restart.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::auth::changes_bell::ChangesBell;
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
