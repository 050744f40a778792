//! Users as an operator's commands list and change them, beside a running service or without one.

use std::path::Path;

use super::settings::StoreSettings;
use super::sqlite::errors::MaintenanceError;
use super::sqlite::store::{FILE_NAME, SqliteUsers};
use super::statements::accounts;
use super::tx::{Failure, Tx, Write};
use super::{AccountId, DatabaseIdentity, NewUser, User, UserChange, UserSummary};

#[cfg(feature = "engines")]
use super::postgres::PostgresUsers;

/// The database, opened beside the services. Used on a command's main thread; blocks. Each change
/// is numbered in the transaction that makes it, so that the running services apply it. A
/// password's hash is never returned. After an error nothing was changed.
pub struct UserDirectory(Engine);

enum Engine {
    Sqlite(SqliteUsers),
    #[cfg(feature = "engines")]
    Postgres(PostgresUsers),
}

impl UserDirectory {
    /// Opens the database of the settings, or else that of the state directory. Only the service
    /// migrates an older one.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn open(state_dir: &Path, settings: &StoreSettings) -> Result<Self, MaintenanceError> {
        #[cfg(feature = "engines")]
        if let Some(url) = &settings.url {
            return Ok(Self(Engine::Postgres(PostgresUsers::open(url, settings)?)));
        }
        #[cfg(not(feature = "engines"))]
        let _ = settings;
        Ok(Self(Engine::Sqlite(SqliteUsers::open(&state_dir.join(FILE_NAME))?)))
    }

    fn read<T>(&self, work: impl Fn(&dyn Tx) -> Result<T, Failure>) -> Result<T, MaintenanceError> {
        match &self.0 {
            Engine::Sqlite(file) => Ok(work(&file.connection)?),
            #[cfg(feature = "engines")]
            Engine::Postgres(server) => Ok(server.read(work)?),
        }
    }

    /// Runs work that writes, as described by `write`. `None` says that it has changed nothing.
    fn write<T>(
        &mut self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, MaintenanceError> {
        match &mut self.0 {
            Engine::Sqlite(file) => file.write(&write, work),
            #[cfg(feature = "engines")]
            Engine::Postgres(server) => Ok(server.write(write, work)?),
        }
    }

    /// The next users after `after`, in order of id.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn page(
        &self,
        after: AccountId,
        limit: usize,
    ) -> Result<Vec<UserSummary>, MaintenanceError> {
        self.read(|tx| accounts::page(tx, after, limit))
    }

    /// The user with an id or with a normalised e-mail.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn find(&self, id_or_email: &str) -> Result<Option<UserSummary>, MaintenanceError> {
        self.read(|tx| accounts::find(tx, id_or_email))
    }

    /// Adds a user; `None` if the normalised e-mail is registered already.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn add(&mut self, user: NewUser) -> Result<Option<User>, MaintenanceError> {
        self.write(Write::new(), |tx| accounts::add(tx, &user))
    }

    /// Replaces the password and refuses every older token. Returns the number of the change, or
    /// `None` if there is no such user. A disabled user stays disabled and gets no valid token.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn set_password(
        &mut self,
        id: AccountId,
        hash: &str,
    ) -> Result<Option<i64>, MaintenanceError> {
        self.write(Write::new().of([id]), |tx| accounts::set_password(tx, id, hash))
    }

    /// Makes the change and returns its number, or `None` if there was nothing to change.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn change(
        &mut self,
        id: AccountId,
        change: UserChange,
    ) -> Result<Option<i64>, MaintenanceError> {
        let write = Write { erases: change == UserChange::Delete, ..Write::new().of([id]) };
        self.write(write, |tx| accounts::change(tx, id, change))
    }

    /// Gives the database a new incarnation, which ends every login; where it is a copy of another
    /// one that goes on, another id of the cluster too.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn renew_identity(
        &mut self,
        is_copy: bool,
    ) -> Result<DatabaseIdentity, MaintenanceError> {
        let renewed =
            self.write(Write::new(), |tx| accounts::renew_identity(tx, is_copy).map(Some))?;
        let renewed = renewed.expect("it is always made");
        match &self.0 {
            Engine::Sqlite(file) => file.note_renewed(&renewed),
            #[cfg(feature = "engines")]
            Engine::Postgres(_) => {}
        }
        Ok(renewed)
    }

    /// Whether the running service has applied the change with this number; `None` where any number
    /// of services may run, each of which applies it within seconds or refuses every token.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn noticed(&self, number: i64) -> Result<Option<bool>, MaintenanceError> {
        match &self.0 {
            Engine::Sqlite(_) => self.read(|tx| accounts::noticed(tx, number)).map(Some),
            #[cfg(feature = "engines")]
            Engine::Postgres(_) => Ok(None),
        }
    }
}
