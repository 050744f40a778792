//! Users as an operator's commands list and change them. Runs on a command's main thread, within a
//! transaction.

use super::{accounts, changes, erasure};
use crate::store::arg::args;
use crate::store::cells::Cells;
use crate::store::tx::{Failure, Sql, Tx, sql};
use crate::store::{AccountId, NewUser, User, UserChange, UserSummary};

const USERS: Sql = sql!("sql/store/users.sql");

/// The next users after `after`, in order of id.
pub(crate) fn page(
    tx: &dyn Tx,
    after: AccountId,
    limit: usize,
) -> Result<Vec<UserSummary>, Failure> {
    tx.all(USERS, &args![after, limit], user_summary)
}

/// The user with an id or with a normalised e-mail.
pub(crate) fn find(tx: &dyn Tx, id_or_email: &str) -> Result<Option<UserSummary>, Failure> {
    let id = match id_or_email.parse() {
        Ok(id) => Some(AccountId(id)),
        Err(_) => accounts::by_email(tx, id_or_email)?.map(|found| found.user.id),
    };
    let Some(id) = id.filter(|id| id.0 > 0) else { return Ok(None) };
    let next = page(tx, AccountId(id.0 - 1), 1)?.pop();
    Ok(next.filter(|user| user.id == id))
}

/// Adds a user; `None` if the normalised e-mail is registered already.
pub(crate) fn add(tx: &dyn Tx, user: &NewUser) -> Result<Option<User>, Failure> {
    match accounts::by_email(tx, &user.email)? {
        Some(_) => Ok(None),
        None => Ok(Some(accounts::create(tx, user)?.user)),
    }
}

/// Replaces the password and refuses every older token. Returns how many changes were made with it,
/// or `None` if there is no such user.
pub(crate) fn set_password(tx: &dyn Tx, id: AccountId, hash: &str) -> Result<Option<i64>, Failure> {
    let Some(before) = accounts::by_id(tx, id)? else { return Ok(None) };
    let changed = match before.disabled {
        true => accounts::replace_hash(tx, id, &before.password_hash, hash)?,
        false => accounts::change_password(tx, id, &before.password_hash, hash)?.is_some(),
    };
    debug_assert!(changed, "read in the same transaction");
    changes::made(tx).map(Some)
}

/// Makes the change and returns how many were made with it, or `None` if there was nothing to
/// change.
pub(crate) fn change(
    tx: &dyn Tx,
    id: AccountId,
    change: UserChange,
) -> Result<Option<i64>, Failure> {
    let changed = match change {
        UserChange::Disable { now_ms } => accounts::disable(tx, id, now_ms)?,
        UserChange::Enable => accounts::enable(tx, id)?,
        UserChange::EndTokens => accounts::end_tokens(tx, id)?.is_some(),
        UserChange::Delete => erasure::erase(tx, id)?.user,
    };
    match changed {
        true => changes::made(tx).map(Some),
        false => Ok(None),
    }
}

/// Whether the running service has applied the change with this number.
pub(crate) fn noticed(tx: &dyn Tx, number: i64) -> Result<bool, Failure> {
    Ok(changes::noticed(tx)? >= number)
}

fn user_summary(row: &dyn Cells) -> Result<UserSummary, Failure> {
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
