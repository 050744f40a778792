//! Runs work in a transaction, and again if the server ended it for a reason of its own. Never
//! repeats it once a commit was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::base::Clock;
use crate::store::account_id::AccountId;
use crate::store::condition::State;
use crate::store::errors::{BadStoreUrl, MaintenanceError, OpenError, Result, StoreError};
use crate::store::postgres::condition::Condition;
use crate::store::postgres::connection::{Connection, Deadline, Meaning, meaning};
use crate::store::postgres::target::Target;
use crate::store::postgres::tx::{Opening, PostgresTx};
use crate::store::schema::known_server_version;
use crate::store::settings::{StoreSettings, StoreUrl};
use crate::store::tx::{Failure, Tx};
use crate::store::write::WRITE_DEADLINE_MS;

/// Attempts of a transaction that the server ended, or whose connection was lost.
const ATTEMPTS_MAX: usize = 2;
/// Time left of a deadline when the server ends a statement, so that its error still arrives. Half
/// of a short deadline.
const MARGIN_MS: u64 = 500;
/// Time that a write waits for another's lock.
const LOCK_TIMEOUT_MS: u64 = 2_000;
/// Time that a transaction may idle while it waits for this program, which may be stopped while it
/// holds locks. Longer than the longest deadline.
const IDLE_TIMEOUT_MS: u64 = 15_000;

/// Purpose of a transaction.
#[derive(Clone)]
pub(crate) enum Purpose {
    Read,
    /// A write, with the users to lock.
    Write(Vec<AccountId>),
    /// One statement, which is its own transaction and costs one round trip. The client alone keeps
    /// its deadline.
    Statement {
        writes: bool,
    },
}

impl Purpose {
    /// `None` for a purpose that needs no explicit transaction.
    fn opening(&self, deadline_ms: u64) -> Option<Opening> {
        let statement_ms = (deadline_ms - MARGIN_MS.min(deadline_ms / 2)).max(1);
        Some(match self {
            Self::Statement { .. } => return None,
            Self::Read => Opening {
                begin: format!(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                     SET LOCAL statement_timeout = {statement_ms}"
                ),
                users: Vec::new(),
            },
            // An answered commit is on disk, also if the server's default is to answer earlier.
            Self::Write(users) => Opening {
                begin: format!(
                    "BEGIN; SET LOCAL statement_timeout = {statement_ms}; \
                     SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}; \
                     SET LOCAL idle_in_transaction_session_timeout = {IDLE_TIMEOUT_MS}; \
                     SELECT set_config('synchronous_commit', 'on', true) \
                     WHERE current_setting('synchronous_commit') = 'off'"
                ),
                users: users.clone(),
            },
        })
    }

    fn writes(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Statement { writes: true })
    }
}

/// Why an attempt failed.
enum Ended {
    /// Failed before a commit was sent: nothing was written.
    Before(Failure),
    /// Failed after it: nobody knows whether it was written.
    Unknown,
}

impl Ended {
    /// A server that reports why it did not commit has written nothing.
    fn of_commit(failure: Failure) -> Self {
        match &failure {
            Failure::Postgres(error) if meaning(error) != Meaning::Lost => Self::Before(failure),
            _ => Self::Unknown,
        }
    }
}

/// Whether the server reported an error, so that the statement has no further effect.
fn was_answered(failure: &Failure) -> bool {
    matches!(failure, Failure::Postgres(error) if meaning(error) != Meaning::Lost)
}

/// The connections of the store, at most one for each of its threads.
pub(crate) struct Connections {
    pub(crate) target: Target,
    pub(crate) condition: Condition,
    idle: Mutex<Vec<Connection>>,
    /// Whether the schema was seen to be the one that this program knows.
    is_migrated: AtomicBool,
}

impl Connections {
    /// The connections of a database. Does not connect yet.
    ///
    /// # Errors
    /// A bad setting.
    pub(crate) fn new(
        url: &StoreUrl,
        settings: &StoreSettings,
        clock: &Clock,
    ) -> Result<Arc<Self>, BadStoreUrl> {
        Ok(Arc::new(Self {
            target: Target::new(url, settings)?,
            condition: Condition::new(clock),
            idle: Mutex::new(Vec::new()),
            is_migrated: AtomicBool::new(false),
        }))
    }

    pub(crate) fn deadline(&self, ms: u64) -> Deadline {
        Deadline::in_ms(ms, &self.condition.clock)
    }

    /// Makes or migrates the schema.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(crate) fn migrate(&self, deadline: &Deadline) -> Result<(), OpenError> {
        let connection = self.connected(deadline)?;
        self.migrate_through(&connection, deadline)?;
        self.idle.lock().push(connection);
        Ok(())
    }

    /// Connects for a command, next to the services that keep the database current.
    ///
    /// # Errors
    /// [`MaintenanceError`], also for an older schema.
    pub(crate) fn beside(
        url: &StoreUrl,
        settings: &StoreSettings,
    ) -> Result<Arc<Self>, MaintenanceError> {
        let server = Self::new(url, settings, &Clock::system()).map_err(OpenError::from)?;
        let deadline = server.deadline(WRITE_DEADLINE_MS);
        let connection = server.connected(&deadline)?;
        let found = server.version(&connection, &deadline)?;
        if found < known_server_version() {
            return Err(MaintenanceError::Older {
                path: url.as_str().into(),
                found,
            });
        }
        server.is_migrated.store(true, Ordering::Relaxed);
        server.keep(connection);
        Ok(server)
    }

    /// A new connection for a command or a start.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn connected(&self, deadline: &Deadline) -> Result<Connection> {
        self.connect(deadline)
            .map_err(|failure| self.condition.judge(failure))
    }

    pub(crate) fn migrate_through(
        &self,
        connection: &Connection,
        deadline: &Deadline,
    ) -> Result<(), OpenError> {
        self.migrate_schema(connection, deadline)?;
        self.is_migrated.store(true, Ordering::Relaxed);
        self.condition.worked(true);
        Ok(())
    }

    fn connect(&self, deadline: &Deadline) -> Result<Connection, Failure> {
        self.condition.expect_attempt()?;
        let opened = Connection::open(&self.target, deadline);
        match &opened {
            Ok(_) => self.condition.connected(),
            Err(_) => self.condition.not_connected(),
        }
        // No retry within the call: the next host was tried already.
        opened.map_err(|failure| self.condition.judge_connecting(failure).into())
    }

    /// An idle connection, or a new one.
    fn take(&self, deadline: &Deadline) -> Result<Connection, Failure> {
        self.condition.seen.expect_not_closed()?;
        if let Some(connection) = self.idle.lock().pop() {
            return Ok(connection);
        }
        let connection = self.connect(deadline)?;
        let fit = match self.is_migrated.load(Ordering::Relaxed) {
            false => self.migrate_through(&connection, deadline),
            // A newer program may have changed the schema since.
            true => self.expect_known(&connection, deadline).map(drop),
        };
        fit.map_err(|error| {
            let cause = error.to_string();
            self.condition.seen.set(State::Unavailable, &cause);
            StoreError::Unavailable(cause)
        })?;
        Ok(connection)
    }

    /// Closes everything. A connection in use is closed when its work ends.
    pub(crate) fn close(&self) {
        self.condition.seen.close();
        self.idle.lock().clear();
    }

    /// Runs work of a command, on its main thread.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn run_here<T>(
        &self,
        purpose: &Purpose,
        work: impl Fn(&dyn Tx) -> Result<T, Failure>,
    ) -> Result<T> {
        self.run(purpose, &self.deadline(WRITE_DEADLINE_MS), &work)
    }

    /// Runs work in a transaction.
    pub(crate) fn run<T>(
        &self,
        purpose: &Purpose,
        deadline: &Deadline,
        work: &impl Fn(&dyn Tx) -> Result<T, Failure>,
    ) -> Result<T> {
        let mut attempts = 1;
        loop {
            let opening = purpose.opening(deadline.ms);
            let stopwatch = self.condition.clock.stopwatch();
            let ended = match self.attempt(opening, purpose.writes(), deadline, work) {
                Ok(done) => {
                    self.condition.roundtrips.record(0, stopwatch.elapsed_ns());
                    self.condition.worked(purpose.writes());
                    return Ok(done);
                }
                Err(ended) => ended,
            };
            let failure = match ended {
                // Reported as a commit that was sent and may have been written.
                Ended::Unknown => return Err(StoreError::Late),
                Ended::Before(failure) => failure,
            };
            let meant = match &failure {
                Failure::Postgres(error) => Some(meaning(error)),
                _ => None,
            };
            let silent = matches!(failure, Failure::Refused(StoreError::Late));
            if silent || meant == Some(Meaning::Lost) {
                // A fault of one connection is assumed for all idle ones too.
                self.idle.lock().clear();
            }
            let again = matches!(meant, Some(Meaning::Again | Meaning::Lost));
            if !again || attempts == ATTEMPTS_MAX || deadline.left().is_zero() {
                if silent {
                    self.condition.silent();
                }
                return Err(self.condition.judge(failure));
            }
            attempts += 1;
        }
    }

    fn attempt<T>(
        &self,
        opening: Option<Opening>,
        writes: bool,
        deadline: &Deadline,
        work: &impl Fn(&dyn Tx) -> Result<T, Failure>,
    ) -> Result<T, Ended> {
        let connection = self.take(deadline).map_err(Ended::Before)?;
        let in_transaction = opening.is_some();
        let tx = PostgresTx::new(&connection, deadline, opening);
        let done = work(&tx);
        let is_open = in_transaction && tx.is_open();
        let has_failed = tx.has_failed();
        let control = |sql| connection.wait(deadline, connection.client.batch_execute(sql));
        match done {
            Ok(done) if !has_failed => {
                match if is_open { control("COMMIT") } else { Ok(()) } {
                    Ok(()) => self.keep(connection),
                    // A failed commit of a read loses nothing.
                    Err(_) if !writes => {}
                    Err(failure) => return Err(Ended::of_commit(failure)),
                }
                Ok(done)
            }
            done => {
                // A connection on which the rollback fails is dropped, which also ends the
                // transaction.
                let is_usable = match in_transaction {
                    true if is_open => {
                        !connection.client.is_closed() && control("ROLLBACK").is_ok()
                    }
                    true => true,
                    false => done.as_ref().err().is_none_or(was_answered),
                };
                if is_usable {
                    self.keep(connection);
                }
                let lost = || StoreError::Unavailable("a failed statement was passed over".into());
                let failure = done.err().unwrap_or_else(|| lost().into());
                // A single statement commits with its answer.
                let is_unknown = writes && !in_transaction;
                Err(if is_unknown {
                    Ended::of_commit(failure)
                } else {
                    Ended::Before(failure)
                })
            }
        }
    }

    fn keep(&self, connection: Connection) {
        if self.condition.seen.expect_not_closed().is_ok() && !connection.client.is_closed() {
            self.idle.lock().push(connection);
        }
    }
}
