//! The store in one SQLite file: one writer that groups commits, and a few readers.
//!
//! The methods run on the caller, which parks (coroutine) or blocks (thread) until the result is
//! there. The work runs on the writer's thread or on the readers' lane.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jiff::civil::Date;
use rusqlite::Connection;

use super::condition::{Condition, Failure};
use super::errors::OpenError;
use super::readers::Readers;
use super::writer::SqliteLedger;
use super::{accounts, closing_prices, eod, erasure, journal, portfolios};
use crate::base::{Broker, Clock, Symbol, Synced};
use crate::ops::state_lock::InstanceLock;
use crate::portfolio::{DayPoint, SyncOutcome};
use crate::rt::{Batch, BatchSpec, Lane, LaneError, LaneSpec, Ticket};
use crate::store::settings::StoreSettings;
use crate::store::traits::Derive;
use crate::store::traits::Store;
use crate::store::{
    AccountId, AuthState, ClosePage, Deleted, Erased, Expected, ExpectedPage, JournalCursor,
    JournalEntry, JournalFields, JournalPage, JournalSize, NewUser, OutsideChanges, Portfolio,
    PriceOfClose, StoreError, StoreHealth, User, UserSecrets, Valued,
};

/// The file's name in the state directory.
pub const FILE_NAME: &str = "bhav.sqlite";

/// Deadline of a read. A person waits for it; a local disk takes milliseconds.
pub(crate) const READ_DEADLINE_MS: u64 = 2_000;
/// Deadline of a write. Longer than the wait for another process's lock.
pub(crate) const WRITE_DEADLINE_MS: u64 = 5_000;
/// Deadline of a page of the close run, which has many rows and for which nobody waits.
pub(crate) const PAGE_DEADLINE_MS: u64 = 10_000;
/// Most waiting requests of each kind. Beyond it, an immediate refusal is better than a wait that
/// times out.
const READS_WAITING_MAX: usize = 1_024;
const WRITES_WAITING_MAX: usize = 1_024;

/// [`Store`] on SQLite.
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
            threads: settings.readers,
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
    ) -> Result<T, StoreError> {
        let readers = Arc::clone(&self.readers);
        let ticket = self.reader_lane.submit(deadline_ms, move || readers.work(work));
        let outcome = ticket.map_err(|_| StoreError::Busy).map(Ticket::wait);
        self.result_for_caller(outcome)
    }

    pub(crate) fn write<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(deadline_ms, move |ledger| ledger.work(work))
    }

    /// Same as [`write`](Self::write), for work that erases for good. If `erased` says that rows
    /// were erased, the log is emptied before the answer.
    pub(crate) fn erase<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
        erased: fn(&T) -> bool,
    ) -> Result<T, StoreError> {
        self.submit(WRITE_DEADLINE_MS, move |ledger| {
            let done = ledger.work(work)?;
            if erased(&done) {
                ledger.then_empty_log();
            }
            Ok(done)
        })
    }

    /// Same as [`write`](Self::write), for work after which older data must leave the log soon, at
    /// the next probe.
    fn write_over<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write(WRITE_DEADLINE_MS, work).inspect(|_| self.condition.log.set_due(true))
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
        self.write_over(move |file| accounts::change_password(file, id, &old, &new))
    }

    fn erase_user(&self, id: AccountId) -> Result<Erased, StoreError> {
        self.erase(move |file| erasure::erase(file, id), |erased| erased.user)
    }

    fn revoke_token(&self, token_id: &str, expires_ms: i64) -> Result<(), StoreError> {
        let token_id = token_id.to_owned();
        self.write(WRITE_DEADLINE_MS, move |file| {
            accounts::revoke_token(file, &token_id, expires_ms)
        })
    }

    fn forget_revocations(&self, before_ms: i64) -> Result<usize, StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| accounts::forget_revocations(file, before_ms))
    }

    fn auth_state(&self) -> Result<AuthState, StoreError> {
        self.read(PAGE_DEADLINE_MS, accounts::auth_state)
    }

    fn outside_changes(&self) -> Result<OutsideChanges, StoreError> {
        self.read(READ_DEADLINE_MS, accounts::outside_changes)
    }

    fn notice_outside_changes(&self, made: i64) -> Result<(), StoreError> {
        // Some of the changes may have been erasures.
        self.write_over(move |file| accounts::notice_outside_changes(file, made))
    }

    fn replace_portfolio(
        &self,
        id: AccountId,
        broker: Broker,
        synced_ms: i64,
        synced: Synced,
        closes_of: Option<Date>,
        derive: Derive,
    ) -> Result<SyncOutcome, StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| {
            portfolios::replace(file, id, broker, synced_ms, &synced, closes_of, &derive)
        })
    }

    fn portfolio(&self, id: AccountId) -> Result<Portfolio, StoreError> {
        self.read(READ_DEADLINE_MS, move |file| portfolios::of(file, id))
    }

    fn points(&self, id: AccountId, since: Date) -> Result<Vec<DayPoint>, StoreError> {
        self.read(READ_DEADLINE_MS, move |file| portfolios::points(file, id, since))
    }

    fn delete_portfolio(&self, id: AccountId) -> Result<Deleted, StoreError> {
        let is_some = |deleted: &Deleted| *deleted != Deleted::default();
        self.erase(move |file| portfolios::delete(file, id), is_some)
    }

    fn is_closed(&self, date: Date) -> Result<bool, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |file| eod::is_finished(file, date))
    }

    fn held_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>, StoreError> {
        let after = after.cloned();
        self.read(PAGE_DEADLINE_MS, move |file| eod::held_symbols(file, after.as_ref(), limit))
    }

    fn silent_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>, StoreError> {
        let after = after.cloned();
        self.read(PAGE_DEADLINE_MS, move |file| eod::silent_symbols(file, after.as_ref(), limit))
    }

    fn keep_closes(&self, date: Date, prices: &[PriceOfClose]) -> Result<(), StoreError> {
        let prices = prices.to_vec();
        self.write(PAGE_DEADLINE_MS, move |file| closing_prices::keep(file, date, &prices))
    }

    fn closes(&self, date: Date) -> Result<Vec<PriceOfClose>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |file| closing_prices::of(file, date))
    }

    fn portfolios_to_close(
        &self,
        date: Date,
        after: AccountId,
        limit: usize,
    ) -> Result<ClosePage, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |file| eod::portfolios_to_close(file, date, after, limit))
    }

    fn keep_points(&self, date: Date, points: Vec<Valued>) -> Result<(), StoreError> {
        self.write(PAGE_DEADLINE_MS, move |file| eod::keep_points(file, date, &points))
    }

    fn finish_close(
        &self,
        date: Date,
        finished_ms: i64,
        silent: Vec<Symbol>,
    ) -> Result<(), StoreError> {
        self.write(PAGE_DEADLINE_MS, move |file| eod::finish(file, date, finished_ms, &silent))
    }

    fn add_entry(
        &self,
        id: AccountId,
        fields: JournalFields,
        now_ms: i64,
        page: Option<ExpectedPage>,
    ) -> Result<JournalEntry, StoreError> {
        self.write(WRITE_DEADLINE_MS, move |file| {
            journal::add(file, id, fields, now_ms, page.as_ref())
        })
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
        expected: Expected,
    ) -> Result<Option<JournalEntry>, StoreError> {
        self.write_over(move |file| journal::replace(file, id, entry, fields, now_ms, &expected))
    }

    fn delete_entry(
        &self,
        id: AccountId,
        entry: i64,
        expected: Expected,
    ) -> Result<bool, StoreError> {
        self.write_over(move |file| journal::delete(file, id, entry, &expected))
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
        self.look_after();
    }

    fn close(&self) {
        self.close_file();
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
