//! The store in one SQLite file: one writer that groups commits, and a few readers.
//!
//! The methods run on the caller, which parks (coroutine) or blocks (thread) until the result is
//! there. The work runs on the writer's thread or on the readers' lane.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::types::{FromSqlError, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Row, ToSql, TransactionBehavior, params_from_iter};

use crate::base::Clock;
use crate::ops::DurationCounts;
use crate::ops::owner::folder_of;
use crate::ops::state_lock::{self, InstanceLock};
use crate::rt::{Batch, BatchSpec, Lane, LaneSpec};
use crate::store::arg::Arg;
use crate::store::cells::Cells;
use crate::store::condition::StoreHealth;
use crate::store::errors::{MaintenanceError, OpenError, Result};
use crate::store::settings::StoreSettings;
use crate::store::sqlite::condition::Condition;
use crate::store::sqlite::log::BUSY_TIMEOUT;
use crate::store::sqlite::maintenance::inspect;
use crate::store::sqlite::readers::Readers;
use crate::store::sqlite::writer::SqliteLedger;
use crate::store::sqlite::{file, identity, log};
use crate::store::tx::{Failure, ReadRow, Sql, Tx};
use crate::store::write::{PAGE_DEADLINE_MS, READ_DEADLINE_MS, WRITE_DEADLINE_MS, Write};

/// The file's name in the state directory.
pub const FILE_NAME: &str = "bhav.sqlite";

/// Default number of reader threads. More help only if the disk is slow.
const READERS: usize = 2;
/// Most waiting requests of each kind. Beyond it, an immediate refusal is better than a wait that
/// times out.
const READS_WAITING_MAX: usize = 1_024;
const WRITES_WAITING_MAX: usize = 1_024;

/// SQLite's own limit on the pages of a file.
const PAGES_MAX: u32 = 4_294_967_294;

/// The engine on a file.
pub(crate) struct Sqlite {
    writer: Batch<SqliteLedger>,
    reader_lane: Lane,
    readers: Arc<Readers>,
    pub(crate) condition: Arc<Condition>,
    pub(crate) clock: Clock,
    /// Monotonic time from which the file may be rewritten.
    pub(crate) next_clean_mono_ms: AtomicU64,
}

impl Sqlite {
    /// See [`Store::in_file`](crate::store::Store::in_file).
    pub(crate) fn open(
        path: &Path,
        settings: &StoreSettings,
        lock: Option<Arc<InstanceLock>>,
        clock: &Clock,
    ) -> Result<Self, OpenError> {
        let condition = Arc::new(Condition::new(path, lock));
        let readers = Arc::new(Readers::new(Arc::clone(&condition)));
        let ledger = SqliteLedger::open(Arc::clone(&condition), Arc::clone(&readers))?;
        let writer = BatchSpec {
            name: "store-writer",
            queue_max: WRITES_WAITING_MAX,
            batch_max: settings.writes_per_commit_max,
        };
        let lane = LaneSpec {
            name: "store-reader",
            threads: if settings.readers == 0 {
                READERS
            } else {
                settings.readers
            },
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

    pub(crate) fn read<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let readers = Arc::clone(&self.readers);
        let ticket = self
            .reader_lane
            .submit(deadline_ms, move || readers.work(work));
        self.condition.seen.wait(ticket)
    }

    pub(crate) fn work<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        self.submit(deadline_ms, move |ledger| ledger.work(work))
    }

    /// Refuses every further page of the file, as a full disk does, or gives it room again.
    pub(crate) fn set_full(&self, is_full: bool) -> Result<()> {
        self.work(WRITE_DEADLINE_MS, move |file| {
            let pages = file.pragma_query_value(None, "page_count", |row| row.get(0))?;
            let pages_max: u32 = if is_full { pages } else { PAGES_MAX };
            Ok(file.pragma_update_and_check(None, "max_page_count", pages_max, |_| Ok(()))?)
        })
    }

    pub(crate) fn submit<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        job: impl FnOnce(&mut SqliteLedger) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let ticket = self.writer.submit(deadline_ms, job);
        self.condition.seen.wait(ticket)
    }

    /// Writes come one after the other, so no user has to be locked. If rows were erased, counts
    /// the erasure and empties the log before answering.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        write: &Write,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
        erased: fn(&T) -> bool,
    ) -> Result<T> {
        let written = self.submit(write.deadline_ms, move |ledger| {
            let done = ledger.work(|file| {
                let done = work(file)?;
                if erased(&done) {
                    file::count(file)?;
                }
                Ok(done)
            })?;
            ledger.then.empty_log |= erased(&done);
            Ok(done)
        });
        let written = self.condition.seen.noted(written)?;
        if write.hides {
            // The next probe empties the log.
            self.condition.log.set_due(true);
        }
        Ok(written)
    }

    pub(crate) fn health(&self) -> StoreHealth {
        let writer = self.writer.stats();
        let readers = self.reader_lane.stats();
        self.condition
            .seen
            .health(writer, readers, DurationCounts::default())
    }
}

// ---- Care
//
// Upkeep of the database file: probes it, completes what an erasure left, and closes it. Runs on
// the lane of the probe, and for the close on the main thread.

/// After a rewrite of the file, the next one waits this many times as long as the last one took,
/// because no write is possible during it.
const CLEAN_PAUSES: u64 = 20;
/// Time for writing the waiting jobs and emptying the log.
const CLOSE_DEADLINE_MS: u64 = 10_000;

impl Sqlite {
    /// Completes the upkeep that an erasure left.
    pub(crate) fn keep_up(&self) -> Result<()> {
        if self.cleaning_is_due() {
            return self.clean();
        }
        if !self.condition.log.due() {
            return Ok(());
        }
        self.submit(WRITE_DEADLINE_MS, |ledger| {
            ledger.then.empty_log = true;
            Ok(())
        })
    }

    /// Whether something was erased since the file was last rewritten, and the pause after the last
    /// rewrite is over.
    fn cleaning_is_due(&self) -> bool {
        self.clock.monotonic_ms() >= self.next_clean_mono_ms.load(Ordering::Relaxed)
            && self
                .read(READ_DEADLINE_MS, |file| file::is_due(file, file::RUNNING_BYTES_MAX))
                .unwrap_or(false)
    }

    fn clean(&self) -> Result<()> {
        let began_mono_ms = self.clock.monotonic_ms();
        let done = self.submit(PAGE_DEADLINE_MS, |ledger| {
            ledger.then.clean = true;
            Ok(())
        });
        let now_mono_ms = self.clock.monotonic_ms();
        let pause_ms = now_mono_ms.saturating_sub(began_mono_ms) * CLEAN_PAUSES;
        self.next_clean_mono_ms
            .store(now_mono_ms + pause_ms, Ordering::Relaxed);
        done
    }

    pub(crate) fn close(&self) {
        let closed = self.submit(CLOSE_DEADLINE_MS, |ledger| {
            ledger.then.close = true;
            Ok(())
        });
        if let Err(error) = closed {
            tracing::warn!(%error, "the database was not closed; its log stays next to it");
        }
    }
}

// ---- Tx
//
// Statements, arguments and rows of SQLite.

impl Tx for Connection {
    fn query(&self, sql: Sql, rows: &[&[Arg<'_>]], read: ReadRow<'_>) -> Result<(), Failure> {
        let mut statement = self.prepare_cached(sql.text)?;
        for (number, args) in rows.iter().enumerate() {
            let mut found = statement.query(params_from_iter(*args))?;
            while let Some(row) = found.next()? {
                if read(number, row)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn execute(&self, sql: Sql, rows: &[&[Arg<'_>]]) -> Result<u64, Failure> {
        let mut statement = self.prepare_cached(sql.text)?;
        let mut changed = 0;
        for args in rows {
            changed += statement.execute(params_from_iter(*args))? as u64;
        }
        Ok(changed)
    }
}

impl ToSql for Arg<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Integer(value) => value.map(ValueRef::Integer),
            Self::Real(value) => value.map(ValueRef::Real),
            Self::Boolean(value) => value.map(|value| ValueRef::Integer(i64::from(value))),
            Self::Text(value) => value.as_ref().map(|text| ValueRef::Text(text.as_bytes())),
        };
        Ok(ToSqlOutput::Borrowed(value.unwrap_or(ValueRef::Null)))
    }
}

impl Cells for Row<'_> {
    fn integer(&self, at: usize) -> Result<Option<i64>, Failure> {
        Ok(self.get_ref(at)?.as_i64_or_null().map_err(wrong_type)?)
    }

    fn real(&self, at: usize) -> Result<Option<f64>, Failure> {
        Ok(self.get_ref(at)?.as_f64_or_null().map_err(wrong_type)?)
    }

    fn boolean(&self, at: usize) -> Result<Option<bool>, Failure> {
        Ok(self.integer(at)?.map(|value| value != 0))
    }

    fn text(&self, at: usize) -> Result<Option<&str>, Failure> {
        Ok(self.get_ref(at)?.as_str_or_null().map_err(wrong_type)?)
    }
}

fn wrong_type(error: FromSqlError) -> rusqlite::Error {
    error.into()
}

// ---- Users
//
// The connection of an operator's command, next to a running service or without one. Used on the
// command's main thread; blocks.

/// The database, opened next to the service.
pub(crate) struct SqliteUsers {
    pub(crate) path: PathBuf,
    pub(crate) connection: Connection,
}

impl SqliteUsers {
    /// Opens a database with the current schema. Only the service migrates an older one.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn open(path: &Path) -> Result<Self, MaintenanceError> {
        let report = inspect(path)?;
        if report.version != report.known {
            return Err(MaintenanceError::Older {
                path: path.to_owned(),
                found: report.version,
            });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Self::opened(path, flags).map_err(MaintenanceError::database(path))?;
        Ok(Self {
            path: path.to_owned(),
            connection,
        })
    }

    fn opened(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "secure_delete", true)?;
        // The next start checks whether the log of a killed service is still there.
        let keep = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(keep, identity::is_open(path))?;
        Ok(connection)
    }

    /// Runs work that writes. It is committed only if it made a change.
    pub(crate) fn write<T>(
        &mut self,
        write: &Write,
        work: impl FnOnce(&dyn Tx) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, MaintenanceError> {
        // Files that were put back over the present ones must still be told at the next start. A
        // running service records the change when it takes it up.
        let is_marked = identity::is_marked(&self.connection, &self.path)
            && state_lock::in_use(folder_of(&self.path)) == Some(false);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let Some(made) = work(&*transaction)? else {
            return Ok(None);
        };
        if write.erases {
            file::count(&transaction)?;
        }
        transaction.commit()?;
        // If a reader prevents it, the service empties the log once it has noticed the change.
        if write.erases && !log::empty(&self.connection, BUSY_TIMEOUT)? {
            tracing::debug!("the database's log was not emptied: a reader uses it");
        }
        if is_marked {
            identity::note_change(&self.connection, &self.path);
        }
        Ok(Some(made))
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
