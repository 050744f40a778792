//! Users, their secrets, and revoked tokens. Runs on the store's threads, within a transaction.

use crate::store::records::{
    CHANGES_KEPT, CHANGES_PAGE, LOGIN_NETWORK_AGAIN_MS, LOGIN_NETWORKS_MAX, LOGIN_NETWORKS_READ,
};
use crate::store::statements::portfolios;
use crate::store::tx::{Cells, Failure, Sql, Tx, args, damaged, sql};
use crate::store::{
    AccountId, AuthState, Change, Changes, Continuity, DatabaseIdentity, Deleted, Erased, LastRead,
    LoginNetwork, NewUser, StoreError, User, UserChange, UserSecrets, UserSummary, records,
};

const IDENTITY: Sql = sql!("sql/store/identity.sql");
const RENEW_INCARNATION: Sql = sql!("sql/store/renew_incarnation.sql");
const RENEW_IDENTITY: Sql = sql!("sql/store/renew_identity.sql");
const SECRET_CHECK: Sql = sql!("sql/store/secret_check.sql");
const CLAIM_SECRET: Sql = sql!("sql/store/claim_secret.sql");
const CREATE_USER: Sql = sql!("sql/store/create_user.sql");
const USER_BY_EMAIL: Sql = sql!("sql/store/user_by_email.sql");
const USER_BY_ID: Sql = sql!("sql/store/user_by_id.sql");
const USER_EXISTS: Sql = sql!("sql/store/user_exists.sql");
const REPLACE_HASH: Sql = sql!("sql/store/replace_hash.sql");
const CHANGE_PASSWORD: Sql = sql!("sql/store/change_password.sql");
const REVOKE_TOKEN: Sql = sql!("sql/store/revoke_token.sql");
const FORGET_TOKENS: Sql = sql!("sql/store/forget_tokens.sql");
const REVOKED_TOKENS: Sql = sql!("sql/store/revoked_tokens.sql");
const USER_IDS: Sql = sql!("sql/store/user_ids.sql");
const LAST_USER_ID: Sql =
    sql!("sql/store/last_user_id.sql", postgres: "sql/postgres/last_user_id.sql");
const DISABLE_USER: Sql = sql!("sql/store/disable_user.sql");
const ENABLE_USER: Sql = sql!("sql/store/enable_user.sql");
const END_TOKENS: Sql = sql!("sql/store/end_tokens.sql");
const LOGIN_NETWORKS: Sql = sql!("sql/store/login_networks.sql");
const KEEP_LOGIN_NETWORK: Sql = sql!("sql/store/keep_login_network.sql");
const DROP_LOGIN_NETWORKS: Sql = sql!("sql/store/drop_login_networks.sql");
const FORGET_LOGIN_NETWORKS: Sql = sql!("sql/store/forget_login_networks.sql");
const EPOCHS: Sql = sql!("sql/store/epochs.sql");

/// Bits of the epoch that an account begins with. The rest is left for counting up.
const FIRST_EPOCH_BITS: u32 = 62;

pub(crate) fn create(tx: &dyn Tx, user: &NewUser) -> Result<UserSecrets, Failure> {
    let NewUser { email, name, password_hash, created_ms } = user;
    let token_epoch = (random()? >> (u64::BITS - FIRST_EPOCH_BITS)).max(1).cast_signed();
    let columns = args![email, name.as_ref(), password_hash, *created_ms, token_epoch];
    let id = tx.first(CREATE_USER, &columns, account_id)?;
    let id = id.ok_or_else(|| damaged("a row that was added"))?;
    let user = User { id, email: email.clone(), name: name.clone(), created_ms: *created_ms };
    let password_hash = password_hash.clone();
    Ok(UserSecrets { user, password_hash, token_epoch, disabled: false })
}

/// Adds the user only if no account was ever added before. Otherwise the transaction has to end
/// without a commit, which the error brings about.
pub(crate) fn create_first(tx: &dyn Tx, user: &NewUser) -> Result<UserSecrets, Failure> {
    // Each engine gives ids in order and none twice, and another user's insert waits for this one.
    let created = create(tx, user)?;
    match created.user.id == AccountId(1) {
        true => Ok(created),
        false => Err(StoreError::NotFirst.into()),
    }
}

pub(crate) fn by_email(tx: &dyn Tx, email: &str) -> Result<Option<UserSecrets>, Failure> {
    tx.first(USER_BY_EMAIL, &args![email], secrets)
}

pub(crate) fn by_id(tx: &dyn Tx, id: AccountId) -> Result<Option<UserSecrets>, Failure> {
    tx.first(USER_BY_ID, &args![id], secrets)
}

fn account_id(row: &dyn Cells) -> Result<AccountId, Failure> {
    row.get(0).map(AccountId)
}

fn secrets(row: &dyn Cells) -> Result<UserSecrets, Failure> {
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
pub(crate) fn expect_user(tx: &dyn Tx, id: AccountId) -> Result<(), Failure> {
    let found = tx.first(USER_EXISTS, &args![id], |_| Ok(()))?;
    found.ok_or_else(|| StoreError::NoSuchUser.into())
}

pub(crate) fn replace_hash(
    tx: &dyn Tx,
    id: AccountId,
    old: &str,
    new: &str,
) -> Result<bool, Failure> {
    Ok(tx.run(REPLACE_HASH, &args![id, old, new])? == 1)
}

pub(crate) fn change_password(
    tx: &dyn Tx,
    id: AccountId,
    old_hash: &str,
    new_hash: &str,
) -> Result<Option<i64>, Failure> {
    tx.first(CHANGE_PASSWORD, &args![id, old_hash, new_hash, salt()?], |row| row.get(0))
}

/// The random half of a token epoch.
fn salt() -> Result<i64, Failure> {
    Ok((random()? >> u32::BITS).cast_signed())
}

fn random() -> Result<u64, Failure> {
    getrandom::u64().map_err(|error| StoreError::Unavailable(error.to_string()).into())
}

pub(crate) fn revoke_token(tx: &dyn Tx, token_id: &str, expires_ms: i64) -> Result<(), Failure> {
    tx.run(REVOKE_TOKEN, &args![token_id, expires_ms]).map(drop)
}

/// Deletes revocations of tokens that have expired.
pub(crate) fn forget_revocations(tx: &dyn Tx, before_ms: i64) -> Result<usize, Failure> {
    Ok(tx.run(FORGET_TOKENS, &args![before_ms])? as usize)
}

/// Which database it is.
pub(crate) fn identity(tx: &dyn Tx) -> Result<DatabaseIdentity, Failure> {
    let found = tx.first(IDENTITY, &[], |row| Ok((row.get(0)?, row.get(2)?)))?;
    match found.ok_or_else(|| damaged("the database's id"))? {
        (Some(incarnation), Some(cluster)) => Ok(DatabaseIdentity { incarnation, cluster }),
        _ => {
            let why = "a database that was put in place has to take writes once";
            Err(StoreError::Unavailable(why.to_owned()).into())
        }
    }
}

/// Gives the database a new incarnation, if it has gone back since `read` and still has the one
/// that was `seen`. Returns which database it is then.
pub(crate) fn renew_incarnation(
    tx: &dyn Tx,
    seen: &str,
    read: LastRead,
) -> Result<DatabaseIdentity, Failure> {
    // Asked again where writes go: a reading may have come from a server that is behind.
    if after(tx, read.number)?.continuity(read) == Continuity::WentBack {
        tx.run(RENEW_INCARNATION, &args![seen, new_id()?])?;
    }
    identity(tx)
}

/// Gives the database a new incarnation, and a copy of another one a new id of the cluster too.
/// Forgets which secret its nodes sign with.
pub(crate) fn renew_identity(tx: &dyn Tx, is_copy: bool) -> Result<DatabaseIdentity, Failure> {
    let cluster = is_copy.then(new_id).transpose()?;
    tx.run(RENEW_IDENTITY, &args![new_id()?, cluster])?;
    identity(tx)
}

/// 128 random bits, as text.
fn new_id() -> Result<String, Failure> {
    Ok(format!("{:016x}{:016x}", random()?, random()?))
}

/// Records the check value `own`, if none is recorded or one that the node knows too. Returns the
/// recorded one where the node does not know it.
pub(crate) fn claim_secret(
    tx: &dyn Tx,
    own: &str,
    known: &[String],
) -> Result<Option<String>, Failure> {
    let recorded = tx.first(SECRET_CHECK, &[], |row| row.get::<Option<String>>(0))?.flatten();
    match recorded {
        Some(recorded) if recorded == own => Ok(None),
        Some(recorded) if !known.contains(&recorded) => Ok(Some(recorded)),
        recorded => match tx.run(CLAIM_SECRET, &args![recorded.unwrap_or_default(), own])? {
            0 => Err(StoreError::Busy.into()),
            _ => Ok(None),
        },
    }
}

/// Reads everything in one transaction, so that the last id is consistent with the rest.
pub(crate) fn auth_state(tx: &dyn Tx) -> Result<AuthState, Failure> {
    Ok(AuthState {
        incarnation: identity(tx)?.incarnation,
        users: tx.all(USER_IDS, &[], account_id)?,
        last_user: tx.first(LAST_USER_ID, &[], account_id)?.unwrap_or_default(),
        read: last(tx)?,
        epochs: tx.all(EPOCHS, &[], |row| Ok((AccountId(row.get(0)?), row.get(1)?)))?,
        revoked_tokens: tx.all(REVOKED_TOKENS, &[], |row| Ok((row.get(0)?, row.get(1)?)))?,
    })
}

/// Disables logins and refuses all tokens of the account. False if it was disabled already or there
/// is no such user.
pub(crate) fn disable(tx: &dyn Tx, id: AccountId, now_ms: i64) -> Result<bool, Failure> {
    Ok(tx.run(DISABLE_USER, &args![id, now_ms, salt()?])? == 1)
}

/// Enables logins again. Earlier tokens stay refused.
pub(crate) fn enable(tx: &dyn Tx, id: AccountId) -> Result<bool, Failure> {
    Ok(tx.run(ENABLE_USER, &args![id])? == 1)
}

/// Refuses all tokens of before and returns the epoch of the next; `None` if there is no such user.
pub(crate) fn end_tokens(tx: &dyn Tx, id: AccountId) -> Result<Option<i64>, Failure> {
    tx.first(END_TOKENS, &args![id, salt()?], |row| row.get(0))
}

/// The networks of all accounts that were seen at `since_ms` or later, each with its account's
/// e-mail; the newest first.
pub(crate) fn login_networks(
    tx: &dyn Tx,
    since_ms: i64,
) -> Result<Vec<(String, LoginNetwork)>, Failure> {
    tx.all(LOGIN_NETWORKS, &args![since_ms, LOGIN_NETWORKS_READ], |row| {
        let (id, network, seen_ms) = (AccountId(row.get(0)?), row.get(2)?, row.get(3)?);
        Ok((row.get(1)?, LoginNetwork { id, network, seen_ms }))
    })
}

/// Writes networks in the order of their keys, so that two nodes do not wait for each other, and
/// drops the oldest of each account that has too many.
pub(crate) fn keep_login_networks(tx: &dyn Tx, seen: &[LoginNetwork]) -> Result<(), Failure> {
    let keep = seen.iter().map(|LoginNetwork { id, network, seen_ms }| {
        args![*id, network, *seen_ms, LOGIN_NETWORK_AGAIN_MS].into()
    });
    if tx.run_many(KEEP_LOGIN_NETWORK, &keep.collect::<Vec<_>>())? == 0 {
        return Ok(());
    }
    let mut ids: Vec<AccountId> = seen.iter().map(|seen| seen.id).collect();
    ids.dedup();
    let of_accounts: Vec<_> =
        ids.into_iter().map(|id| args![id, LOGIN_NETWORKS_MAX].into()).collect();
    tx.run_many(DROP_LOGIN_NETWORKS, &of_accounts).map(drop)
}

/// Deletes networks that were seen before `before_ms` and not since.
pub(crate) fn forget_login_networks(tx: &dyn Tx, before_ms: i64) -> Result<(), Failure> {
    tx.run(FORGET_LOGIN_NETWORKS, &args![before_ms]).map(drop)
}

// ---- Users
//
// Users as an operator's commands list and change them. Runs on a command's main thread, within a
// transaction.

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
        Err(_) => by_email(tx, id_or_email)?.map(|found| found.user.id),
    };
    let Some(id) = id.filter(|id| id.0 > 0) else { return Ok(None) };
    let next = page(tx, AccountId(id.0 - 1), 1)?.pop();
    Ok(next.filter(|user| user.id == id))
}

/// Adds a user; `None` if the normalised e-mail is registered already.
pub(crate) fn add(tx: &dyn Tx, user: &NewUser) -> Result<Option<User>, Failure> {
    match by_email(tx, &user.email)? {
        Some(_) => Ok(None),
        None => Ok(Some(create(tx, user)?.user)),
    }
}

/// Replaces the password and refuses every older token. Returns how many changes were made with it,
/// or `None` if there is no such user.
pub(crate) fn set_password(tx: &dyn Tx, id: AccountId, hash: &str) -> Result<Option<i64>, Failure> {
    let Some(before) = by_id(tx, id)? else { return Ok(None) };
    let changed = match before.disabled {
        true => replace_hash(tx, id, &before.password_hash, hash)?,
        false => change_password(tx, id, &before.password_hash, hash)?.is_some(),
    };
    debug_assert!(changed, "read in the same transaction");
    made(tx).map(Some)
}

/// Makes the change and returns how many were made with it, or `None` if there was nothing to
/// change.
pub(crate) fn change(
    tx: &dyn Tx,
    id: AccountId,
    change: UserChange,
) -> Result<Option<i64>, Failure> {
    let changed = match change {
        UserChange::Disable { now_ms } => disable(tx, id, now_ms)?,
        UserChange::Enable => enable(tx, id)?,
        UserChange::EndTokens => end_tokens(tx, id)?.is_some(),
        UserChange::Delete => erase(tx, id)?.user,
    };
    match changed {
        true => made(tx).map(Some),
        false => Ok(None),
    }
}

/// Whether the running service has applied the change with this number.
pub(crate) fn noticed(tx: &dyn Tx, number: i64) -> Result<bool, Failure> {
    Ok(changes_noticed(tx)? >= number)
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

// ---- Changes
//
// Changes of accounts and tokens, which the database numbers and notes by itself. Runs on the
// store's threads, within a transaction.

const CHANGES_AFTER: Sql = sql!("sql/store/changes_after.sql");
const CHANGES_MADE: Sql = sql!("sql/store/changes_made.sql");
const NOTICE_CHANGES: Sql = sql!("sql/store/notice_changes.sql");
const FORGET_CHANGES: Sql = sql!("sql/store/forget_changes.sql");

/// The changes after the one of this number, at most [`CHANGES_PAGE`].
pub(crate) fn after(tx: &dyn Tx, number: i64) -> Result<Changes, Failure> {
    // One row more, for the change of this number itself.
    let rows = tx.all(CHANGES_AFTER, &args![number, CHANGES_PAGE + 1], |row| {
        let change = row
            .get::<Option<i64>>(3)?
            .map(|number| Ok::<_, Failure>((number, row.get::<i64>(8)?, changes_change(row)?)));
        let identity = (row.get::<Option<String>>(2)?, row.get::<Option<String>>(9)?);
        let of_all = (row.get::<i64>(0)?, row.get::<i64>(1)?, identity);
        Ok((of_all, change.transpose()?))
    })?;
    let Some(((made, noticed, (incarnation, secret_check)), _)) = rows.first().cloned() else {
        return Err(damaged("a count of changes"));
    };
    let mut rows: Vec<_> = rows.into_iter().filter_map(|row| row.1).collect();
    let is_before = rows.first().is_some_and(|(first, ..)| *first == number);
    let before = is_before.then(|| rows.remove(0).1);
    rows.truncate(CHANGES_PAGE);
    Ok(Changes {
        incarnation: incarnation.unwrap_or_default(),
        secret_check,
        before,
        mark: rows.last().map(|(_, mark, _)| *mark),
        made,
        noticed,
        rows: rows.into_iter().map(|(number, _, change)| (number, change)).collect(),
    })
}

fn changes_change(row: &dyn Cells) -> Result<Change, Failure> {
    let id = || row.get(5).map(AccountId);
    Ok(match row.str(4)? {
        "account" => Change::Account { id: id()?, epoch: row.get(7)? },
        "erased" => Change::Erased { id: id()? },
        "revoked" => Change::Revoked { token_id: row.get(6)?, expires_ms: row.get(7)? },
        _ => Change::Unknown,
    })
}

/// How many changes were made.
pub(crate) fn made(tx: &dyn Tx) -> Result<i64, Failure> {
    Ok(counts(tx)?.0.number)
}

/// The last change that was made.
pub(crate) fn last(tx: &dyn Tx) -> Result<LastRead, Failure> {
    Ok(counts(tx)?.0)
}

/// How many changes the one service of a file has taken up.
pub(crate) fn changes_noticed(tx: &dyn Tx) -> Result<i64, Failure> {
    Ok(counts(tx)?.1)
}

fn counts(tx: &dyn Tx) -> Result<(LastRead, i64), Failure> {
    let found = tx.first(CHANGES_MADE, &[], |row| {
        Ok((LastRead { number: row.get(0)?, mark: row.get(2)? }, row.get(1)?))
    })?;
    found.ok_or_else(|| damaged("a count of changes"))
}

pub(crate) fn notice(tx: &dyn Tx, number: i64) -> Result<(), Failure> {
    tx.run(NOTICE_CHANGES, &args![number]).map(drop)
}

/// Deletes all but the newest.
pub(crate) fn forget(tx: &dyn Tx) -> Result<(), Failure> {
    tx.run(FORGET_CHANGES, &args![CHANGES_KEPT]).map(drop)
}

// ---- Erasure
//
// Erases a user with everything that is stored of them. Runs on the store's threads, within a
// transaction.

const ERASE_USER: Sql = sql!("sql/store/erase_user.sql");

pub(crate) fn erase(tx: &dyn Tx, id: AccountId) -> Result<Erased, Failure> {
    // Deleted explicitly to count the rows. A foreign key deletes the rest with the user.
    let portfolio = portfolios::delete(tx, id)?;
    let Some(counted) = tx.first(ERASE_USER, &args![id], |row| row.get::<i64>(0))? else {
        return Ok(Erased { user: false, portfolio: Deleted::default(), journal_entries: 0 });
    };
    let journal_entries =
        u64::try_from(counted).map_err(|_| damaged("a count of journal entries"))?;
    debug_assert!(journal_entries <= records::ENTRIES_MAX as u64);
    Ok(Erased { user: true, portfolio, journal_entries })
}
