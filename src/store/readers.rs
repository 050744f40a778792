//! The readers' side of the file: a few connections that cannot write. Used by the threads of the
//! lane `store-reader`.

use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::StoreError;
use super::condition::{Condition, Failure, State};
use super::file::open_for_reading;

/// At most one connection per thread of the lane.
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    condition: Arc<Condition>,
}

impl Readers {
    pub(super) fn new(condition: Arc<Condition>) -> Self {
        Self { idle: Mutex::new(Vec::new()), condition }
    }

    /// Runs `work` on one state of the file. A connection that met an error is not used again.
    pub(super) fn work<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        if !self.condition.was_opened() {
            return Err(StoreError::Unavailable(self.condition.cause()));
        }
        let pooled = self.idle.lock().pop();
        let connection = match pooled {
            Some(connection) => Ok(connection),
            None => self.open(),
        };
        let attempt = connection.and_then(|mut connection| {
            let transaction = connection.transaction()?;
            let done = work(&transaction)?;
            transaction.finish()?;
            // SQLite shares the log's index among a process's connections, so one that was opened
            // where nothing can be written would make the writer's next one read-only too.
            if self.condition.state() != State::ReadOnly {
                self.idle.lock().push(connection);
            }
            Ok(done)
        });
        attempt.map_err(|failure| self.condition.judge(failure))
    }

    fn open(&self) -> Result<Connection, Failure> {
        self.condition.expect_in_place()?;
        Ok(open_for_reading(self.condition.path())?)
    }
}
