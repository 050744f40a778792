//! Looks after the store and what lies beside it: has it probed now and then, so that a disk that
//! works again is noticed though nobody writes, and so is what an operator's command changed in it
//! or noted of a backup, and what became of the signing key. On the scheduler's thread; the probe
//! itself runs on a lane.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use crossbeam_channel::Sender;

use super::context::WarmerContext;
use super::event::Event;
use super::event::JobReport;
use crate::store::{BackupRecord, backups};

/// Between two probes, which is how long a file that works again, or a user who was disabled, may
/// go unnoticed.
const PROBE_INTERVAL_MS: u64 = 5_000;

/// More than the probe's own waits together.
const PROBE_DEADLINE_MS: u64 = 10_000;

/// When the store was probed.
#[derive(Default)]
pub struct StoreProbe {
    in_flight: bool,
    probed_mono_ms: Option<u64>,
    /// As the last probe read it.
    backup: Arc<ArcSwapOption<BackupRecord>>,
}

impl StoreProbe {
    /// Sends a probe to its lane, if it is time and the last one has ended. `exchange_ms` is the
    /// newest time that a price has.
    pub fn poll(
        &mut self,
        parts: &WarmerContext,
        exchange_ms: Option<i64>,
        now_mono_ms: u64,
        events: &Sender<Event>,
    ) {
        let since = self.probed_mono_ms.map(|at| now_mono_ms.saturating_sub(at));
        if self.in_flight || since.is_some_and(|since_ms| since_ms < PROBE_INTERVAL_MS) {
            return;
        }
        self.probed_mono_ms = Some(now_mono_ms);
        self.in_flight = true;
        let as_event = |_: Option<()>| Event::StoreProbed;
        let report = JobReport { events: events.clone(), outcome: None, as_event };
        let (store, auth) = (Arc::clone(&parts.store), Arc::clone(&parts.auth));
        let (state_dir, backup) = (parts.state_dir.clone(), Arc::clone(&self.backup));
        let submitted = parts.store_lane.submit(PROBE_DEADLINE_MS, move || {
            store.probe();
            auth.notice_outside_changes();
            auth.forget_expired(exchange_ms);
            auth.look_after_key();
            look(&state_dir, &backup);
            drop(report);
        });
        if let Err(refused) = submitted {
            tracing::warn!(%refused, "the store was not probed");
        }
    }

    /// What became of the last backup; `None` where none was ever tried.
    pub fn last_backup(&self) -> Option<BackupRecord> {
        self.backup.load().as_deref().copied()
    }

    /// A probe ended, or was lost; the store itself knows what it saw.
    pub fn ended(&mut self) {
        self.in_flight = false;
    }
}

fn look(state_dir: &Path, backup: &ArcSwapOption<BackupRecord>) {
    match backups::read(state_dir) {
        Ok(found) => backup.store(found.map(Arc::new)),
        // What was seen before is still true of then.
        Err(error) => tracing::debug!(%error, "no word of the last backup"),
    }
}
