//! The store on PostgreSQL: a lane of threads that read and one of threads that write. Each thread
//! has at most one connection, which it waits on.

use std::io;
use std::sync::Arc;

use crate::base::{Clock, Epoch, rng};
use crate::rt::{BatchStats, Lane, LaneError, LaneSpec, LaneStats, Ticket};
use crate::store::condition::State;
use crate::store::postgres::condition::Condition;
use crate::store::postgres::connection::{Deadline, Target};
use crate::store::postgres::lease;
use crate::store::postgres::transaction::{Connections, Purpose};
use crate::store::settings::{StoreSettings, StoreUrl};
use crate::store::statements::accounts;
use crate::store::traits::UserDirectory;
use crate::store::tx::{
    Failure, READ_DEADLINE_MS, Sql, Transact, Tx, WRITE_DEADLINE_MS, Write, args, sql,
};
use crate::store::{
    AccountId, DatabaseIdentity, MaintenanceError, NewUser, OpenError, StoreError, StoreHealth,
    Turn, User, UserChange, UserSummary,
};

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

/// [`Store`](crate::store::Store) on PostgreSQL.
pub(crate) struct PostgresStore {
    reader_lane: Lane,
    writer_lane: Lane,
    connections: Arc<Connections>,
    clock: Clock,
}

impl PostgresStore {
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

impl Transact for PostgresStore {
    const HAS_SEVERAL_NODES: bool = true;

    fn hold(tx: &dyn Tx, epoch: Epoch) -> Result<(), Failure> {
        lease::hold(tx, epoch)
    }

    fn hold_turn(tx: &dyn Tx, turn: &Turn) -> Result<(), Failure> {
        hold(tx, turn)
    }

    fn begin_turn(&self, id: AccountId) -> Result<Option<Turn>, StoreError> {
        take(self, id)
    }

    fn prolong_turn(&self, turn: &Turn) -> Result<bool, StoreError> {
        extend(self, turn)
    }

    fn finish_turn(&self, turn: &Turn) -> Result<(), StoreError> {
        end(self, turn)
    }

    fn read<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(Purpose::Read, deadline_ms, work)
    }

    fn glance<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(Purpose::Statement { writes: false }, deadline_ms, work)
    }

    fn write<T: Send + 'static>(
        &self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let condition = &self.connections.condition;
        let done = self.submit(Purpose::Write(write.users), write.deadline_ms, work);
        let done = condition.seen.noted(done);
        let counter = if done.is_ok() { &condition.committed } else { &condition.failed };
        counter.increment();
        done
    }

    fn erase<T: Send + 'static>(
        &self,
        id: AccountId,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
        _: fn(&T) -> bool,
    ) -> Result<T, StoreError> {
        self.write(Write::new().of([id]), work)
    }

    fn condition(&self) -> StoreHealth {
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

    fn look_after(&self) {
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

    fn finish(&self) {
        self.connections.close();
    }
}

// ---- Turns
//
// Turns of users: a row for each user with the holder of the turn, judged by the server's clock.
// Asked on the store's lanes, as everything of a request.

/// Deadline of an extension, and of the end of a turn, for which a finished answer waits. What
/// fails costs the turn nothing but time: it runs out by itself.
const DEADLINE_MS: u64 = 1_000;

const TAKE: Sql = sql!("sql/postgres/take_turn.sql");
const EXTEND: Sql = sql!("sql/postgres/extend_turn.sql");
const END: Sql = sql!("sql/postgres/end_turn.sql");
const HOLD: Sql = sql!("sql/postgres/hold_turn.sql");

/// `None` while another has the turn.
pub(crate) fn take(store: &PostgresStore, user: AccountId) -> Result<Option<Turn>, StoreError> {
    // Of each attempt its own: one that was given up may come to the server late.
    let holder = format!("{:016x}", rng::bits());
    store.write(Write::new(), move |tx| {
        let granted = tx.first(TAKE, &args![user, &holder, lasts_ms()], |row| row.get::<i64>(0))?;
        if granted.is_none() {
            accounts::expect_user(tx, user)?;
        }
        Ok(granted.map(|number| Turn { user, holder: holder.clone(), number }))
    })
}

/// False where another has taken the turn.
pub(crate) fn extend(store: &PostgresStore, turn: &Turn) -> Result<bool, StoreError> {
    let Turn { user, holder, number } = turn.clone();
    store.write(brief(), move |tx| {
        Ok(tx.run(EXTEND, &args![user, &holder, number, lasts_ms()])? > 0)
    })
}

/// Changes nothing where another has taken the turn.
pub(crate) fn end(store: &PostgresStore, turn: &Turn) -> Result<(), StoreError> {
    let Turn { user, holder, number } = turn.clone();
    store.write(brief(), move |tx| tx.run(END, &args![user, &holder, number]).map(drop))
}

/// Keeps others from taking the turn until the end of the transaction.
///
/// # Errors
/// [`StoreError::TurnLost`], or [`StoreError::NoSuchUser`].
pub(crate) fn hold(tx: &dyn Tx, turn: &Turn) -> Result<(), Failure> {
    if turn.is_alone() {
        return Ok(());
    }
    let Turn { user, holder, number } = turn;
    if tx.first(HOLD, &args![*user, holder, *number], |_| Ok(()))?.is_some() {
        return Ok(());
    }
    accounts::expect_user(tx, *user)?;
    Err(StoreError::TurnLost.into())
}

fn brief() -> Write {
    Write { deadline_ms: DEADLINE_MS, ..Write::new() }
}

fn lasts_ms() -> i64 {
    i64::try_from(Turn::LASTS_MS).unwrap_or(i64::MAX)
}

// ---- Users
//
// Users as an operator's commands list and change them, beside the running services. Called on a
// command's main thread; blocks.

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

    fn run<T>(
        &self,
        purpose: &Purpose,
        work: impl Fn(&dyn Tx) -> Result<T, Failure>,
    ) -> Result<T, MaintenanceError> {
        let deadline = Deadline::in_ms(WRITE_DEADLINE_MS, &self.clock);
        Ok(self.connections.run(purpose, WRITE_DEADLINE_MS, &deadline, &work)?)
    }
}

impl UserDirectory for PostgresUsers {
    fn page(&self, after: AccountId, limit: usize) -> Result<Vec<UserSummary>, MaintenanceError> {
        self.run(&Purpose::Read, |tx| accounts::page(tx, after, limit))
    }

    fn find(&self, id_or_email: &str) -> Result<Option<UserSummary>, MaintenanceError> {
        self.run(&Purpose::Read, |tx| accounts::find(tx, id_or_email))
    }

    fn add(&mut self, user: NewUser) -> Result<Option<User>, MaintenanceError> {
        self.run(&Purpose::Write(Vec::new()), |tx| accounts::add(tx, &user))
    }

    fn set_password(&mut self, id: AccountId, hash: &str) -> Result<Option<i64>, MaintenanceError> {
        self.run(&Purpose::Write(vec![id]), |tx| accounts::set_password(tx, id, hash))
    }

    fn change(
        &mut self,
        id: AccountId,
        change: UserChange,
    ) -> Result<Option<i64>, MaintenanceError> {
        self.run(&Purpose::Write(vec![id]), |tx| accounts::change(tx, id, change))
    }

    fn renew_identity(&mut self, is_copy: bool) -> Result<DatabaseIdentity, MaintenanceError> {
        self.run(&Purpose::Write(Vec::new()), |tx| accounts::renew_identity(tx, is_copy))
    }

    fn noticed(&self, _number: i64) -> Result<Option<bool>, MaintenanceError> {
        Ok(None)
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod turns_tests;
