//! Users, their secrets, and revoked tokens. Runs on the store's threads, within a transaction.

use rusqlite::{Connection, Row, params};

use super::columns::{all, damaged, first, run};
use super::condition::Failure;
use super::identity;
use crate::store::{AccountId, AuthState, NewUser, OutsideChanges, StoreError, User, UserSecrets};

const CREATE_USER: &str = include_str!("../../../sql/store/create_user.sql");
const USER_BY_EMAIL: &str = include_str!("../../../sql/store/user_by_email.sql");
const USER_BY_ID: &str = include_str!("../../../sql/store/user_by_id.sql");
const USER_EXISTS: &str = include_str!("../../../sql/store/user_exists.sql");
const REPLACE_HASH: &str = include_str!("../../../sql/store/replace_hash.sql");
const CHANGE_PASSWORD: &str = include_str!("../../../sql/store/change_password.sql");
const REVOKE_TOKEN: &str = include_str!("../../../sql/store/revoke_token.sql");
const FORGET_TOKENS: &str = include_str!("../../../sql/store/forget_tokens.sql");
const REVOKED_TOKENS: &str = include_str!("../../../sql/store/revoked_tokens.sql");
const USER_IDS: &str = include_str!("../../../sql/store/user_ids.sql");
const LAST_USER_ID: &str = include_str!("../../../sql/store/last_user_id.sql");
const DISABLE_USER: &str = include_str!("../../../sql/store/disable_user.sql");
const ENABLE_USER: &str = include_str!("../../../sql/store/enable_user.sql");
const OUTSIDE_CHANGES: &str = include_str!("../../../sql/store/outside_changes.sql");
const COUNT_OUTSIDE_CHANGE: &str = include_str!("../../../sql/store/count_outside_change.sql");
const NOTICE_OUTSIDE_CHANGES: &str = include_str!("../../../sql/store/notice_outside_changes.sql");
const EPOCHS: &str = include_str!("../../../sql/store/epochs.sql");

pub(crate) fn create(connection: &Connection, user: NewUser) -> Result<User, Failure> {
    let NewUser { email, name, password_hash, created_ms } = user;
    run(connection, CREATE_USER, params![email, name, password_hash, created_ms])?;
    Ok(User { id: AccountId(connection.last_insert_rowid()), email, name, created_ms })
}

pub(crate) fn by_email(
    connection: &Connection,
    email: &str,
) -> Result<Option<UserSecrets>, Failure> {
    first(connection, USER_BY_EMAIL, [email], secrets)
}

pub(crate) fn by_id(
    connection: &Connection,
    id: AccountId,
) -> Result<Option<UserSecrets>, Failure> {
    first(connection, USER_BY_ID, [id.0], secrets)
}

fn secrets(row: &Row<'_>) -> Result<UserSecrets, Failure> {
    let user = User {
        id: AccountId(row.get(0)?),
        email: row.get(1)?,
        name: row.get(2)?,
        created_ms: row.get(3)?,
    };
    Ok(UserSecrets {
        user,
        password_hash: row.get(4)?,
        token_epoch: row.get(5)?,
        disabled: row.get(6)?,
    })
}

/// Fails if the user does not exist.
pub(crate) fn expect_user(connection: &Connection, id: AccountId) -> Result<(), Failure> {
    let found = first(connection, USER_EXISTS, [id.0], |_| Ok(()))?;
    found.ok_or_else(|| StoreError::NoSuchUser.into())
}

pub(crate) fn replace_hash(
    connection: &Connection,
    id: AccountId,
    old: &str,
    new: &str,
) -> Result<bool, Failure> {
    Ok(run(connection, REPLACE_HASH, params![id.0, old, new])? == 1)
}

pub(crate) fn change_password(
    connection: &Connection,
    id: AccountId,
    old_hash: &str,
    new_hash: &str,
) -> Result<Option<i64>, Failure> {
    first(connection, CHANGE_PASSWORD, params![id.0, old_hash, new_hash], |row| Ok(row.get(0)?))
}

pub(crate) fn revoke_token(
    connection: &Connection,
    token_id: &str,
    expires_ms: i64,
) -> Result<(), Failure> {
    run(connection, REVOKE_TOKEN, params![token_id, expires_ms]).map(drop)
}

/// Deletes revocations of tokens that have expired.
pub(crate) fn forget_revocations(
    connection: &Connection,
    before_ms: i64,
) -> Result<usize, Failure> {
    run(connection, FORGET_TOKENS, [before_ms])
}

/// Reads everything in one transaction, so that the last id is consistent with the rest.
pub(crate) fn auth_state(connection: &Connection) -> Result<AuthState, Failure> {
    let id = |row: &Row<'_>| Ok(AccountId(row.get(0)?));
    Ok(AuthState {
        database_id: identity::database_id(connection)?,
        users: all(connection, USER_IDS, [], id)?,
        last_user: first(connection, LAST_USER_ID, [], id)?.unwrap_or_default(),
        epochs: all(connection, EPOCHS, [], |row| Ok((AccountId(row.get(0)?), row.get(1)?)))?,
        revoked_tokens: all(connection, REVOKED_TOKENS, [], |row| Ok((row.get(0)?, row.get(1)?)))?,
    })
}

/// Disables logins and refuses all tokens of the account. False if it was disabled already or there
/// is no such user.
pub(crate) fn disable(
    connection: &Connection,
    id: AccountId,
    now_ms: i64,
) -> Result<bool, Failure> {
    Ok(run(connection, DISABLE_USER, params![id.0, now_ms])? == 1)
}

/// Enables logins again. Earlier tokens stay refused.
pub(crate) fn enable(connection: &Connection, id: AccountId) -> Result<bool, Failure> {
    Ok(run(connection, ENABLE_USER, [id.0])? == 1)
}

/// Counts a change made beside the running service, and returns its number.
pub(crate) fn count_outside_change(connection: &Connection) -> Result<i64, Failure> {
    let made = first(connection, COUNT_OUTSIDE_CHANGE, [], |row| Ok(row.get(0)?))?;
    made.ok_or_else(|| damaged("the count of outside changes"))
}

pub(crate) fn outside_changes(connection: &Connection) -> Result<OutsideChanges, Failure> {
    let both = |row: &Row<'_>| Ok(OutsideChanges { made: row.get(0)?, noticed: row.get(1)? });
    let found = first(connection, OUTSIDE_CHANGES, [], both)?;
    found.ok_or_else(|| damaged("the count of outside changes"))
}

pub(crate) fn notice_outside_changes(connection: &Connection, made: i64) -> Result<(), Failure> {
    run(connection, NOTICE_OUTSIDE_CHANGES, [made]).map(drop)
}
