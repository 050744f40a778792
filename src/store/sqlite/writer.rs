//! The writing connection, which runs on the thread `store-writer` alone, the state of the file,
//! and the reading connections.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use crate::rt::Ledger;
use crate::store::condition::State;
use crate::store::errors::{OpenError, Result, StoreError};
use crate::store::sqlite::condition::Condition;
use crate::store::sqlite::file::{begin_start, open_beside, open_for_writing};
use crate::store::sqlite::log::BUSY_TIMEOUT;
use crate::store::sqlite::readers::Readers;
use crate::store::sqlite::{file, identity, log};
use crate::store::tx::Failure;

/// The only connection that writes.
pub(crate) struct SqliteLedger {
    /// `None` if the file could not be opened, or after an error that the connection may have
    /// caused. The next transaction opens a new one.
    connection: Option<Connection>,
    /// Count of rows changed on this connection when the current job began.
    changes_before: u64,
    /// Whether a job of this transaction changed something.
    wrote: bool,
    /// The last change of accounts that the mark beside the file names. `None` until this process's
    /// start was counted in the file.
    marked: Option<i64>,
    /// Whether an earlier process was killed and its log is gone.
    log_is_lost: bool,
    pub(crate) then: AfterCommit,
    condition: Arc<Condition>,
    readers: Arc<Readers>,
}

/// Work to do after the commit and before the jobs are answered.
#[derive(Clone, Copy, Default)]
pub(crate) struct AfterCommit {
    pub(crate) empty_log: bool,
    /// Rewrites the file, if that is due.
    pub(crate) clean: bool,
    /// Makes this transaction the last one.
    pub(crate) close: bool,
}

impl SqliteLedger {
    /// Opens the file. If that fails, the writer starts all the same and tries again at each write.
    ///
    /// # Errors
    /// Errors that end the start: a newer schema, a foreign file.
    pub(crate) fn open(
        condition: Arc<Condition>,
        readers: Arc<Readers>,
    ) -> Result<Self, OpenError> {
        let mut ledger = Self {
            connection: None,
            changes_before: 0,
            wrote: false,
            marked: None,
            log_is_lost: identity::is_open(&condition.path) && log::is_empty(&condition.path),
            then: AfterCommit::default(),
            condition,
            readers,
        };
        match ledger.connect() {
            Err(error) if error.ends_the_start() => return Err(error),
            // The condition has recorded the fault.
            Ok(()) => drop(ledger.begin_start()),
            Err(_) => {}
        }
        Ok(ledger)
    }

    fn connect(&mut self) -> Result<(), OpenError> {
        let make = !self.condition.was_opened();
        let locked = self.condition.expect_lock();
        let opened = match &locked {
            Ok(()) => open_for_writing(&self.condition.path, make),
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
                let state = if readable {
                    State::ReadOnly
                } else {
                    error.state()
                };
                self.condition.failed(state, &error.to_string());
            }
        })
    }

    /// Called before this process's first write. A file that cannot be written yet may be read.
    fn begin_start(&mut self) -> Result<()> {
        let Some(connection) = self.connection.as_mut().filter(|_| self.marked.is_none()) else {
            return Ok(());
        };
        let last_change = begin_start(connection, &self.condition.path).map_err(|error| {
            self.condition.failed(error.state(), &error.to_string());
            StoreError::Unavailable(error.to_string())
        })?;
        self.marked = Some(last_change);
        if self.log_is_lost {
            tracing::warn!(
                "the service was killed, and the log beside the database (bhav.sqlite-wal) is \
                 gone: writes that were acknowledged last may be missing, unless another program \
                 has moved them into the database"
            );
        }
        Ok(())
    }

    /// Opens a file that cannot be written, for reading.
    fn look(&self) -> Result<(), OpenError> {
        open_beside(&self.condition.path)?;
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
    ) -> Result<T> {
        let Some(connection) = &self.connection else {
            return Err(self.closed());
        };
        work(connection).map_err(|failure| self.condition.judge(failure))
    }

    fn changes(&self) -> u64 {
        self.connection
            .as_ref()
            .map_or(0, Connection::total_changes)
    }

    fn control(&mut self, sql: &str) -> Result<()> {
        let Some(connection) = &self.connection else {
            return Err(self.closed());
        };
        let done = connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]));
        done.map(drop)
            .map_err(|error| self.condition.judge(error.into()))
    }

    fn closed(&self) -> StoreError {
        StoreError::Unavailable(format!("no transaction: {}", self.condition.seen.cause()))
    }

    /// If the name of the log or of its index no longer refers to the file that SQLite writes to,
    /// moves the log's content into the database and opens everything again. Until then nothing is
    /// written.
    fn follow_log(&mut self) -> Result<()> {
        let Some(connection) = &self.connection else {
            return Ok(());
        };
        if self.condition.log.in_place() {
            return Ok(());
        }
        let aside = self
            .condition
            .log
            .set_stranger_aside()
            .map_err(|error| error.to_string());
        let emptied = aside.and_then(|()| {
            let emptied = log::empty(connection, log::READERS_WAIT_OF_MOVED_LOG);
            match emptied.map_err(|error| error.to_string())? {
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
        // No connection may go on with the earlier files.
        self.readers.retire();
        self.disconnect();
        tracing::error!(
            "the database's log was moved, removed or replaced while in use; what it held is in \
             the database, and nothing is lost"
        );
        self.connect().map_err(|_| self.closed())?;
        self.keep_log_filled();
        Ok(())
    }

    /// Checks that the commit is in the file that `path` names. If it is not, the commit is not
    /// reported as done.
    fn expect_kept(&mut self) -> Result<()> {
        let kept = self
            .condition
            .expect_in_place()
            .and_then(|()| self.follow_log());
        // The commit reappears if somebody puts the file back.
        kept.map_err(|_| StoreError::Late)
    }

    fn finish(&mut self) {
        let AfterCommit {
            empty_log,
            clean,
            close,
        } = std::mem::take(&mut self.then);
        if close {
            self.condition.seen.close();
            self.readers.retire();
        }
        if clean || close {
            self.clean();
        }
        if empty_log || clean || close {
            self.empty_log(if close {
                BUSY_TIMEOUT
            } else {
                log::READERS_WAIT
            });
        }
        if close {
            let has_begun = self.marked.is_some() && !self.condition.log.due();
            if let Some(connection) = self.connection.as_ref().filter(|_| has_begun) {
                identity::note_closed(connection, &self.condition.path);
            }
            // The last connection to a database removes its empty log.
            self.disconnect();
        } else if empty_log || clean {
            self.keep_log_filled();
        }
    }

    /// Records a change of accounts beside the file before it is answered, so that no copy of
    /// before can pass for this database. A mark that is not written leaves the one of before.
    fn mark_last_change(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        let path = &self.condition.path;
        let marked = match (identity::last_change(connection), self.marked) {
            (Ok(last), Some(marked)) if last.number != marked => {
                identity::write_mark(connection, path, true)
            }
            (last, _) => last.map(|last| last.number),
        };
        match marked {
            Ok(number) => self.marked = self.marked.map(|_| number),
            Err(error) => tracing::debug!(%error, "the last change of accounts was not marked"),
        }
    }

    fn keep_log_filled(&self) {
        let Some(connection) = self.connection.as_ref().filter(|_| self.marked.is_some()) else {
            return;
        };
        if let Err(error) = log::keep_filled(connection, &self.condition.path) {
            tracing::debug!(%error, "cannot write into the emptied log");
        }
    }

    fn clean(&self) {
        let Some(connection) = &self.connection else {
            return;
        };
        if let Err(error) = file::clean_file(connection, file::RUNNING_BYTES_MAX) {
            tracing::warn!(%error, "the database file was not rewritten after an erasure");
        }
    }

    fn empty_log(&self, patience: Duration) {
        let Some(connection) = &self.connection else {
            return;
        };
        let emptied = log::empty(connection, patience);
        self.condition.log.set_due(!matches!(emptied, Ok(true)));
        if let Err(error) = emptied {
            tracing::warn!(%error, "the database's log was not emptied");
        }
    }
}

impl Ledger for SqliteLedger {
    type Error = StoreError;

    fn begin(&mut self) -> Result<()> {
        self.then = AfterCommit::default();
        self.wrote = false;
        self.condition.seen.expect_not_closed()?;
        self.condition.expect_in_place()?;
        self.follow_log()?;
        self.condition.expect_lock()?;
        // A read-only connection stays read-only when the file no longer is, and a connection with
        // an I/O error may have it again.
        if matches!(self.condition.seen.state(), State::ReadOnly | State::Unavailable) {
            self.disconnect();
        }
        if self.connection.is_none() && self.connect().is_err() {
            return Err(self.closed());
        }
        if self.condition.seen.state() == State::Corrupt {
            return Err(self.closed());
        }
        self.begin_start()?;
        self.control("BEGIN IMMEDIATE")
    }

    fn mark(&mut self) -> Result<()> {
        self.changes_before = self.changes();
        self.control("SAVEPOINT job")
    }

    fn settle(&mut self, keep: bool) -> Result<()> {
        // Some errors (a full disk) end the whole transaction. Then there is no savepoint any more.
        if self
            .connection
            .as_ref()
            .is_none_or(Connection::is_autocommit)
        {
            return Err(self.closed());
        }
        if keep {
            self.wrote |= self.changes() != self.changes_before;
        } else {
            self.control("ROLLBACK TO job")?;
        }
        self.control("RELEASE job")
    }

    fn commit(&mut self) -> Result<()> {
        if self.condition.seen.state() == State::Corrupt {
            return Err(self.closed());
        }
        self.control("COMMIT")?;
        self.expect_kept()?;
        // Committing a transaction that changed nothing shows nothing about the file.
        if self.wrote {
            self.condition.worked();
            self.mark_last_change();
        }
        self.finish();
        Ok(())
    }

    fn abandon(&mut self) {
        if self
            .connection
            .as_ref()
            .is_some_and(|connection| !connection.is_autocommit())
        {
            // The result does not matter: the transaction is lost anyway.
            let _ = self.control("ROLLBACK");
        }
    }
}
