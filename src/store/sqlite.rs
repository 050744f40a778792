//! The store in one SQLite file: one writer that groups commits, a few readers beside it.
//!
//! The methods run on the caller, who parks or blocks on a ticket; the work runs on the writer's
//! thread or on the readers' lane.

use std::io;
use std::path::Path;
use std::sync::Arc;

use jiff::civil::Date;
use rusqlite::Connection;

use super::condition::{Condition, Failure, State};
use super::file::OpenError;
use super::readers::Readers;
use super::writer::SqliteLedger;
use super::{
    AccountId, ClosePage, DayPoint, Deleted, Derive, Derived, Erased, JournalCursor, JournalEntry,
    JournalFields, JournalPage, JournalSize, NewUser, OutsideChanges, Portfolio, PriceOfClose,
    Revocations, Store, StoreError, StoreHealth, User, UserSecrets, Valued, accounts, closes,
    columns, journal, portfolios,
};
use crate::base::{Broker, Clock, Symbol, Synced};
use crate::config::StoreSettings;
use crate::rt::{Batch, BatchSpec, Lane, LaneError, LaneSpec, Ticket};

/// The file's name in the state directory.
pub const FILE_NAME: &str = "bhav.sqlite";

/// A person waits for these; a local disk takes milliseconds.
const READ_DEADLINE_MS: u64 = 2_000;
/// Longer than the wait for another process's lock.
const WRITE_DEADLINE_MS: u64 = 5_000;
/// Pages of the close run: many rows, and nobody waits.
pub(super) const PAGE_DEADLINE_MS: u64 = 10_000;
/// Waiting requests of each kind. Beyond it, refusing is kinder than a wait that ends late.
const READS_WAITING_MAX: usize = 1_024;
const WRITES_WAITING_MAX: usize = 1_024;

const PROBE_READ: &str = include_str!("../../sql/store/probe_read.sql");
const PROBE_WRITE: &str = include_str!("../../sql/store/probe_write.sql");

/// [`Store`] on SQLite.
pub struct SqliteStore {
    writer: Batch<SqliteLedger>,
    reader_lane: Lane,
    readers: Arc<Readers>,
    condition: Arc<Condition>,
}

impl SqliteStore {
    /// [`open_with`](Self::open_with) all settings but `readers` at their defaults.
    ///
    /// # Errors
    /// The same.
    pub fn open(path: &Path, readers: usize, clock: &Clock) -> Result<Self, OpenError> {
        let settings = StoreSettings { readers, ..StoreSettings::default() };
        Self::open_with(path, &settings, clock)
    }

    /// Opens the file at `path`, making or migrating it. A file that cannot be used leaves a store
    /// that says so and tries again.
    ///
    /// # Errors
    /// A newer schema, a foreign file, or no thread to be had.
    pub fn open_with(
        path: &Path,
        settings: &StoreSettings,
        clock: &Clock,
    ) -> Result<Self, OpenError> {
        let condition = Arc::new(Condition::new(path));
        let ledger = SqliteLedger::open(Arc::clone(&condition))?;
        Self::start(settings, clock, ledger, condition).map_err(OpenError::System)
    }

    fn start(
        settings: &StoreSettings,
        clock: &Clock,
        ledger: SqliteLedger,
        condition: Arc<Condition>,
    ) -> io::Result<Self> {
        let writer = BatchSpec {
            name: "store-writer",
            queue_max: WRITES_WAITING_MAX,
            batch_max: settings.writes_per_commit_max,
        };
        let lane = LaneSpec {
            name: "store-reader",
            threads: settings.readers,
            queue_max: READS_WAITING_MAX,
        };
        Ok(Self {
            writer: Batch::start(&writer, clock, ledger)?,
            reader_lane: Lane::start(&lane, clock)?,
            readers: Arc::new(Readers::new(Arc::clone(&condition))),
            condition,
        })
    }

    pub(super) fn read<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = Arc::clone(&self.readers);
        let ticket = self.reader_lane.submit(deadline_ms, move || readers.work(work));
        let outcome = ticket.map_err(|_| StoreError::Busy).map(Ticket::wait);
        self.told(outcome)
    }

    pub(super) fn write<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ticket = self.writer.submit(deadline_ms, move |ledger| ledger.work(work));
        let outcome = ticket.map_err(|_| StoreError::Busy).map(Ticket::wait);
        self.told(outcome)
    }

    /// What the caller is told; counts what was not done for want of time, room or a file.
    fn told<T>(
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

impl Store for SqliteStore {
    fn create_user(&self, user: NewUser) -> Result<User, StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| accounts::create(file, user))
    }

    fn user_by_email(&self, email: &str) -> Result<Option<UserSecrets>, StoreError> {
        let email = email.to_owned();
        self.read(READ_DEADLINE_MS, move |file| accounts::by_email(file, &email))
    }

    fn user_by_id(&self, id: AccountId) -> Result<Option<UserSecrets>, StoreError> {
        self.read(READ_DEADLINE_MS, move |file| accounts::by_id(file, id))
    }

    fn replace_hash(&self, id: AccountId, old: &str, new: &str) -> Result<bool, StoreError> {
        let (old, new) = (old.to_owned(), new.to_owned());
        self.write(WRITE_DEADLINE_MS, move |file| accounts::replace_hash(file, id, &old, &new))
    }

    fn change_password(
        &self,
        id: AccountId,
        old_hash: &str,
        new_hash: &str,
    ) -> Result<Option<i64>, StoreError> {
        let (old, new) = (old_hash.to_owned(), new_hash.to_owned());
        self.write(WRITE_DEADLINE_MS, move |file| accounts::change_password(file, id, &old, &new))
    }

    fn erase_user(&self, id: AccountId, forget_ms: i64) -> Result<Erased, StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| accounts::erase(file, id, forget_ms))
    }

    fn revoke_token(&self, token_id: &str, expires_ms: i64) -> Result<(), StoreError> {
        let token_id = token_id.to_owned();
        self.write(WRITE_DEADLINE_MS, move |file| {
            accounts::revoke_token(file, &token_id, expires_ms)
        })
    }

    fn revocations(&self, now_ms: i64) -> Result<Revocations, StoreError> {
        // A file that takes no writes must still say what is revoked.
        if let Err(error) =
            self.write(WRITE_DEADLINE_MS, move |file| accounts::forget_past(file, now_ms))
        {
            tracing::warn!(%error, "revocations that are past are kept for now");
        }
        self.read(PAGE_DEADLINE_MS, move |file| accounts::revocations(file, now_ms))
    }

    fn outside_changes(&self) -> Result<OutsideChanges, StoreError> {
        self.read(READ_DEADLINE_MS, accounts::outside_changes)
    }

    fn notice_outside_changes(&self, made: i64) -> Result<(), StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| accounts::notice_outside_changes(file, made))
    }

    fn replace_portfolio(
        &self,
        id: AccountId,
        broker: Broker,
        synced_ms: i64,
        synced: Synced,
        closes_of: Option<Date>,
        derive: Derive,
    ) -> Result<Derived, StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| {
            portfolios::replace(file, id, broker, synced_ms, synced, closes_of, derive)
        })
    }

    fn portfolio(&self, id: AccountId) -> Result<Portfolio, StoreError> {
        self.read(READ_DEADLINE_MS, move |file| portfolios::of(file, id))
    }

    fn points(&self, id: AccountId, since: Date) -> Result<Vec<DayPoint>, StoreError> {
        self.read(READ_DEADLINE_MS, move |file| portfolios::points(file, id, since))
    }

    fn delete_portfolio(&self, id: AccountId) -> Result<Deleted, StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| portfolios::delete(file, id))
    }

    fn is_closed(&self, date: Date) -> Result<bool, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |file| closes::is_finished(file, date))
    }

    fn held_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>, StoreError> {
        let after = after.cloned();
        self.read(PAGE_DEADLINE_MS, move |file| closes::held_symbols(file, after.as_ref(), limit))
    }

    fn silent_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>, StoreError> {
        let after = after.cloned();
        self.read(PAGE_DEADLINE_MS, move |file| closes::silent_symbols(file, after.as_ref(), limit))
    }

    fn keep_closes(&self, date: Date, prices: &[PriceOfClose]) -> Result<(), StoreError> {
        let prices = prices.to_vec();
        self.write(PAGE_DEADLINE_MS, move |file| closes::keep(file, date, &prices))
    }

    fn closes(&self, date: Date) -> Result<Vec<PriceOfClose>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |file| closes::of(file, date))
    }

    fn portfolios_to_close(
        &self,
        date: Date,
        after: AccountId,
        limit: usize,
    ) -> Result<ClosePage, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |file| {
            closes::portfolios_to_close(file, date, after, limit)
        })
    }

    fn keep_points(&self, date: Date, points: Vec<Valued>) -> Result<(), StoreError> {
        self.write(PAGE_DEADLINE_MS, move |file| closes::keep_points(file, date, &points))
    }

    fn finish_close(
        &self,
        date: Date,
        finished_ms: i64,
        silent: Vec<Symbol>,
    ) -> Result<(), StoreError> {
        self.write(PAGE_DEADLINE_MS, move |file| closes::finish(file, date, finished_ms, &silent))
    }

    fn add_entry(
        &self,
        id: AccountId,
        fields: JournalFields,
        now_ms: i64,
    ) -> Result<JournalEntry, StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| journal::add(file, id, fields, now_ms))
    }

    fn entries(
        &self,
        id: AccountId,
        after: Option<JournalCursor>,
        limit: usize,
    ) -> Result<JournalPage, StoreError> {
        self.read(READ_DEADLINE_MS, move |file| journal::page(file, id, after, limit))
    }

    fn journal_size(&self, id: AccountId) -> Result<JournalSize, StoreError> {
        self.read(READ_DEADLINE_MS, move |file| journal::size(file, id))
    }

    fn entry(&self, id: AccountId, entry: i64) -> Result<Option<JournalEntry>, StoreError> {
        self.read(READ_DEADLINE_MS, move |file| journal::one(file, id, entry))
    }

    fn replace_entry(
        &self,
        id: AccountId,
        entry: i64,
        fields: JournalFields,
        now_ms: i64,
    ) -> Result<Option<JournalEntry>, StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| journal::replace(file, id, entry, fields, now_ms))
    }

    fn delete_entry(&self, id: AccountId, entry: i64) -> Result<bool, StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| journal::delete(file, id, entry))
    }

    fn health(&self) -> StoreHealth {
        let writer = self.writer.stats();
        StoreHealth {
            state: self.condition.state().as_str(),
            cause: self.condition.cause(),
            writes: writer.committed,
            commits: writer.commits,
            refused: self.condition.refused(),
            writing_ms: writer.busy_ms,
            writer,
            readers: self.reader_lane.stats(),
        }
    }

    fn probe(&self) {
        // Failures are noted where they happen.
        let in_place = self.condition.expect_in_place().is_ok();
        let read = self.read(READ_DEADLINE_MS, |file| {
            columns::first(file, PROBE_READ, [], |row| Ok(row.get::<_, i64>(0)?))
        });
        if in_place && self.condition.state() == State::Ok && read.is_ok() {
            return;
        }
        let written = self.write(WRITE_DEADLINE_MS, |file| columns::run(file, PROBE_WRITE, []));
        if let Err(error) = written {
            tracing::debug!(%error, "the store is still not well");
        }
    }
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
