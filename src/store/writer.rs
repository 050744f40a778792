//! The writer's side of the file. Runs on the thread `store-writer` alone.

use std::sync::Arc;

use rusqlite::Connection;

use super::StoreError;
use super::condition::{Condition, Failure, State};
use super::file::{OpenError, open_for_writing};
use crate::rt::Ledger;

/// The one connection that writes.
pub(super) struct SqliteLedger {
    /// `None` where the file could not be opened, or after an error that a new connection may not
    /// have; the next transaction tries again.
    connection: Option<Connection>,
    /// Rows changed on this connection when the job began.
    changes_before: u64,
    /// A job that is kept changed something.
    wrote: bool,
    condition: Arc<Condition>,
}

impl SqliteLedger {
    /// Opens the file. Without it the ledger starts all the same, and tries again at each write.
    ///
    /// # Errors
    /// Those that end the start: a newer schema, a foreign file.
    pub(super) fn open(condition: Arc<Condition>) -> Result<Self, OpenError> {
        let mut ledger = Self { connection: None, changes_before: 0, wrote: false, condition };
        match ledger.connect() {
            Err(error) if error.ends_the_start() => Err(error),
            // The condition has it.
            Ok(()) | Err(_) => Ok(ledger),
        }
    }

    fn connect(&mut self) -> Result<(), OpenError> {
        let make = !self.condition.was_opened();
        let opened = open_for_writing(self.condition.path(), make).and_then(|connection| {
            self.condition.opened(!connection.is_readonly("main")?)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => {
                self.connection = Some(connection);
                Ok(())
            }
            Err(error) => {
                let state = match &error {
                    OpenError::Sqlite(error) => State::of(error),
                    _ => None,
                };
                self.condition.failed(state.unwrap_or(State::Unavailable), &error.to_string());
                Err(error)
            }
        }
    }

    /// Runs one job's work.
    pub(super) fn work<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let Some(connection) = &self.connection else { return Err(self.closed()) };
        work(connection).map_err(|failure| self.condition.judge(failure))
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
}

impl Ledger for SqliteLedger {
    type Error = StoreError;

    fn begin(&mut self) -> Result<(), StoreError> {
        self.condition.expect_in_place()?;
        // A read-only connection stays so when the file no longer is, and one that met an I/O error
        // may go on meeting it.
        if matches!(self.condition.state(), State::ReadOnly | State::Unavailable) {
            self.connection = None;
        }
        if self.connection.is_none() && self.connect().is_err() {
            return Err(self.closed());
        }
        if self.condition.state() == State::Corrupt {
            return Err(self.closed());
        }
        self.wrote = false;
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
        // Ending a transaction that changed nothing shows nothing.
        if self.wrote {
            self.condition.worked();
        }
        Ok(())
    }

    fn abandon(&mut self) {
        if self.connection.as_ref().is_some_and(|connection| !connection.is_autocommit()) {
            // What it says is about a transaction that is lost anyway.
            let _ = self.control("ROLLBACK");
        }
    }
}
