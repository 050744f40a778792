//! The writer's side of the file. Runs on the thread `store-writer` alone.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::condition::{Condition, Failure, State};
use super::file::{BUSY_TIMEOUT, OpenError, begin_start, open_beside, open_for_writing};
use super::readers::Readers;
use super::{cleaning, log};
use crate::rt::Ledger;
use crate::store::StoreError;

/// The one connection that writes.
pub(crate) struct SqliteLedger {
    /// `None` where the file could not be opened, or after an error that a new connection may not
    /// have; the next transaction tries again.
    connection: Option<Connection>,
    /// Rows changed on this connection when the job began.
    changes_before: u64,
    /// A job that is kept changed something.
    wrote: bool,
    /// This process's start was counted in the file.
    begun: bool,
    then: Then,
    condition: Arc<Condition>,
    readers: Arc<Readers>,
}

/// What is done once the transaction is committed and before its jobs are answered.
#[derive(Clone, Copy, Default)]
struct Then {
    empty_log: bool,
    clean: bool,
    close: bool,
}

impl SqliteLedger {
    /// Opens the file. Without it the ledger starts all the same, and tries again at each write.
    ///
    /// # Errors
    /// Those that end the start: a newer schema, a foreign file.
    pub(crate) fn open(
        condition: Arc<Condition>,
        readers: Arc<Readers>,
    ) -> Result<Self, OpenError> {
        let mut ledger = Self {
            connection: None,
            changes_before: 0,
            wrote: false,
            begun: false,
            then: Then::default(),
            condition,
            readers,
        };
        match ledger.connect() {
            Err(error) if error.ends_the_start() => return Err(error),
            // What is wrong, the condition has.
            Ok(()) => drop(ledger.begin_start()),
            Err(_) => {}
        }
        Ok(ledger)
    }

    fn connect(&mut self) -> Result<(), OpenError> {
        let make = !self.condition.was_opened();
        let locked = self.condition.expect_lock();
        let opened = match &locked {
            Ok(()) => open_for_writing(self.condition.path(), make),
            Err(error) => Err(error.clone().into()),
        };
        let opened = opened.and_then(|connection| {
            let takes_writes = !connection.is_readonly("main")?;
            self.condition.opened(takes_writes)?;
            self.condition.log.note(takes_writes);
            Ok(connection)
        });
        let opened = opened.map(|connection| self.connection = Some(connection));
        opened.inspect_err(|error| {
            let readable = error.is_of_writing() && self.look().is_ok();
            if locked.is_ok() {
                let state = if readable { State::ReadOnly } else { error.state() };
                self.condition.failed(state, &error.to_string());
            }
        })
    }

    /// Before the first write of this process. What cannot be written yet may be read.
    fn begin_start(&mut self) -> Result<(), StoreError> {
        let Some(connection) = self.connection.as_mut().filter(|_| !self.begun) else {
            return Ok(());
        };
        begin_start(connection, self.condition.path()).map_err(|error| {
            self.condition.failed(error.state(), &error.to_string());
            StoreError::Unavailable(error.to_string())
        })?;
        self.begun = true;
        Ok(())
    }

    /// What cannot be written may still be read.
    fn look(&self) -> Result<(), OpenError> {
        open_beside(self.condition.path())?;
        Ok(self.condition.readable()?)
    }

    fn disconnect(&mut self) {
        self.connection = None;
        self.condition.log.note(false);
    }

    /// Runs one job's work.
    pub(crate) fn work<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let Some(connection) = &self.connection else { return Err(self.closed()) };
        work(connection).map_err(|failure| self.condition.judge(failure))
    }

    /// What this transaction erases leaves the log before it is answered.
    pub(crate) fn then_empty_log(&mut self) {
        self.then.empty_log = true;
    }

    /// Writes the file anew after this transaction, if that is due.
    pub(crate) fn then_clean(&mut self) {
        self.then.clean = true;
    }

    /// This transaction is the last.
    pub(crate) fn then_close(&mut self) {
        self.then.close = true;
    }

    fn changes(&self) -> u64 {
        self.connection.as_ref().map_or(0, Connection::total_changes)
    }

    fn control(&mut self, sql: &str) -> Result<(), StoreError> {
        let Some(connection) = &self.connection else { return Err(self.closed()) };
        let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|error| self.condition.judge(error.into()))
    }

    fn closed(&self) -> StoreError {
        StoreError::Unavailable(format!("no transaction: {}", self.condition.cause()))
    }

    /// Where the log's name or its index's has lost the file that SQLite writes to, moves what that
    /// holds into the database and opens all anew. Until that is done nothing is written.
    fn follow_log(&mut self) -> Result<(), StoreError> {
        let Some(connection) = &self.connection else { return Ok(()) };
        if self.condition.log.in_place() {
            return Ok(());
        }
        let aside = self.condition.log.set_stranger_aside().map_err(|error| error.to_string());
        let emptied = aside.and_then(|()| {
            match log::empty(connection, log::READERS_WAIT).map_err(|error| error.to_string())? {
                true => Ok(()),
                false => Err("something reads it".to_owned()),
            }
        });
        if let Err(cause) = emptied {
            let cause = format!(
                "the database's log was moved, removed or replaced while in use, and what it held \
                 is not in the database yet: {cause}"
            );
            self.condition.failed(State::Unavailable, &cause);
            return Err(StoreError::Unavailable(cause));
        }
        // None may go on with the files of before.
        self.readers.retire();
        self.disconnect();
        tracing::error!(
            "the database's log was moved, removed or replaced while in use; what it held is in \
             the database, and nothing is lost"
        );
        self.connect().map_err(|_| self.closed())
    }

    /// What was committed stands under its name, or is not said to be there.
    fn expect_kept(&mut self) -> Result<(), StoreError> {
        let kept = self.condition.expect_in_place().and_then(|()| self.follow_log());
        // It may be found again, by whoever puts the file back.
        kept.map_err(|_| StoreError::Late)
    }

    fn finish(&mut self) {
        let Then { empty_log, clean, close } = std::mem::take(&mut self.then);
        if close {
            self.condition.close();
            self.readers.retire();
        }
        if clean || close {
            self.clean();
        }
        if empty_log || clean || close {
            self.empty_log(if close { BUSY_TIMEOUT } else { log::READERS_WAIT });
        }
        if close {
            // Whoever closes a database last takes its empty log away.
            self.disconnect();
        }
    }

    fn clean(&self) {
        let Some(connection) = &self.connection else { return };
        if let Err(error) = cleaning::clean(connection, cleaning::RUNNING_BYTES_MAX) {
            tracing::warn!(%error, "the database was not written anew after an erasure");
        }
    }

    fn empty_log(&self, patience: Duration) {
        let Some(connection) = &self.connection else { return };
        let emptied = log::empty(connection, patience);
        self.condition.log.set_due(!matches!(emptied, Ok(true)));
        if let Err(error) = emptied {
            tracing::warn!(%error, "the database's log was not emptied");
        }
    }
}

impl Ledger for SqliteLedger {
    type Error = StoreError;

    fn begin(&mut self) -> Result<(), StoreError> {
        self.then = Then::default();
        self.wrote = false;
        self.condition.expect_not_closed()?;
        self.condition.expect_in_place()?;
        self.follow_log()?;
        self.condition.expect_lock()?;
        // A read-only connection stays so when the file no longer is, and one that met an I/O error
        // may go on meeting it.
        if matches!(self.condition.state(), State::ReadOnly | State::Unavailable) {
            self.disconnect();
        }
        if self.connection.is_none() && self.connect().is_err() {
            return Err(self.closed());
        }
        if self.condition.state() == State::Corrupt {
            return Err(self.closed());
        }
        self.begin_start()?;
        self.control("BEGIN IMMEDIATE")
    }

    fn mark(&mut self) -> Result<(), StoreError> {
        self.changes_before = self.changes();
        self.control("SAVEPOINT job")
    }

    fn settle(&mut self, keep: bool) -> Result<(), StoreError> {
        // Some errors (a full disk) end the whole transaction; then there is no mark any more.
        if self.connection.as_ref().is_none_or(Connection::is_autocommit) {
            return Err(self.closed());
        }
        if keep {
            self.wrote |= self.changes() != self.changes_before;
        } else {
            self.control("ROLLBACK TO job")?;
        }
        self.control("RELEASE job")
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        if self.condition.state() == State::Corrupt {
            return Err(self.closed());
        }
        self.control("COMMIT")?;
        self.expect_kept()?;
        // Ending a transaction that changed nothing shows nothing.
        if self.wrote {
            self.condition.worked();
        }
        self.finish();
        Ok(())
    }

    fn abandon(&mut self) {
        if self.connection.as_ref().is_some_and(|connection| !connection.is_autocommit()) {
            // What it says is about a transaction that is lost anyway.
            let _ = self.control("ROLLBACK");
        }
    }
}
