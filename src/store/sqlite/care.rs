//! Upkeep of the database file: probes it, does what an erasure left to be done, and closes it.
//! Runs on the lane of the probe, and for the close on the main thread.

use std::sync::atomic::Ordering;

use super::cleaning;
use super::store::SqliteStore;
use crate::store::StoreError;
use crate::store::condition::State;
use crate::store::transact::{
    PAGE_DEADLINE_MS, READ_DEADLINE_MS, Transact, WRITE_DEADLINE_MS, Write,
};
use crate::store::tx::{Sql, sql};

const PROBE_READ: Sql = sql!("sql/store/probe_read.sql");
pub(crate) const PROBE_WRITE: Sql = sql!("sql/store/probe_write.sql");

/// After the file has been rewritten, the next rewrite waits this many times as long as the last
/// one took, because no write is possible during it.
const CLEAN_PAUSES: u64 = 20;
/// Time for writing what waits and emptying the log.
const CLOSE_DEADLINE_MS: u64 = 10_000;

impl SqliteStore {
    /// [`Store::probe`](crate::store::traits::Store::probe).
    pub(crate) fn look_after_file(&self) {
        // Failures are recorded where they happen.
        let in_place = self.condition.expect_in_place().is_ok() && self.condition.log.in_place();
        let read =
            self.read(READ_DEADLINE_MS, |tx| tx.first(PROBE_READ, &[], |row| row.get::<i64>(0)));
        let seen = &self.condition.seen;
        let trusted = !seen.take_doubt() && seen.state() == State::Ok;
        let well = in_place && trusted && read.is_ok();
        let done = if !well {
            let written = self.write(Write::new(), |tx| tx.run(PROBE_WRITE, &[]).map(drop));
            seen.probed(&written);
            written
        } else if self.cleaning_is_due() {
            self.clean()
        } else if self.condition.log.due() {
            self.submit(WRITE_DEADLINE_MS, |ledger| {
                ledger.then_empty_log();
                Ok(())
            })
        } else {
            Ok(())
        };
        if let Err(error) = done {
            tracing::debug!(%error, "the store is still not well");
        }
    }

    /// Whether something was erased since the file was last rewritten, and the pause after the last
    /// rewrite is over.
    fn cleaning_is_due(&self) -> bool {
        self.clock.monotonic_ms() >= self.next_clean_mono_ms.load(Ordering::Relaxed)
            && self
                .read_file(READ_DEADLINE_MS, |file| {
                    cleaning::is_due(file, cleaning::RUNNING_BYTES_MAX)
                })
                .unwrap_or(false)
    }

    fn clean(&self) -> Result<(), StoreError> {
        let began_mono_ms = self.clock.monotonic_ms();
        let done = self.submit(PAGE_DEADLINE_MS, |ledger| {
            ledger.then_clean();
            Ok(())
        });
        let now_mono_ms = self.clock.monotonic_ms();
        let pause_ms = now_mono_ms.saturating_sub(began_mono_ms) * CLEAN_PAUSES;
        self.next_clean_mono_ms.store(now_mono_ms + pause_ms, Ordering::Relaxed);
        done
    }

    /// [`Store::close`](crate::store::traits::Store::close).
    pub(crate) fn close_file(&self) {
        let closed = self.submit(CLOSE_DEADLINE_MS, |ledger| {
            ledger.then_close();
            Ok(())
        });
        if let Err(error) = closed {
            tracing::warn!(%error, "the database was not closed; its log stays beside it");
        }
    }
}
