//! Checks the store every few seconds, on a lane of its own.
//!
//! The check notices a disk that works again although nobody writes, what an operator's command
//! changed in the store, the result of the last backup, and the state of the signing key. With it
//! goes what the edge has noted to be written without haste.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::context::WarmerContext;
use super::job::Outcomes;
use crate::store::{BackupRecord, backups};

/// Between two checks, which is how long a file that works again, or a user who was disabled, may
/// go unnoticed.
const CHECK_INTERVAL_MS: u64 = 5_000;

/// More than the check's own waits together.
const CHECK_DEADLINE_MS: u64 = 10_000;

/// Owner of the store's checks.
pub struct StoreCheck {
    outcomes: Outcomes<()>,
    in_flight: bool,
    checked_mono_ms: Option<u64>,
    /// As the last check read it.
    backup: Arc<ArcSwapOption<BackupRecord>>,
}

impl StoreCheck {
    /// The store has not been checked.
    pub fn new(outcomes: Outcomes<()>) -> Self {
        Self { outcomes, in_flight: false, checked_mono_ms: None, backup: Arc::default() }
    }

    /// Sends a check to its lane, if it is time and the last one has ended. `exchange_ms` is the
    /// newest time that a price has.
    pub fn poll(&mut self, context: &WarmerContext, exchange_ms: Option<i64>, now_mono_ms: u64) {
        let since = self.checked_mono_ms.map(|at| now_mono_ms.saturating_sub(at));
        if self.in_flight || since.is_some_and(|since_ms| since_ms < CHECK_INTERVAL_MS) {
            return;
        }
        self.checked_mono_ms = Some(now_mono_ms);
        self.in_flight = true;
        let (store, auth) = (Arc::clone(&context.store), Arc::clone(&context.auth));
        let (state_dir, backup) = (context.state_dir.clone(), Arc::clone(&self.backup));
        let identify = context.cluster.as_ref().map(|cluster| Arc::clone(&cluster.identify));
        let submitted = self.outcomes.submit(&context.store_lane, CHECK_DEADLINE_MS, move || {
            store.probe();
            if let Some(identify) = identify {
                identify(&*store);
            }
            auth.take_up_changes();
            auth.forget_expired(exchange_ms);
            auth.keep_networks();
            auth.look_after_key();
            read_backup_record(&state_dir, &backup);
        });
        if let Err(refused) = submitted {
            tracing::warn!(%refused, "store check not sent");
        }
    }

    /// What became of the last backup; `None` where none was ever tried.
    pub fn last_backup(&self) -> Option<BackupRecord> {
        self.backup.load().as_deref().copied()
    }

    /// A check ended, or was lost. Its result is in the store's health.
    pub fn ended(&mut self) {
        self.in_flight = false;
    }
}

fn read_backup_record(state_dir: &Path, backup: &ArcSwapOption<BackupRecord>) {
    match backups::read(state_dir) {
        Ok(found) => backup.store(found.map(Arc::new)),
        // The record read before stays.
        Err(error) => tracing::debug!(%error, "backup record not read"),
    }
}
