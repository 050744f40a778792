//! Users as an operator's commands list and change them, beside a running service or without one.
//!
//! Called on a command's main thread; blocks. Each change is counted in the transaction that makes
//! it, so that the running service applies it. A password's hash is never returned.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, Row, TransactionBehavior};

use super::columns::{all, first};
use super::condition::Failure;
use super::errors::MaintenanceError;
use super::lock_wait::BUSY_TIMEOUT;
use super::maintenance::inspect;
use super::{accounts, erasure, log};
use crate::store::traits::UserDirectory;
use crate::store::{AccountId, NewUser, User, UserChange, UserSummary};

const USERS: &str = include_str!("../../../sql/store/users.sql");

/// The database, opened beside the service.
pub struct SqliteUsers(Connection);

impl SqliteUsers {
    /// Opens a database with the current schema. Only the service migrates an older one.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn open(path: &Path) -> Result<Self, MaintenanceError> {
        let report = inspect(path)?;
        if report.version != report.known {
            return Err(MaintenanceError::Older { path: path.to_owned(), found: report.version });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::opened(path, flags).map_err(MaintenanceError::database(path))
    }

    fn opened(path: &Path, flags: OpenFlags) -> rusqlite::Result<Self> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "secure_delete", true)?;
        Ok(Self(connection))
    }
}

impl UserDirectory for SqliteUsers {
    fn page(&self, after: AccountId, limit: usize) -> Result<Vec<UserSummary>, MaintenanceError> {
        Ok(all(&self.0, USERS, (after.0, limit as i64), user_summary)?)
    }

    fn find(&self, id_or_email: &str) -> Result<Option<UserSummary>, MaintenanceError> {
        let id = match id_or_email.parse() {
            Ok(id) => Some(id),
            Err(_) => accounts::by_email(&self.0, id_or_email)?.map(|found| found.user.id.0),
        };
        let Some(id) = id.filter(|id: &i64| *id > 0) else { return Ok(None) };
        let next = first(&self.0, USERS, (id - 1, 1), user_summary)?;
        Ok(next.filter(|user_summary| user_summary.id.0 == id))
    }

    fn add(&mut self, user: NewUser) -> Result<Option<User>, MaintenanceError> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if accounts::by_email(&transaction, &user.email)?.is_some() {
            return Ok(None);
        }
        let user = accounts::create(&transaction, user)?;
        transaction.commit()?;
        Ok(Some(user))
    }

    fn set_password(&mut self, id: AccountId, hash: &str) -> Result<Option<i64>, MaintenanceError> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let Some(before) = accounts::by_id(&transaction, id)? else { return Ok(None) };
        let changed = match before.disabled {
            true => accounts::replace_hash(&transaction, id, &before.password_hash, hash)?,
            false => {
                accounts::change_password(&transaction, id, &before.password_hash, hash)?.is_some()
            }
        };
        debug_assert!(changed, "read in the same transaction");
        let number = accounts::count_outside_change(&transaction)?;
        transaction.commit()?;
        Ok(Some(number))
    }

    fn change(
        &mut self,
        id: AccountId,
        change: UserChange,
    ) -> Result<Option<i64>, MaintenanceError> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let changed = match change {
            UserChange::Disable { now_ms } => accounts::disable(&transaction, id, now_ms)?,
            UserChange::Enable => accounts::enable(&transaction, id)?,
            UserChange::Delete => erasure::erase(&transaction, id)?.user,
        };
        if !changed {
            return Ok(None);
        }
        let number = accounts::count_outside_change(&transaction)?;
        transaction.commit()?;
        // If a reader prevents it, the service empties the log once it has noticed the change.
        if change == UserChange::Delete && !log::empty(&self.0, BUSY_TIMEOUT)? {
            tracing::debug!("the database's log was not emptied: a reader uses it");
        }
        Ok(Some(number))
    }

    fn noticed(&self, number: i64) -> Result<bool, MaintenanceError> {
        Ok(accounts::outside_changes(&self.0)?.noticed >= number)
    }
}

fn user_summary(row: &Row<'_>) -> Result<UserSummary, Failure> {
    Ok(UserSummary {
        id: AccountId(row.get(0)?),
        email: row.get(1)?,
        created_ms: row.get(2)?,
        disabled_ms: row.get(3)?,
        synced_ms: row.get(4)?,
        rows: row.get(5)?,
        journal_bytes: row.get(6)?,
    })
}
