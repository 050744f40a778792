//! The store on PostgreSQL: a lane of threads that read and one of threads that write. Each thread
//! has at most one connection, which it waits on.

use std::sync::Arc;

use crate::base::Clock;
use crate::rt::{BatchStats, Lane, LaneSpec, LaneStats};
use crate::store::condition::StoreHealth;
use crate::store::errors::{OpenError, Result};
use crate::store::postgres::lease;
use crate::store::postgres::transaction::{Connections, Purpose};
use crate::store::settings::{StoreSettings, StoreUrl};
use crate::store::turns;
use crate::store::tx::{Failure, Right, Tx, Write};

/// Threads of each lane where the settings do not say. Each has a connection, of which a server has
/// some hundred for all its clients.
const THREADS: usize = 4;
/// Most waiting requests of each kind, as for the other engine.
const WAITING_MAX: usize = 1_024;
/// How long a start waits for the server, also while another node migrates. A server that is away
/// for longer is waited for by the running service.
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
            // The condition has said why.
            Err(OpenError::Store(_)) => tracing::info!("the database is waited for"),
            done => done?,
        }
        let lane = |name, threads| {
            let threads = if threads == 0 { THREADS } else { threads };
            Lane::start(&LaneSpec { name, threads, queue_max: WAITING_MAX }, clock)
        };
        Ok(Self {
            reader_lane: lane("store-read", settings.readers)?,
            writer_lane: lane("store-write", settings.writers)?,
            connections,
        })
    }

    /// Whether a service could use the server, which is left as it is.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(crate) fn check(url: &StoreUrl, settings: &StoreSettings) -> Result<(), OpenError> {
        let connections = Connections::new(url, settings, &Clock::system())?;
        connections.look(&connections.deadline(START_DEADLINE_MS))
    }

    fn submit<T: Send + 'static>(
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

    /// Writes in the words of the engine that groups them: here each is a commit of its own.
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
    pub(crate) fn read<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        self.submit(Purpose::Read, deadline_ms, work)
    }

    pub(crate) fn glance<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        self.submit(Purpose::Statement { writes: false }, deadline_ms, work)
    }

    pub(crate) fn write<T: Send + 'static>(
        &self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let condition = &self.connections.condition;
        let Write { deadline_ms, users, right, .. } = write;
        let done = self.submit(Purpose::Write(users), deadline_ms, move |tx| {
            match &right {
                Right::Anybody => {}
                Right::Leader(epoch) => lease::hold(tx, *epoch)?,
                Right::Turn(turn) => turns::hold(tx, turn)?,
            }
            work(tx)
        });
        let done = condition.seen.noted(done);
        let counter = if done.is_ok() { &condition.committed } else { &condition.failed };
        counter.increment();
        done
    }

    pub(crate) fn health(&self) -> StoreHealth {
        let condition = &self.connections.condition;
        let writer = self.writer_stats(&self.writer_lane.stats());
        condition.seen.health(writer, self.reader_lane.stats(), condition.roundtrips.read(0))
    }

    pub(crate) fn close(&self) {
        self.connections.close();
    }
}
