//! What an engine does for the operations of the store: it runs work in transactions.

use super::error::StoreError;
use super::records::{AccountId, StoreHealth, Turn};
use super::tx::{Failure, Tx};
use crate::base::Epoch;

/// Deadline of a read. A person waits for it; a local disk takes milliseconds.
pub(crate) const READ_DEADLINE_MS: u64 = 2_000;
/// Deadline of a read of one cell, for what is finished but for this.
pub(crate) const GLANCE_DEADLINE_MS: u64 = 250;
/// Deadline of a write. Longer than the wait for another process's lock.
pub(crate) const WRITE_DEADLINE_MS: u64 = 5_000;
/// Deadline of a page of the close run, which has many rows and for which nobody waits.
pub(crate) const PAGE_DEADLINE_MS: u64 = 10_000;

/// What an engine has to know of a write.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) deadline_ms: u64,
    /// Users whose data is compared before it is changed. No other write changes it meanwhile.
    #[cfg_attr(not(feature = "engines"), expect(dead_code, reason = "SQLite writes in turn"))]
    pub(crate) users: Vec<AccountId>,
    /// Whether older data is overwritten that must not stay in a log for long.
    pub(crate) hides: bool,
}

impl Write {
    /// A write for which a person waits.
    pub(crate) fn new() -> Self {
        Self { deadline_ms: WRITE_DEADLINE_MS, users: Vec::new(), hides: false }
    }

    /// A write of many rows, for which nobody waits.
    pub(crate) fn page() -> Self {
        Self { deadline_ms: PAGE_DEADLINE_MS, ..Self::new() }
    }

    pub(crate) fn of(self, users: impl IntoIterator<Item = AccountId>) -> Self {
        Self { users: users.into_iter().collect(), ..self }
    }

    pub(crate) fn hiding(self) -> Self {
        Self { hides: true, ..self }
    }
}

/// An engine. The work runs on its threads, in one transaction; again, in a new one, where the
/// engine ended the first for a reason of its own. The caller parks (coroutine) or blocks (thread)
/// until the result is there or the deadline has passed.
pub(crate) trait Transact: Send + Sync {
    /// Whether several nodes may share a database.
    const HAS_SEVERAL_NODES: bool;

    /// Runs work that only reads, on one state of the database.
    fn read<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError>;

    /// Runs work that is one statement and only reads. An engine may do it at less cost.
    fn glance<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read(deadline_ms, work)
    }

    /// Runs work that writes. `Ok` means that it is on disk.
    fn write<T: Send + 'static>(
        &self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError>;

    /// Same as [`write`](Self::write), for work that erases a user's data for good. `erased` says
    /// whether there was any.
    fn erase<T: Send + 'static>(
        &self,
        id: AccountId,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
        erased: fn(&T) -> bool,
    ) -> Result<T, StoreError>;

    /// Holds the leadership of `epoch` to the end of a transaction that writes: no other node takes
    /// it meanwhile. An engine that one process alone uses has nothing to hold.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] where another node has led since.
    fn hold(tx: &dyn Tx, epoch: Epoch) -> Result<(), Failure>
    where
        Self: Sized;

    /// Holds a user's turn to the end of a transaction that writes: nobody else takes it meanwhile.
    ///
    /// # Errors
    /// [`StoreError::TurnLost`] where another has taken it since.
    fn hold_turn(tx: &dyn Tx, turn: &Turn) -> Result<(), Failure>
    where
        Self: Sized;

    /// [`Store::take_turn`](super::traits::Store::take_turn).
    fn begin_turn(&self, id: AccountId) -> Result<Option<Turn>, StoreError>;
    /// [`Store::extend_turn`](super::traits::Store::extend_turn).
    fn prolong_turn(&self, turn: &Turn) -> Result<bool, StoreError>;
    /// [`Store::end_turn`](super::traits::Store::end_turn).
    fn finish_turn(&self, turn: &Turn) -> Result<(), StoreError>;

    /// [`Store::health`](super::traits::Store::health).
    fn condition(&self) -> StoreHealth;
    /// [`Store::probe`](super::traits::Store::probe).
    fn look_after(&self);
    /// [`Store::close`](super::traits::Store::close).
    fn finish(&self);
}
