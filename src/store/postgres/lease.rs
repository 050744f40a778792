//! The lease of the leader: a row with an epoch, judged by the server's clock. Asked on the thread
//! `lease-row`, over a connection of its own, so that no queue of the store delays it.
//!
//! Each request is one statement and its own transaction: a node that is stopped at any moment
//! leaves none open that would keep the others from the row. The client keeps the deadline, and the
//! statement itself says how long it waits for a lock. Taking is durable; a renewal that a crash of
//! the server loses is one of a second ago, by which the holder gives up early anyway.

use std::sync::Arc;

use super::condition::Condition;
use super::transaction::{Connections, Purpose};
use crate::base::lease::{Authority, AuthorityError, Grant, Holder, Look, Presence};
use crate::base::{Clock, Epoch};
use crate::store::postgres::connection::{Deadline, Target};
use crate::store::settings::{StoreSettings, StoreUrl};
use crate::store::tx::{Arg, Cells, Failure, Sql, Tx, sql};
use crate::store::{OpenError, StoreError};

/// Less than the margin between a lease and the local deadline of its holder.
const DEADLINE_MS: u64 = 600;

const IS_FREE: Sql = sql!("sql/postgres/lease_is_free.sql");
const TAKE: Sql = sql!("sql/postgres/take_lease.sql");
const RENEW: Sql = sql!("sql/postgres/renew_lease.sql");
const RELEASE: Sql = sql!("sql/postgres/release_lease.sql");
const HOLD: Sql = sql!("sql/postgres/hold_lease.sql");

/// The row that says who leads.
pub(crate) struct PostgresLease {
    connections: Arc<Connections>,
    clock: Clock,
    lease_ms: u64,
}

impl PostgresLease {
    /// Gives leases of `lease_ms`. Does not connect yet.
    ///
    /// # Errors
    /// A bad setting.
    pub(crate) fn new(
        url: &StoreUrl,
        settings: &StoreSettings,
        lease_ms: u64,
        clock: &Clock,
    ) -> Result<Self, OpenError> {
        let target = Target::new(url, settings)?;
        let connections = Connections::new(target, Condition::new(clock));
        Ok(Self { connections, clock: clock.clone(), lease_ms })
    }

    fn run<T>(
        &self,
        writes: bool,
        work: impl Fn(&dyn Tx) -> Result<T, Failure>,
    ) -> Result<T, AuthorityError> {
        let deadline = Deadline::in_ms(DEADLINE_MS, &self.clock);
        let purpose = Purpose::Statement { writes };
        let done = self.connections.run(&purpose, DEADLINE_MS, &deadline, &work);
        done.map_err(|error| AuthorityError(error.to_string()))
    }

    fn granted(&self, sql: Sql, args: &[Arg<'_>]) -> Result<Grant, AuthorityError> {
        let epoch = self.run(true, |tx| tx.first(sql, args, |row| row.get::<i64>(0)))?;
        Ok(epoch.map_or(Grant::Refused, |epoch| Grant::Granted(Epoch(epoch.unsigned_abs()))))
    }

    fn lease_ms(&self) -> i64 {
        i64::try_from(self.lease_ms).unwrap_or(i64::MAX)
    }
}

impl Authority for PostgresLease {
    fn look(&self) -> Result<Look, AuthorityError> {
        let read = |row: &dyn Cells| Ok((row.get::<bool>(0)?, row.get::<i64>(1)?));
        let found = self.run(false, |tx| tx.first(IS_FREE, &[], read))?;
        let (free, epoch) = found.unwrap_or_default();
        let presence = if free { Presence::Free } else { Presence::Taken };
        Ok(Look { presence, highest: Epoch(epoch.unsigned_abs()) })
    }

    /// Counts the epoch up, to one above `epoch` too where that can be this row's.
    fn take(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError> {
        let above = i64::try_from(epoch.0).unwrap_or(i64::MAX);
        self.granted(TAKE, &[holder.as_str().into(), self.lease_ms().into(), above.into()])
    }

    fn renew(&self, holder: &Holder, _: Epoch) -> Result<Grant, AuthorityError> {
        self.granted(RENEW, &[holder.as_str().into(), self.lease_ms().into()])
    }

    fn release(&self, holder: &Holder) -> Result<(), AuthorityError> {
        self.run(true, |tx| tx.run(RELEASE, &[holder.as_str().into()]).map(drop))
    }
}

/// Keeps others from leading until the end of the transaction.
///
/// # Errors
/// [`StoreError::Deposed`] where another has led since `epoch`.
pub(crate) fn hold(tx: &dyn Tx, epoch: Epoch) -> Result<(), Failure> {
    if epoch == Epoch::ALONE {
        return Ok(());
    }
    let number = i64::try_from(epoch.0).unwrap_or(i64::MAX);
    let held = tx.first(HOLD, &[number.into()], |_| Ok(()))?;
    held.ok_or_else(|| StoreError::Deposed.into())
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
