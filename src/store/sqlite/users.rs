//! Users as an operator's commands list and change them, beside a running service or without one.
//!
//! Called on a command's main thread; blocks. Each change is numbered in the transaction that makes
//! it, so that the running service applies it. A password's hash is never returned.

use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::errors::MaintenanceError;
use super::maintenance::inspect;
use crate::store::sqlite::writer::BUSY_TIMEOUT;
use crate::store::sqlite::{file, log};
use crate::store::statements::accounts;
use crate::store::traits::UserDirectory;
use crate::store::tx::{Failure, Tx};
use crate::store::{AccountId, DatabaseIdentity, NewUser, User, UserChange, UserSummary};

/// The database, opened beside the service.
pub(crate) struct SqliteUsers(Connection);

impl SqliteUsers {
    /// Opens a database with the current schema. Only the service migrates an older one.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn open(path: &Path) -> Result<Self, MaintenanceError> {
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
        // The next start looks whether the log of a killed service is still there.
        let keep = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(keep, file::is_open(path))?;
        Ok(Self(connection))
    }

    /// Runs work that writes. It is committed only if it made a change.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&dyn Tx) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, MaintenanceError> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let made = work(&*transaction)?;
        if made.is_some() {
            transaction.commit()?;
        }
        Ok(made)
    }
}

impl UserDirectory for SqliteUsers {
    fn page(&self, after: AccountId, limit: usize) -> Result<Vec<UserSummary>, MaintenanceError> {
        Ok(accounts::page(&self.0, after, limit)?)
    }

    fn find(&self, id_or_email: &str) -> Result<Option<UserSummary>, MaintenanceError> {
        Ok(accounts::find(&self.0, id_or_email)?)
    }

    fn add(&mut self, user: NewUser) -> Result<Option<User>, MaintenanceError> {
        self.write(|tx| accounts::add(tx, &user))
    }

    fn set_password(&mut self, id: AccountId, hash: &str) -> Result<Option<i64>, MaintenanceError> {
        self.write(|tx| accounts::set_password(tx, id, hash))
    }

    fn change(
        &mut self,
        id: AccountId,
        change: UserChange,
    ) -> Result<Option<i64>, MaintenanceError> {
        let erases = change == UserChange::Delete;
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let Some(number) = accounts::change(&*transaction, id, change)? else { return Ok(None) };
        if erases {
            file::count(&transaction)?;
        }
        transaction.commit()?;
        // If a reader prevents it, the service empties the log once it has noticed the change.
        if erases && !log::empty(&self.0, BUSY_TIMEOUT)? {
            tracing::debug!("the database's log was not emptied: a reader uses it");
        }
        Ok(Some(number))
    }

    fn renew_identity(&mut self, is_copy: bool) -> Result<DatabaseIdentity, MaintenanceError> {
        let path = self.0.path().map(PathBuf::from).unwrap_or_default();
        let renewed = self.write(|tx| accounts::renew_identity(tx, is_copy).map(Some))?;
        let renewed = renewed.expect("it is always made");
        file::note_renewed(&path, &renewed.incarnation);
        Ok(renewed)
    }

    fn noticed(&self, number: i64) -> Result<Option<bool>, MaintenanceError> {
        Ok(Some(accounts::noticed(&self.0, number)?))
    }
}
