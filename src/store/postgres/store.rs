//! The store on PostgreSQL: a lane of threads that read and one of threads that write. Each thread
//! has at most one connection, which it waits on.

use std::io;
use std::sync::Arc;

use crate::base::Clock;
use crate::rt::{BatchStats, Lane, LaneError, LaneSpec, LaneStats, Ticket};
use crate::store::condition::State;
use crate::store::postgres::condition::Condition;
use crate::store::postgres::connection::{Deadline, Target};
use crate::store::postgres::lease;
use crate::store::postgres::transaction::{Connections, Purpose};
use crate::store::settings::{StoreSettings, StoreUrl};
use crate::store::turns;
use crate::store::tx::{Failure, READ_DEADLINE_MS, Right, Sql, Tx, WRITE_DEADLINE_MS, Write, sql};
use crate::store::{MaintenanceError, OpenError, StoreError, StoreHealth};

const PROBE_READ: Sql = sql!("sql/store/probe_read.sql");
const PROBE_WRITE: Sql = sql!("sql/store/probe_write.sql");
/// Locks the rows for which registrations and changes of all nodes wait in turn.
const PROBE_SHARED: Sql = sql!("sql/postgres/probe_shared.sql");

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
    connections: Arc<Connections>,
    clock: Clock,
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
        let target = Target::new(url, settings)?;
        let connections = Connections::new(target, Condition::new(clock));
        match connections.migrate(&Deadline::in_ms(START_DEADLINE_MS, clock)) {
            // The condition has said why.
            Err(OpenError::Store(_)) => tracing::info!("the database is waited for"),
            done => done?,
        }
        let lane = |name, threads| {
            let threads = if threads == 0 { THREADS } else { threads };
            Lane::start(&LaneSpec { name, threads, queue_max: WAITING_MAX }, clock)
        };
        let started: io::Result<Self> = (|| {
            Ok(Self {
                reader_lane: lane("store-read", settings.readers)?,
                writer_lane: lane("store-write", settings.writers)?,
                connections,
                clock: clock.clone(),
            })
        })();
        Ok(started?)
    }

    /// Whether a service could use the server, which is left as it is.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(crate) fn check(url: &StoreUrl, settings: &StoreSettings) -> Result<(), OpenError> {
        let clock = Clock::system();
        let connections = Connections::new(Target::new(url, settings)?, Condition::new(&clock));
        connections.look(&Deadline::in_ms(START_DEADLINE_MS, &clock))
    }

    fn submit<T: Send + 'static>(
        &self,
        purpose: Purpose,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let lane = match purpose {
            Purpose::Read | Purpose::Statement { writes: false } => &self.reader_lane,
            Purpose::Write(_) | Purpose::Statement { writes: true } => &self.writer_lane,
        };
        let connections = Arc::clone(&self.connections);
        let deadline = Deadline::in_ms(deadline_ms, &self.clock);
        let ticket = lane
            .submit(deadline_ms, move || connections.run(&purpose, deadline_ms, &deadline, &work));
        let result = match ticket.map(Ticket::wait) {
            Ok(Ok(done)) => done,
            Ok(Err(LaneError::Late)) => Err(StoreError::Late),
            Ok(Err(error)) => Err(StoreError::Unavailable(error.to_string())),
            Err(_) => Err(StoreError::Busy),
        };
        if let Err(StoreError::Busy | StoreError::Late | StoreError::Unavailable(_)) = &result {
            self.connections.condition.refused.increment();
        }
        result
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
    ) -> Result<T, StoreError> {
        self.submit(Purpose::Read, deadline_ms, work)
    }

    pub(crate) fn glance<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(Purpose::Statement { writes: false }, deadline_ms, work)
    }

    pub(crate) fn write<T: Send + 'static>(
        &self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
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
        StoreHealth {
            state: condition.seen.state().as_str(),
            cause: condition.seen.cause(),
            writes: writer.committed,
            commits: writer.commits,
            refused: condition.refused.value(),
            writing_ms: None,
            writer,
            readers: self.reader_lane.stats(),
            roundtrips: condition.roundtrips.read(0),
        }
    }

    pub(crate) fn probe(&self) {
        let read = self.glance(READ_DEADLINE_MS, |tx| tx.first(PROBE_READ, &[], |_| Ok(())));
        let seen = &self.connections.condition.seen;
        let trusted = !seen.take_doubt() && seen.state() == State::Ok;
        let done = if read.is_ok() && trusted {
            Ok(())
        } else {
            let written = self.submit(Purpose::Write(Vec::new()), WRITE_DEADLINE_MS, |tx| {
                tx.run(PROBE_WRITE, &[])?;
                tx.first(PROBE_SHARED, &[], |_| Ok(())).map(drop)
            });
            seen.probed(&written);
            written
        };
        if let Err(error) = done {
            tracing::debug!(%error, "the store is still not well");
        }
    }

    pub(crate) fn close(&self) {
        self.connections.close();
    }
}

// ---- Users
//
// The connection of an operator's command, beside the running services. Used on the command's main
// thread; blocks.

/// A connection beside the services.
pub(crate) struct PostgresUsers {
    connections: Arc<Connections>,
    clock: Clock,
}

impl PostgresUsers {
    /// Connects to a database with the current schema. Only the service migrates an older one.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn open(url: &StoreUrl, settings: &StoreSettings) -> Result<Self, MaintenanceError> {
        let clock = Clock::system();
        let target = Target::new(url, settings).map_err(OpenError::from)?;
        let connections = Connections::new(target, Condition::new(&clock));
        connections.expect_current(&Deadline::in_ms(WRITE_DEADLINE_MS, &clock))?;
        Ok(Self { connections, clock })
    }

    pub(crate) fn read<T>(
        &self,
        work: impl Fn(&dyn Tx) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.run(&Purpose::Read, work)
    }

    pub(crate) fn write<T>(
        &self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.run(&Purpose::Write(write.users), work)
    }

    fn run<T>(
        &self,
        purpose: &Purpose,
        work: impl Fn(&dyn Tx) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let deadline = Deadline::in_ms(WRITE_DEADLINE_MS, &self.clock);
        self.connections.run(purpose, WRITE_DEADLINE_MS, &deadline, &work)
    }
}
