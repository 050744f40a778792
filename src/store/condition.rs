//! The states of a store, whatever the engine, and the state seen last.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::ops::{Counter, DurationCounts};
use crate::rt::{BatchStats, LaneError, LaneStats, Refused, Ticket};
use crate::store::columns::columns;
use crate::store::errors::{Result, StoreError};
use crate::store::tx::statements;
pub(crate) use crate::views::states::StoreState as State;

columns! {
    const IDENTIFIED = [database_id, starts, cluster_id];
}

statements! {
    /// Which database it is.
    const IDENTITY = ["SELECT ", IDENTIFIED.sql, " FROM identity WHERE id = 1"];
    const PROBE_READ = "SELECT written FROM probe WHERE id = 1";
    const PROBE_WRITE = "UPDATE probe SET written = written + 1 WHERE id = 1";
}

/// State of the store, known without accessing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHealth {
    pub state: State,
    /// The cause of the state, for the operator; empty if the state is `ok`.
    pub cause: String,
    /// Operations refused or given up since the start.
    pub refused: u64,
    pub writer: BatchStats,
    pub readers: LaneStats,
    /// Round trips of a database on a server; empty for a file.
    pub roundtrips: DurationCounts,
}

struct Seen {
    state: State,
    cause: String,
    /// False until an operation has shown a state.
    is_known: bool,
}

/// The state that operations showed last. Used from any thread; the lock is held only to copy it.
pub(crate) struct LastSeen {
    seen: Mutex<Seen>,
    /// Set by a write that failed, until the next probe, which then writes too.
    doubted: AtomicBool,
    /// Set when the service stops: nothing is opened or written any more.
    closed: AtomicBool,
    /// Operations refused or given up since the start.
    refused: Counter,
}

impl LastSeen {
    /// Unavailable so far, because of `cause`.
    pub(crate) fn unavailable(cause: &str) -> Self {
        let seen = Seen {
            state: State::Unavailable,
            cause: cause.to_owned(),
            is_known: false,
        };
        let doubted = AtomicBool::new(false);
        let closed = AtomicBool::new(false);
        Self {
            seen: Mutex::new(seen),
            doubted,
            closed,
            refused: Counter::new(),
        }
    }

    pub(crate) fn state(&self) -> State {
        self.seen.lock().state
    }

    pub(crate) fn cause(&self) -> String {
        self.seen.lock().cause.clone()
    }

    /// Records a state, and logs it if it has changed. This is the only log line of the cause: code
    /// that meets it as [`StoreError::Unavailable`] need not repeat it.
    pub(crate) fn set(&self, state: State, cause: &str) {
        let seen = Seen {
            state,
            cause: cause.to_owned(),
            is_known: true,
        };
        let before = std::mem::replace(&mut *self.seen.lock(), seen);
        if before.state == state && before.is_known {
            return;
        }
        match state {
            State::Corrupt => tracing::error!(
                cause,
                "the store is damaged and takes no writes: stop the service, put a good copy in \
                 place and start it"
            ),
            State::Ok => tracing::info!(was = before.state.as_str(), "the store can be used"),
            _ => tracing::error!(state = state.as_str(), cause, "the store cannot be used fully"),
        }
    }

    /// Waits for work of one of the engine's threads. Counts the failures for lack of time, of room
    /// or of a usable database.
    pub(crate) fn wait<T>(&self, ticket: Result<Ticket<Result<T>>, Refused>) -> Result<T> {
        let result = match ticket.map(Ticket::wait) {
            Ok(Ok(done)) => done,
            Ok(Err(LaneError::Late)) => Err(StoreError::Late),
            Ok(Err(error)) => Err(StoreError::Unavailable(error.to_string())),
            Err(_) => Err(StoreError::Busy),
        };
        if let Err(StoreError::Busy | StoreError::Late | StoreError::Unavailable(_)) = &result {
            self.refused.increment();
        }
        result
    }

    /// The state for health, with the engine's own figures.
    pub(crate) fn health(
        &self,
        writer: BatchStats,
        readers: LaneStats,
        roundtrips: DurationCounts,
    ) -> StoreHealth {
        StoreHealth {
            state: self.state(),
            cause: self.cause(),
            refused: self.refused.value(),
            writer,
            readers,
            roundtrips,
        }
    }

    /// Records the outcome of a write. After a failure the next probe writes.
    pub(crate) fn noted<T>(&self, written: Result<T>) -> Result<T> {
        if let Err(StoreError::Busy | StoreError::Late | StoreError::Unavailable(_)) = &written {
            self.doubted.store(true, Ordering::Relaxed);
        }
        written
    }

    /// Whether a write failed since the last call.
    pub(crate) fn take_doubt(&self) -> bool {
        self.doubted.swap(false, Ordering::Relaxed)
    }

    /// Records the outcome of the probe's write. Only the probe ends [`Stuck`](State::Stuck):
    /// another write may touch none of the rows that others wait for.
    pub(crate) fn probed(&self, written: &Result<()>) {
        match (written, self.state()) {
            (Ok(()), State::Stuck) => self.set(State::Ok, ""),
            (Err(StoreError::Busy | StoreError::Late), State::Ok) => {
                self.set(State::Stuck, "a write of the probe did not end in time");
            }
            (Err(error), State::Ok) => self.set(State::Unavailable, &error.to_string()),
            _ => {}
        }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn expect_not_closed(&self) -> Result<()> {
        match self.closed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(StoreError::Unavailable("the service is stopping".to_owned())),
        }
    }
}
