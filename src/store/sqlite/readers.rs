//! The read-only connections. Used by the threads of the lane `store-reader`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::store::condition::State;
use crate::store::errors::{Result, StoreError};
use crate::store::sqlite::condition::Condition;
use crate::store::sqlite::file::open_for_reading;
use crate::store::tx::Failure;

/// Connections not in use, at most one per thread of the lane.
pub(crate) struct Readers {
    idle: Mutex<Vec<Connection>>,
    /// Number of times that all connections were retired. A connection of an earlier generation is
    /// not reused.
    generation: AtomicU64,
    condition: Arc<Condition>,
}

impl Readers {
    pub(crate) fn new(condition: Arc<Condition>) -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
            generation: AtomicU64::new(0),
            condition,
        }
    }

    /// Retires all connections. A connection in use is closed when its work ends.
    pub(crate) fn retire(&self) {
        let mut idle = self.idle.lock();
        self.generation.fetch_add(1, Ordering::Relaxed);
        let retired = std::mem::take(&mut *idle);
        drop(idle);
        drop(retired);
    }

    /// Runs `work` on a consistent state of the file. A connection that had an error is not reused.
    pub(crate) fn work<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T> {
        if !self.condition.was_opened() {
            return Err(StoreError::Unavailable(self.condition.seen.cause()));
        }
        let (generation, pooled) = {
            let mut idle = self.idle.lock();
            (self.generation.load(Ordering::Relaxed), idle.pop())
        };
        let connection = match pooled {
            Some(connection) => Ok(connection),
            None => self.open(),
        };
        let attempt = connection.and_then(|mut connection| {
            let transaction = connection.transaction()?;
            let done = work(&transaction)?;
            transaction.finish()?;
            // SQLite shares the index of the log among a process's connections. A connection that
            // was opened while nothing could be written would make the writer's next one read-only
            // too.
            if self.condition.seen.state() != State::ReadOnly {
                self.keep(connection, generation);
            }
            Ok(done)
        });
        attempt.map_err(|failure| self.condition.judge(failure))
    }

    fn keep(&self, connection: Connection, generation: u64) {
        let mut idle = self.idle.lock();
        if generation == self.generation.load(Ordering::Relaxed) {
            idle.push(connection);
        }
    }

    fn open(&self) -> Result<Connection, Failure> {
        self.condition.seen.expect_not_closed()?;
        self.condition.expect_in_place()?;
        Ok(open_for_reading(&self.condition.path)?)
    }
}
