//! The number that changes with what a user's ledger is made of.

use crate::store::account_id::AccountId;
use crate::store::arg::args;
use crate::store::errors::{Result, StoreError};
use crate::store::open::Store;
use crate::store::tx::{Failure, Tx, statements};
use crate::store::write::GLANCE_DEADLINE_MS;

statements! {
    const COUNT_LEDGER_WRITE = "\
-- By the clock, so that a database that was put back gives no number a second time.
UPDATE users
SET ledger_version = CASE WHEN ledger_version < ?2 THEN ?2 ELSE ledger_version + 1 END
WHERE id = ?1";
    const LEDGER_VERSIONS = "SELECT ledger_version, portfolio_version FROM users WHERE id = ?1";
}

/// The numbers that change with what a user's ledger is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LedgerVersions {
    pub ledger: i64,
    pub portfolio: i64,
}

impl Store {
    /// The versions of a user's ledger and portfolio. Short deadline, as that of
    /// [`portfolio_version`](Self::portfolio_version).
    pub(crate) fn ledger_versions(&self, user: AccountId) -> Result<LedgerVersions> {
        self.glance(GLANCE_DEADLINE_MS, move |tx| versions(tx, user))
    }
}

pub(super) fn versions(tx: &dyn Tx, user: AccountId) -> Result<LedgerVersions, Failure> {
    let found = tx.first(LEDGER_VERSIONS, &args![user], |row| {
        Ok(LedgerVersions {
            ledger: row.get(0)?,
            portfolio: row.get(1)?,
        })
    })?;
    found.ok_or_else(|| StoreError::NoSuchUser.into())
}

/// Part of every write that changes the ledger.
pub(super) fn count_write(tx: &dyn Tx, user: AccountId, now_ms: i64) -> Result<(), Failure> {
    tx.run(COUNT_LEDGER_WRITE, &args![user, now_ms]).map(drop)
}
