//! API keys: what of them is stored, and their statements. Of a key's secret there is only the
//! hash.

use crate::base::words::Words;
use crate::base::{Scope, Scopes};
use crate::store::account_id::AccountId;
use crate::store::arg::args;
use crate::store::cells::Cells;
use crate::store::columns::{at, columns, record};
use crate::store::errors::{Result, StoreError};
use crate::store::open::Store;
use crate::store::tx::{Failure, Tx, statements};
use crate::store::write::{READ_DEADLINE_MS, Write};

/// Keys of an account that have not expired: one for each program, and as many again.
pub(crate) const KEYS_MAX: usize = 20;
/// Keys of an account that are stored, expired ones included.
const KEYS_STORED_MAX: usize = 100;
/// Time for which expired keys are listed, and answered as expired.
pub(crate) const ENDED_LISTED_MS: i64 = 30 * 24 * 3_600 * 1_000;

columns! {
    const KEY = [
        "api_keys.id" as id, "api_keys.user_id" as user, "api_keys.name" as name, scopes, hash,
        "api_keys.created_ms" as created_ms, expires_ms, used_ms, used_from, email,
        "disabled_ms IS NOT NULL" as is_disabled, "incarnation = database_id" as is_current,
    ];
}

statements! {
    const ADD_KEY = "\
INSERT INTO api_keys (id, user_id, incarnation, name, scopes, hash, created_ms, expires_ms)
SELECT ?1, ?2, database_id, ?3, ?4, ?5, ?6, ?7 FROM identity WHERE id = 1";
    const KEYS_COUNTED = "\
SELECT count(*), coalesce(sum(CASE WHEN coalesce(expires_ms, ?2 + 1) > ?2 THEN 1 ELSE 0 END), 0)
FROM api_keys WHERE user_id = ?1";
    const KEYS_OF_USER = ["SELECT ", KEY.sql, "
FROM api_keys JOIN users ON users.id = api_keys.user_id JOIN identity ON identity.id = 1
WHERE api_keys.user_id = ?1"];
    const KEYS_AFTER = ["SELECT ", KEY.sql, "
FROM api_keys JOIN users ON users.id = api_keys.user_id JOIN identity ON identity.id = 1
WHERE api_keys.id > ?1 ORDER BY api_keys.id LIMIT ?2"];
    const REMOVE_KEY = "DELETE FROM api_keys WHERE id = ?1 AND user_id = coalesce(?2, user_id)";
    const REMOVE_KEYS = "DELETE FROM api_keys WHERE user_id = ?1";
    const FORGET_KEYS = "\
-- Those that are not listed any more.
DELETE FROM api_keys WHERE user_id = ?1 AND (coalesce(expires_ms, ?2 + 1) <= ?2
    OR incarnation <> (SELECT database_id FROM identity WHERE id = 1))";
    const NOTE_USE = "\
UPDATE api_keys SET used_ms = ?2, used_from = ?3 WHERE id = ?1 AND coalesce(used_ms, 0) < ?2";
}

/// A key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredKey {
    /// The part of its text that is no secret.
    pub id: String,
    pub user: AccountId,
    pub name: String,
    pub scopes: Scopes,
    /// SHA-256 of the secret, in hexadecimal digits.
    pub hash: String,
    pub created_ms: i64,
    pub expires_ms: Option<i64>,
    /// The minute of the last use.
    pub used_ms: Option<i64>,
    /// The network of the last use.
    pub used_from: Option<String>,
}

/// A key as an operator's command lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedKey {
    pub key: StoredKey,
    pub email: String,
    pub is_disabled: bool,
    /// Whether it was made in this incarnation of the database.
    pub is_current: bool,
}

/// A use of a key, to be stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyUse {
    pub id: String,
    pub used_ms: i64,
    pub used_from: Option<String>,
}

impl Store {
    /// Stores a key. [`StoreError::TooMany`] if the account has as many as it may have.
    pub(crate) fn add_key(&self, key: StoredKey, now_ms: i64) -> Result<()> {
        self.write(Write::new().of([key.user]), move |tx| {
            let StoredKey {
                id,
                user,
                name,
                scopes,
                hash,
                created_ms,
                expires_ms,
                ..
            } = &key;
            tx.run(FORGET_KEYS, &args![*user, now_ms - ENDED_LISTED_MS])?;
            let (stored, good): (usize, usize) =
                tx.only(KEYS_COUNTED, &args![*user, now_ms], "a count", |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            if good >= KEYS_MAX {
                let what = "API keys";
                return Err(StoreError::TooMany {
                    what,
                    limit: KEYS_MAX,
                }
                .into());
            }
            if stored >= KEYS_STORED_MAX {
                let what = "API keys, expired ones of the last 30 days included,";
                return Err(StoreError::TooMany {
                    what,
                    limit: KEYS_STORED_MAX,
                }
                .into());
            }
            let scopes = scopes.spelled();
            tx.run(ADD_KEY, &args![id, *user, name, &scopes, hash, *created_ms, *expires_ms])
                .map(drop)
        })
    }

    /// Every key that is stored of a user, also one that is good no more.
    pub(crate) fn stored_keys(&self, user: AccountId) -> Result<Vec<StoredKey>> {
        self.read(READ_DEADLINE_MS, move |tx| {
            tx.all(KEYS_OF_USER, &args![user], |row| Ok(listed(row)?.key))
        })
    }

    /// Deletes a user's key. False if the user has no such key.
    pub(crate) fn remove_key(&self, user: AccountId, id: &str) -> Result<bool> {
        let id = id.to_owned();
        self.write(Write::new().of([user]), move |tx| remove(tx, &id, Some(user)))
    }

    /// Stores when keys were last used.
    pub(crate) fn note_key_uses(&self, mut uses: Vec<KeyUse>) -> Result<()> {
        // Sorted by key, so that two nodes do not wait for each other.
        uses.sort();
        self.write(Write::page(), move |tx| {
            let rows = uses
                .iter()
                .map(|each| args![&each.id, each.used_ms, each.used_from.as_deref()]);
            tx.run_each(NOTE_USE, rows).map(drop)
        })
    }
}

/// The good and the expired keys of all accounts.
pub(super) fn all(tx: &dyn Tx) -> Result<Vec<StoredKey>, Failure> {
    Ok(page(tx, "", i64::MAX as usize)?
        .into_iter()
        .filter_map(usable)
        .collect())
}

/// The good and the expired keys of these accounts.
pub(super) fn of(tx: &dyn Tx, users: &[AccountId]) -> Result<Vec<StoredKey>, Failure> {
    let mut keys = Vec::new();
    tx.query_each(KEYS_OF_USER, users.iter().map(|user| args![*user]), |_, row| {
        keys.extend(usable(listed(row)?));
        Ok(())
    })?;
    Ok(keys)
}

/// All keys after the id `after`, in order of id.
pub(super) fn page(tx: &dyn Tx, after: &str, limit: usize) -> Result<Vec<ListedKey>, Failure> {
    tx.all(KEYS_AFTER, &args![after, limit], listed)
}

/// Deletes a key, of this user if one is given. False if there is none.
pub(super) fn remove(tx: &dyn Tx, id: &str, user: Option<AccountId>) -> Result<bool, Failure> {
    Ok(tx.run(REMOVE_KEY, &args![id, user.map(|user| user.0)])? == 1)
}

pub(super) fn remove_all(tx: &dyn Tx, user: AccountId) -> Result<(), Failure> {
    tx.run(REMOVE_KEYS, &args![user]).map(drop)
}

fn usable(listed: ListedKey) -> Option<StoredKey> {
    (listed.is_current && !listed.is_disabled).then_some(listed.key)
}

fn listed(row: &dyn Cells) -> Result<ListedKey, Failure> {
    let words = row.str(at!(KEY.scopes))?.split(' ');
    // A scope that only a newer program knows permits nothing here.
    let scopes = words.filter_map(<Scope as Words>::parse).collect();
    let key = record!(row of KEY, StoredKey [
        id, user, name, hash, created_ms, expires_ms, used_ms, used_from,
    ] scopes);
    Ok(record!(row of KEY, ListedKey [email, is_disabled, is_current] key))
}
