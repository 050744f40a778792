//! The leader's lease: a row with an epoch, judged by the server's clock. Requests run on the
//! thread `lease-row`, over a connection of their own, so that no queue of the store delays them.
//!
//! Each request is one statement in its own transaction, so a node that stops at any moment leaves
//! no open transaction that would lock the row. The client keeps the deadline, and the statement
//! itself limits its wait for a lock. Taking the lease is durable. A renewal lost in a crash of the
//! server is about a second old; the holder gives up earlier than that anyway.

use std::sync::Arc;

use crate::base::Clock;
use crate::store::arg::Arg;
use crate::store::cells::Cells;
use crate::store::errors::Result;
use crate::store::postgres::transactions::{Connections, Purpose};
use crate::store::settings::{StoreSettings, StoreUrl};
use crate::store::tx::{Failure, Sql, Tx, statements};
use crate::store::{Epoch, OpenError};

/// Less than the margin between a lease and the local deadline of its holder.
const DEADLINE_MS: u64 = 600;

statements! { of the server:
    const IS_FREE = "SELECT until < clock_timestamp(), epoch FROM leases WHERE role = 'feed'";
    const TAKE = "\
-- The epoch is above the last one, and above the highest that the node that takes it knows of: the
-- database may have gone back. One that is far above was given by no row.
UPDATE leases SET holder = ?1,
    epoch = CASE WHEN ?3 BETWEEN epoch AND epoch + 1000000 THEN ?3 ELSE epoch END + 1,
    until = clock_timestamp() + ?2 * interval '1 millisecond'
FROM (
    SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
            WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true) AS durable,
        set_config('lock_timeout', '500ms', true) AS waits
) AS brief
WHERE role = 'feed' AND until < clock_timestamp() AND brief.durable IS NOT NULL
    AND brief.waits IS NOT NULL
RETURNING epoch";
    const RENEW = "\
-- Also one that has run out: as long as nobody has taken it, nobody has led in between. The \
settings
-- hold for this statement alone, which is its own transaction.
UPDATE leases SET until = clock_timestamp() + ?2 * interval '1 millisecond'
FROM (
    SELECT set_config('synchronous_commit', 'off', true) AS durable,
        set_config('lock_timeout', '500ms', true) AS waits
) AS brief
WHERE role = 'feed' AND holder = ?1 AND brief.durable IS NOT NULL AND brief.waits IS NOT NULL
RETURNING epoch";
    const RELEASE = "\
-- Nobody is its holder then, so that a renewal that comes late finds nothing to renew.
UPDATE leases SET holder = '', until = '-infinity' WHERE role = 'feed' AND holder = ?1";
}

/// The row that records the leader.
pub(crate) struct PostgresLease {
    connections: Arc<Connections>,
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
        Ok(Self {
            connections: Connections::new(url, settings, clock)?,
            lease_ms,
        })
    }

    fn run<T>(&self, writes: bool, work: impl Fn(&dyn Tx) -> Result<T, Failure>) -> Result<T> {
        let deadline = self.connections.deadline(DEADLINE_MS);
        self.connections
            .run(&Purpose::Statement { writes }, &deadline, &work)
    }

    /// The epoch of the row that `sql` has changed.
    fn granted(&self, sql: Sql, args: &[Arg<'_>]) -> Result<Option<Epoch>> {
        let epoch = self.run(true, |tx| tx.first(sql, args, |row| row.get::<i64>(0)))?;
        Ok(epoch.map(|epoch| Epoch(epoch.unsigned_abs())))
    }

    fn lease_ms(&self) -> i64 {
        i64::try_from(self.lease_ms).unwrap_or(i64::MAX)
    }

    /// Whether nobody has the lease, and its last epoch.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn look(&self) -> Result<(bool, Epoch)> {
        let read = |row: &dyn Cells| Ok((row.get::<bool>(0)?, row.get::<i64>(1)?));
        let (free, epoch) = self
            .run(false, |tx| tx.first(IS_FREE, &[], read))?
            .unwrap_or_default();
        Ok((free, Epoch(epoch.unsigned_abs())))
    }

    /// Takes the lease if nobody has it. Increments the epoch, to at least one above `epoch` if
    /// this row can have had that epoch. `None` if somebody has the lease.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn take(&self, holder: &str, epoch: Epoch) -> Result<Option<Epoch>> {
        let above = i64::try_from(epoch.0).unwrap_or(i64::MAX);
        self.granted(TAKE, &[holder.into(), self.lease_ms().into(), above.into()])
    }

    /// Extends the lease. `None` if `holder` does not have it any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn renew(&self, holder: &str) -> Result<Option<Epoch>> {
        self.granted(RENEW, &[holder.into(), self.lease_ms().into()])
    }

    /// Gives the lease back, if `holder` has it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn release(&self, holder: &str) -> Result<()> {
        self.run(true, |tx| tx.run(RELEASE, &[holder.into()]).map(drop))
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
