//! Checks the store every few seconds, on its own lane.
//!
//! The check notices a disk that works again without a write, changes by an operator's command, the
//! result of the last backup, and the state of the signing key. It also writes the networks that
//! the edge has noted, and removes imports that were never confirmed.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::rt::lanes::Outcomes;
use crate::store::{BackupRecord, Store, backups};
use crate::warmers::context::WarmerContext;

/// Interval between two checks. A repaired disk or a disabled user may go unnoticed for this long.
const CHECK_INTERVAL_MS: u64 = 5_000;

/// Interval between two sweeps of imports.
const SWEEP_INTERVAL_MS: u64 = 60_000;

/// Longer than all waits of a check together.
const CHECK_DEADLINE_MS: u64 = 10_000;

/// Owner of the store's checks.
pub(crate) struct StoreCheck {
    outcomes: Outcomes<()>,
    /// A check is under way. Its result will be in the store's health.
    pub in_flight: bool,
    checked_mono_ms: Option<u64>,
    swept_mono_ms: Option<u64>,
    /// The backup record at the last check.
    backup: Arc<ArcSwapOption<BackupRecord>>,
}

impl StoreCheck {
    pub(super) fn new(outcomes: Outcomes<()>) -> Self {
        Self {
            outcomes,
            in_flight: false,
            checked_mono_ms: None,
            swept_mono_ms: None,
            backup: Arc::default(),
        }
    }

    /// Sends a check to its lane if one is due and the last one has ended. `exchange_ms` is the
    /// exchange's time of the newest price.
    pub(super) fn poll(
        &mut self,
        context: &WarmerContext,
        exchange_ms: Option<i64>,
        now_mono_ms: u64,
    ) {
        let since = self
            .checked_mono_ms
            .map(|at| now_mono_ms.saturating_sub(at));
        if self.in_flight || since.is_some_and(|since_ms| since_ms < CHECK_INTERVAL_MS) {
            return;
        }
        self.checked_mono_ms = Some(now_mono_ms);
        self.in_flight = true;
        let since_sweep = self.swept_mono_ms.map(|at| now_mono_ms.saturating_sub(at));
        let sweeps = since_sweep.is_none_or(|since_ms| since_ms >= SWEEP_INTERVAL_MS);
        if sweeps {
            self.swept_mono_ms = Some(now_mono_ms);
        }
        let now_ms = context.clock.now_ms();
        let store = Arc::clone(&context.store);
        let auth = Arc::clone(&context.auth);
        let state_dir = context.state_dir.clone();
        let backup = Arc::clone(&self.backup);
        let shared = context
            .nodes
            .as_ref()
            .and_then(|nodes| nodes.shared.as_ref());
        let identify = shared.map(|shared| Arc::clone(&shared.identify));
        let submitted = self
            .outcomes
            .submit(&context.store_lane, CHECK_DEADLINE_MS, move || {
                store.probe();
                if let Some(identify) = identify {
                    identify(&store);
                }
                auth.take_up_changes();
                auth.write_endings();
                auth.forget_expired(exchange_ms);
                auth.keep_networks();
                auth.look_after_key();
                read_backup_record(&state_dir, &backup);
                if sweeps {
                    sweep_imports(&store, now_ms);
                }
            });
        if let Err(refused) = submitted {
            tracing::warn!(%refused, "the database was not checked; trying again");
        }
    }

    /// Result of the last backup; `None` if none was ever tried.
    pub(crate) fn last_backup(&self) -> Option<BackupRecord> {
        self.backup.load().as_deref().copied()
    }
}

fn sweep_imports(store: &Store, now_ms: i64) {
    match store.sweep_imports(now_ms) {
        Ok(0) => {}
        Ok(imports) => tracing::debug!(imports, "imports that nobody confirmed are removed"),
        Err(error) => tracing::debug!(%error, "imports that nobody confirmed are not removed yet"),
    }
}

fn read_backup_record(state_dir: &Path, backup: &ArcSwapOption<BackupRecord>) {
    match backups::read(state_dir) {
        Ok(found) => backup.store(found.map(Arc::new)),
        // The previous record stays in use.
        Err(error) => tracing::debug!(%error, "backup record not read"),
    }
}
