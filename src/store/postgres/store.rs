//! The store on PostgreSQL: a lane of reader threads and a lane of writer threads. Each thread uses
//! at most one connection and blocks on it.

use std::sync::Arc;

use crate::base::Clock;
use crate::rt::{BatchStats, Lane, LaneSpec, LaneStats};
use crate::store::condition::StoreHealth;
use crate::store::errors::{OpenError, Result};
use crate::store::postgres::transactions::{Connections, Purpose};
use crate::store::settings::{StoreSettings, StoreUrl};
use crate::store::tx::{Failure, Tx};
use crate::store::write::Write;

/// Default number of threads of each lane. Each has a connection, and a server has some hundred of
/// these for all its clients.
const THREADS: usize = 4;
/// Most waiting requests of each kind, as in the other engine.
const WAITING_MAX: usize = 1_024;
/// Time that a start waits for the server, also while another node migrates. If the server is away
/// for longer, the running service waits for it.
const START_DEADLINE_MS: u64 = 10_000;

/// The engine on a server.
pub(crate) struct Postgres {
    reader_lane: Lane,
    writer_lane: Lane,
    pub(crate) connections: Arc<Connections>,
}

impl Postgres {
    /// Connects, and makes or migrates the schema if needed. A server that cannot be reached is no
    /// error: the store reports its state until the server can be used.
    ///
    /// # Errors
    /// A newer or foreign schema, a bad setting, or a thread that could not be started.
    pub(crate) fn open(
        url: &StoreUrl,
        settings: &StoreSettings,
        clock: &Clock,
    ) -> Result<Self, OpenError> {
        let connections = Connections::new(url, settings, clock)?;
        match connections.migrate(&connections.deadline(START_DEADLINE_MS)) {
            // The condition has logged why.
            Err(OpenError::Store(_)) => tracing::info!("waiting for the database"),
            done => done?,
        }
        let lane = |name, threads| {
            let threads = if threads == 0 { THREADS } else { threads };
            Lane::start(
                &LaneSpec {
                    name,
                    threads,
                    queue_max: WAITING_MAX,
                },
                clock,
            )
        };
        Ok(Self {
            reader_lane: lane("store-read", settings.readers)?,
            writer_lane: lane("store-write", settings.writers)?,
            connections,
        })
    }

    /// Whether a service could use the server. Changes nothing on it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(crate) fn check(url: &StoreUrl, settings: &StoreSettings) -> Result<(), OpenError> {
        let connections = Connections::new(url, settings, &Clock::system())?;
        let deadline = connections.deadline(START_DEADLINE_MS);
        let connection = connections.connected(&deadline)?;
        let found = connections.version(&connection, &deadline)?;
        connections.expect_rights(&connection, &deadline, found)
    }

    pub(crate) fn submit<T: Send + 'static>(
        &self,
        purpose: Purpose,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let lane = match purpose {
            Purpose::Read | Purpose::Statement { writes: false } => &self.reader_lane,
            Purpose::Write(_) | Purpose::Statement { writes: true } => &self.writer_lane,
        };
        let connections = Arc::clone(&self.connections);
        let deadline = connections.deadline(deadline_ms);
        let ticket = lane.submit(deadline_ms, move || connections.run(&purpose, &deadline, &work));
        self.connections.condition.seen.wait(ticket)
    }

    /// Writes in the terms of the engine that groups them: here each write is its own commit.
    fn writer_stats(&self, lane: &LaneStats) -> BatchStats {
        let condition = &self.connections.condition;
        let committed = condition.committed.value();
        let mut sizes = BatchStats::default().sizes;
        sizes[0] = committed;
        BatchStats {
            depth: lane.depth,
            commits: committed,
            committed,
            failed: condition.failed.value(),
            batch_max: committed.min(1),
            sizes,
            refused: lane.refused,
            expired: lane.expired,
            panicked: lane.panicked,
            busy_ms: None,
        }
    }
}

impl Postgres {
    pub(crate) fn write<T: Send + 'static>(
        &self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let condition = &self.connections.condition;
        let Write {
            deadline_ms,
            users,
            right,
            ..
        } = write;
        let done = self.submit(Purpose::Write(users), deadline_ms, move |tx| {
            if let Some(expect_right) = &right {
                expect_right(tx)?;
            }
            work(tx)
        });
        let done = condition.seen.noted(done);
        let counter = if done.is_ok() {
            &condition.committed
        } else {
            &condition.failed
        };
        counter.increment();
        done
    }

    pub(crate) fn health(&self) -> StoreHealth {
        let condition = &self.connections.condition;
        let writer = self.writer_stats(&self.writer_lane.stats());
        condition
            .seen
            .health(writer, self.reader_lane.stats(), condition.roundtrips.read(0))
    }
}
