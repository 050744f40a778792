//! The store in one SQLite file: one writer that groups commits, and a few readers.
//!
//! The methods run on the caller, which parks (coroutine) or blocks (thread) until the result is
//! there. The work runs on the writer's thread or on the readers' lane.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rusqlite::Connection;

use super::cleaning;
use super::condition::Condition;
use super::errors::OpenError;
use super::readers::Readers;
use super::writer::SqliteLedger;
use crate::base::{Clock, Epoch};
use crate::ops::DurationCounts;
use crate::ops::state_lock::InstanceLock;
use crate::rt::{Batch, BatchSpec, Lane, LaneError, LaneSpec, Ticket};
use crate::store::settings::StoreSettings;
use crate::store::transact::{Transact, WRITE_DEADLINE_MS, Write};
use crate::store::tx::{Failure, Tx};
use crate::store::{AccountId, StoreError, StoreHealth, Turn};

/// The file's name in the state directory.
pub const FILE_NAME: &str = "bhav.sqlite";

/// Reader threads where the settings do not say. More help only if the disk is slow.
const READERS: usize = 2;
/// Most waiting requests of each kind. Beyond it, an immediate refusal is better than a wait that
/// times out.
const READS_WAITING_MAX: usize = 1_024;
const WRITES_WAITING_MAX: usize = 1_024;

/// [`Store`](crate::store::Store) on SQLite.
pub struct SqliteStore {
    writer: Batch<SqliteLedger>,
    reader_lane: Lane,
    readers: Arc<Readers>,
    pub(crate) condition: Arc<Condition>,
    pub(crate) clock: Clock,
    /// Monotonic time from which the file may be rewritten.
    pub(crate) next_clean_mono_ms: AtomicU64,
}

impl SqliteStore {
    /// Same as [`open_with`](Self::open_with), with all settings but `readers` at their defaults,
    /// for use where no other instance is possible.
    ///
    /// # Errors
    /// Same as for [`open_with`](Self::open_with).
    pub fn open(path: &Path, readers: usize, clock: &Clock) -> Result<Self, OpenError> {
        let settings = StoreSettings { readers, ..StoreSettings::default() };
        Self::open_with(path, &settings, None, clock)
    }

    /// Opens the file at `path`; makes or migrates it if needed. If the file cannot be used, the
    /// store reports that and tries again. With a `lock`, nothing is written while it is not held.
    ///
    /// # Errors
    /// A newer schema, a foreign file, or a thread that could not be started.
    pub fn open_with(
        path: &Path,
        settings: &StoreSettings,
        lock: Option<Arc<InstanceLock>>,
        clock: &Clock,
    ) -> Result<Self, OpenError> {
        let condition = Arc::new(Condition::new(path, lock));
        let readers = Arc::new(Readers::new(Arc::clone(&condition)));
        let ledger = SqliteLedger::open(Arc::clone(&condition), Arc::clone(&readers))?;
        Self::start(settings, clock, ledger, readers, condition).map_err(OpenError::System)
    }

    fn start(
        settings: &StoreSettings,
        clock: &Clock,
        ledger: SqliteLedger,
        readers: Arc<Readers>,
        condition: Arc<Condition>,
    ) -> io::Result<Self> {
        let writer = BatchSpec {
            name: "store-writer",
            queue_max: WRITES_WAITING_MAX,
            batch_max: settings.writes_per_commit_max,
        };
        let lane = LaneSpec {
            name: "store-reader",
            threads: if settings.readers == 0 { READERS } else { settings.readers },
            queue_max: READS_WAITING_MAX,
        };
        Ok(Self {
            writer: Batch::start(&writer, clock, ledger)?,
            reader_lane: Lane::start(&lane, clock)?,
            readers,
            condition,
            clock: clock.clone(),
            next_clean_mono_ms: AtomicU64::new(0),
        })
    }

    pub(crate) fn read_file<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = Arc::clone(&self.readers);
        let ticket = self.reader_lane.submit(deadline_ms, move || readers.work(work));
        let outcome = ticket.map_err(|_| StoreError::Busy).map(Ticket::wait);
        self.result_for_caller(outcome)
    }

    pub(crate) fn write_file<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(deadline_ms, move |ledger| ledger.work(work))
    }

    pub(crate) fn submit<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        job: impl FnOnce(&mut SqliteLedger) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ticket = self.writer.submit(deadline_ms, job);
        let outcome = ticket.map_err(|_| StoreError::Busy).map(Ticket::wait);
        self.result_for_caller(outcome)
    }

    /// The caller's result. Counts operations that failed for lack of time, room or a usable file.
    fn result_for_caller<T>(
        &self,
        outcome: Result<Result<Result<T, StoreError>, LaneError>, StoreError>,
    ) -> Result<T, StoreError> {
        let result = outcome.and_then(|waited| match waited {
            Ok(done) => done,
            Err(LaneError::Late) => Err(StoreError::Late),
            Err(error @ (LaneError::Panicked | LaneError::Closed)) => {
                Err(StoreError::Unavailable(error.to_string()))
            }
        });
        if let Err(StoreError::Busy | StoreError::Late | StoreError::Unavailable(_)) = &result {
            self.condition.count_refused();
        }
        result
    }
}

impl Transact for SqliteStore {
    const HAS_SEVERAL_NODES: bool = false;

    /// One process has the file, so nobody else can lead.
    fn hold(_tx: &dyn Tx, _epoch: Epoch) -> Result<(), Failure> {
        Ok(())
    }

    /// Nor change a portfolio: the process has its own order for that.
    fn hold_turn(_tx: &dyn Tx, _turn: &Turn) -> Result<(), Failure> {
        Ok(())
    }

    fn begin_turn(&self, id: AccountId) -> Result<Option<Turn>, StoreError> {
        Ok(Some(Turn::alone(id)))
    }

    fn prolong_turn(&self, _turn: &Turn) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn finish_turn(&self, _turn: &Turn) -> Result<(), StoreError> {
        Ok(())
    }

    fn read<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read_file(deadline_ms, move |file| work(file))
    }

    /// Writes come one after the other, so no user has to be locked.
    fn write<T: Send + 'static>(
        &self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let written = self.write_file(write.deadline_ms, move |file| work(file));
        let written = self.condition.seen.noted(written)?;
        if write.hides {
            // The next probe empties the log.
            self.condition.log.set_due(true);
        }
        Ok(written)
    }

    /// If rows were erased, that is counted and the log is emptied before the answer.
    fn erase<T: Send + 'static>(
        &self,
        _: AccountId,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
        erased: fn(&T) -> bool,
    ) -> Result<T, StoreError> {
        let written = self.submit(WRITE_DEADLINE_MS, move |ledger| {
            let (done, is_erased) = ledger.work(|file| {
                let done = work(file)?;
                let is_erased = erased(&done);
                if is_erased {
                    cleaning::count(file)?;
                }
                Ok((done, is_erased))
            })?;
            if is_erased {
                ledger.then_empty_log();
            }
            Ok(done)
        });
        self.condition.seen.noted(written)
    }

    fn condition(&self) -> StoreHealth {
        let writer = self.writer.stats();
        StoreHealth {
            state: self.condition.seen.state().as_str(),
            cause: self.condition.seen.cause(),
            writes: writer.committed,
            commits: writer.commits,
            refused: self.condition.refused(),
            writing_ms: writer.busy_ms,
            writer,
            readers: self.reader_lane.stats(),
            roundtrips: DurationCounts::default(),
        }
    }

    fn look_after(&self) {
        self.look_after_file();
    }

    fn finish(&self) {
        self.close_file();
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
