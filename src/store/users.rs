//! Users as an operator's commands list and change them, next to a running service or without one.

use std::path::Path;

use super::accounts::{self, NewUser, User};
use super::api_keys::{self, ListedKey};
use super::change_log;
use super::changes::{self, DatabaseIdentity};
use super::errors::MaintenanceError;
use super::settings::StoreSettings;
use super::sqlite::identity;
use super::sqlite::store::{FILE_NAME, SqliteUsers};
use super::tx::{Failure, Tx, statements};
use crate::store::account_id::AccountId;
use crate::store::arg::args;
use crate::store::columns::{columns, record};
use crate::store::write::Write;

#[cfg(feature = "engines")]
use std::sync::Arc;

#[cfg(feature = "engines")]
use super::postgres::{Connections, Purpose};

type Result<T, E = MaintenanceError> = std::result::Result<T, E>;

columns! {
    const SUMMARY = [
        id, email, created_ms, disabled_ms, journal_bytes,
        "(SELECT max(synced_ms) FROM syncs WHERE user_id = users.id)" as synced_ms,
        "(SELECT count(*) FROM holdings WHERE user_id = users.id)
            + (SELECT count(*) FROM positions WHERE user_id = users.id)
            + (SELECT count(*) FROM points WHERE user_id = users.id)
            + journal_entries" as rows,
    ];
}

statements! {
    const USERS = ["SELECT ", SUMMARY.sql, " FROM users WHERE id > ?1 ORDER BY id LIMIT ?2"];
    const DISABLE_USER = "\
-- The epoch as in change_password.sql.
UPDATE users SET disabled_ms = ?2, token_epoch = (((token_epoch >> 32) + 1) << 32) | ?3
WHERE id = ?1 AND disabled_ms IS NULL";
    const ENABLE_USER =
        "UPDATE users SET disabled_ms = NULL WHERE id = ?1 AND disabled_ms IS NOT NULL";
}

/// A user as an operator's command lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSummary {
    pub id: AccountId,
    pub email: String,
    pub created_ms: i64,
    pub disabled_ms: Option<i64>,
    /// Time of the last sync with either broker.
    pub synced_ms: Option<i64>,
    /// Number of stored holdings, positions, points of the trend and journal entries.
    pub rows: i64,
    /// Bytes of text in the journal.
    pub journal_bytes: i64,
}

/// A change to a user by an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserChange {
    /// Refuses logins and all tokens.
    Disable { now_ms: i64 },
    /// Allows logins again. Earlier tokens stay refused.
    Enable,
    /// Refuses all earlier tokens. Logins remain possible.
    EndTokens,
    /// Deletes the user with everything stored for them.
    Delete,
}

/// The database, opened next to the services. Used on a command's main thread; blocks. Each change
/// is numbered in the transaction that makes it, so that the running services apply it. A
/// password's hash is never returned. After an error nothing was changed.
pub struct UserDirectory(Engine);

enum Engine {
    Sqlite(SqliteUsers),
    #[cfg(feature = "engines")]
    Postgres(Arc<Connections>),
}

impl UserDirectory {
    /// Opens the database named in the settings, or else the file in the state directory. Only the
    /// service migrates an older one.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn open(state_dir: &Path, settings: &StoreSettings) -> Result<Self> {
        #[cfg(feature = "engines")]
        if let Some(url) = &settings.url {
            return Ok(Self(Engine::Postgres(Connections::beside(url, settings)?)));
        }
        #[cfg(not(feature = "engines"))]
        let _ = settings;
        Ok(Self(Engine::Sqlite(SqliteUsers::open(&state_dir.join(FILE_NAME))?)))
    }

    fn read<T>(&self, work: impl Fn(&dyn Tx) -> Result<T, Failure>) -> Result<T> {
        match &self.0 {
            Engine::Sqlite(file) => Ok(work(&file.connection)?),
            #[cfg(feature = "engines")]
            Engine::Postgres(server) => Ok(server.run_here(&Purpose::Read, work)?),
        }
    }

    /// Runs work that writes, as described by `write`. `None` means that it changed nothing.
    #[cfg_attr(
        not(feature = "engines"),
        expect(clippy::needless_pass_by_value, reason = "a server's threads keep it")
    )]
    fn write<T>(
        &mut self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>> {
        match &mut self.0 {
            Engine::Sqlite(file) => file.write(&write, work),
            #[cfg(feature = "engines")]
            Engine::Postgres(server) => Ok(server.run_here(&Purpose::Write(write.users), work)?),
        }
    }

    /// The next users after `after`, in order of id.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn page(&self, after: AccountId, limit: usize) -> Result<Vec<UserSummary>> {
        self.read(|tx| {
            tx.all(USERS, &args![after, limit], |row| {
                Ok(record!(row of SUMMARY, UserSummary [
                    id, email, created_ms, disabled_ms, synced_ms, rows, journal_bytes,
                ]))
            })
        })
    }

    /// The user with an id, or with an e-mail as it is stored.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn find(&self, id_or_email: &str) -> Result<Option<UserSummary>> {
        self.find_spelled(&[id_or_email.to_owned()])
    }

    /// Same as [`find`](Self::find), for an e-mail of these spellings.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn find_spelled(&self, id_or_spellings: &[String]) -> Result<Option<UserSummary>> {
        let by_email = || self.read(|tx| accounts::by_spellings(tx, id_or_spellings));
        let id = match id_or_spellings.first().and_then(|id| id.parse().ok()) {
            Some(id) => Some(AccountId(id)),
            None => by_email()?.map(|found| found.user.id),
        };
        let Some(id) = id.filter(|id| id.0 > 0) else {
            return Ok(None);
        };
        let next = self.page(AccountId(id.0 - 1), 1)?.pop();
        Ok(next.filter(|user| user.id == id))
    }

    /// Adds a user; `None` if the normalised e-mail is registered already.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn add(&mut self, user: &NewUser) -> Result<Option<User>> {
        self.write(Write::new(), |tx| {
            match accounts::by_spellings(tx, std::slice::from_ref(&user.email))? {
                Some(_) => Ok(None),
                None => Ok(Some(accounts::create(tx, user)?.user)),
            }
        })
    }

    /// Replaces the password and refuses every older token, and with `keys` every API key. Returns
    /// the number of the change, or `None` if there is no such user. A disabled user stays disabled
    /// and gets no valid token.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn set_password(
        &mut self,
        id: AccountId,
        hash: &str,
        keys: bool,
    ) -> Result<Option<i64>> {
        self.write(Write::new().of([id]), |tx| {
            let Some(before) = accounts::by_id(tx, id)? else {
                return Ok(None);
            };
            if keys {
                api_keys::remove_all(tx, id)?;
            }
            let old = &before.password_hash;
            let changed = match before.disabled {
                true => accounts::replace_hash(tx, id, old, hash)?,
                false => accounts::change_password(tx, id, old, hash)?.is_some(),
            };
            debug_assert!(changed, "read in the same transaction");
            changes_made(tx).map(Some)
        })
    }

    /// The next API keys after the id `after`, in order of id.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn keys(&self, after: &str, limit: usize) -> Result<Vec<ListedKey>> {
        self.read(|tx| api_keys::page(tx, after, limit))
    }

    /// Deletes an API key, and returns the number of the change. `None` if there is no such key.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn revoke_key(&mut self, id: &str) -> Result<Option<i64>> {
        self.write(Write::new(), |tx| {
            let is_there = api_keys::remove(tx, id, None)?;
            is_there.then(|| changes_made(tx)).transpose()
        })
    }

    /// Makes the change and returns its number, or `None` if there was nothing to change.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn change(&mut self, id: AccountId, change: UserChange) -> Result<Option<i64>> {
        let write = Write {
            erases: change == UserChange::Delete,
            ..Write::new().of([id])
        };
        self.write(write, |tx| {
            let changed = match change {
                UserChange::Disable { now_ms } => {
                    tx.run(DISABLE_USER, &args![id, now_ms, accounts::epoch_salt()?])? == 1
                }
                UserChange::Enable => tx.run(ENABLE_USER, &args![id])? == 1,
                UserChange::EndTokens => accounts::end_tokens(tx, id)?.is_some(),
                UserChange::Delete => accounts::erase(tx, id)?.is_some(),
            };
            changed.then(|| changes_made(tx)).transpose()
        })
    }

    /// Gives the database a new incarnation, which ends every login. If it is a copy of a database
    /// that goes on, it also gets a new cluster id.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn renew_identity(&mut self, is_copy: bool) -> Result<DatabaseIdentity> {
        let renewed =
            self.write(Write::new(), |tx| changes::renew_identity(tx, is_copy).map(Some))?;
        let renewed = renewed.expect("it is always made");
        match &self.0 {
            // Also beside a running service, which would record it at its next change only.
            Engine::Sqlite(file) => identity::note_change(&file.connection, &file.path),
            #[cfg(feature = "engines")]
            Engine::Postgres(_) => {}
        }
        Ok(renewed)
    }

    /// Whether the running service has applied the change with this number. `None` on a server: any
    /// number of services may run, and each applies it within seconds or refuses every token.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn noticed(&self, number: i64) -> Result<Option<bool>> {
        match &self.0 {
            Engine::Sqlite(_) => self.read(|tx| Ok(Some(change_log::counts(tx)?.1 >= number))),
            #[cfg(feature = "engines")]
            Engine::Postgres(_) => Ok(None),
        }
    }
}

/// Number of changes made.
fn changes_made(tx: &dyn Tx) -> Result<i64, Failure> {
    Ok(change_log::counts(tx)?.0.number)
}
