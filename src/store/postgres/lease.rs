//! The lease of the leader: a row with an epoch, judged by the server's clock. Asked on the thread
//! `lease-row`, over a connection of its own, so that no queue of the store delays it.

use std::sync::Arc;

use super::condition::Condition;
use super::deadline::Deadline;
use super::target::Target;
use super::transaction::{Connections, Purpose};
use crate::base::lease::{Authority, AuthorityError, Grant, Holder, Presence};
use crate::base::{Clock, Epoch};
use crate::store::settings::StoreSettings;
use crate::store::tx::{Failure, Sql, Tx, sql};
use crate::store::url::StoreUrl;
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
        purpose: &Purpose,
        work: impl Fn(&dyn Tx) -> Result<T, Failure>,
    ) -> Result<T, AuthorityError> {
        let deadline = Deadline::in_ms(DEADLINE_MS, &self.clock);
        let done = self.connections.run(purpose, DEADLINE_MS, &deadline, &work);
        done.map_err(|error| AuthorityError(error.to_string()))
    }

    fn granted(&self, sql: Sql, holder: &Holder) -> Result<Grant, AuthorityError> {
        let lease_ms = i64::try_from(self.lease_ms).unwrap_or(i64::MAX);
        let epoch = self.run(&Purpose::Write(Vec::new()), |tx| {
            tx.first(sql, &[holder.as_str().into(), lease_ms.into()], |row| row.get::<i64>(0))
        })?;
        Ok(epoch.map_or(Grant::Refused, |epoch| Grant::Granted(Epoch(epoch.unsigned_abs()))))
    }
}

impl Authority for PostgresLease {
    fn look(&self) -> Result<Presence, AuthorityError> {
        let free =
            self.run(&Purpose::Read, |tx| tx.first(IS_FREE, &[], |row| row.get::<bool>(0)))?;
        Ok(if free == Some(true) { Presence::Free } else { Presence::Taken })
    }

    /// Counts the epoch up.
    fn take(&self, holder: &Holder, _: Epoch) -> Result<Grant, AuthorityError> {
        self.granted(TAKE, holder)
    }

    fn renew(&self, holder: &Holder, _: Epoch) -> Result<Grant, AuthorityError> {
        self.granted(RENEW, holder)
    }

    fn release(&self, holder: &Holder) -> Result<(), AuthorityError> {
        self.run(&Purpose::Write(Vec::new()), |tx| {
            tx.run(RELEASE, &[holder.as_str().into()]).map(drop)
        })
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
