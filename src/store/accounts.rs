//! Accounts: users, their passwords, and the networks that they are used from.

use crate::store::account_id::AccountId;
use crate::store::arg::args;
use crate::store::cells::{Cells, damaged};
use crate::store::columns::{at, columns, record};
use crate::store::errors::{Result, StoreError};
use crate::store::open::Store;
use crate::store::tx::{Failure, Tx, statements};
use crate::store::write::{PAGE_DEADLINE_MS, READ_DEADLINE_MS, Write};
use crate::store::{api_keys, journal, portfolios};
use crate::views::account::ErasedRows;
use crate::views::holdings::DeletedRows;

/// Random bits of an account's first epoch. The remaining bits leave room for counting up.
const FIRST_EPOCH_BITS: u32 = 62;
/// Networks kept of an account: home, work, and the last few of a phone.
pub(crate) const LOGIN_NETWORKS_MAX: usize = 8;
/// Networks of all accounts that are read at a time, the newest first: some 10 MB. A login from a
/// network that was not read counts as a stranger's until it succeeds.
const LOGIN_NETWORKS_READ: usize = 200_000;
/// Most spellings of one address: as it was typed, and its local part and its domain in two forms
/// each.
pub(crate) const SPELLINGS_MAX: usize = 5;
/// The last use of a network is written again after this time.
pub(crate) const LOGIN_NETWORK_AGAIN_MS: i64 = 20 * 3_600_000;

columns! {
    const SECRETS = [
        id, email, name, created_ms, password_hash, token_epoch,
        "disabled_ms IS NOT NULL" as disabled,
    ];
    const NETWORK = ["login_networks.user_id" as id, network, seen_ms];
    const NETWORK_OF_EMAIL = [..NETWORK, email];
}

statements! {
    const CREATE_USER = "\
-- The epoch is random, so that no token of another account that once had the id is good for this
-- one: ids are given again where a database has gone back.
INSERT INTO users (email, name, password_hash, created_ms, token_epoch) VALUES (?1, ?2, ?3, ?4, ?5)
RETURNING id";
    const USER_BY_EMAIL =
        ["SELECT ", SECRETS.sql, " FROM users WHERE email IN (?1, ?2, ?3, ?4, ?5)"];
    const USER_BY_ID = ["SELECT ", SECRETS.sql, " FROM users WHERE id = ?1"];
    const REPLACE_HASH = "UPDATE users SET password_hash = ?3 WHERE id = ?1 AND password_hash = ?2";
    const CHANGE_PASSWORD = "\
-- The epoch counts up, for its order, and has 32 random bits below, so that no token of another
-- past of this database has the same.
UPDATE users SET password_hash = ?3, token_epoch = (((token_epoch >> 32) + 1) << 32) | ?4
WHERE id = ?1 AND password_hash = ?2 AND disabled_ms IS NULL
RETURNING token_epoch";
    const END_TOKENS = "\
-- The epoch as in change_password.sql.
UPDATE users SET token_epoch = (((token_epoch >> 32) + 1) << 32) | ?2
WHERE id = ?1
RETURNING token_epoch";
    const ERASE_USER = "\
-- What is theirs goes with the row.
DELETE FROM users WHERE id = ?1 RETURNING journal_entries";
    const LOGIN_NETWORKS = ["SELECT ", NETWORK_OF_EMAIL.sql, "
FROM login_networks JOIN users ON users.id = login_networks.user_id
WHERE seen_ms >= ?1
ORDER BY seen_ms DESC LIMIT ?2"];
    const KEEP_LOGIN_NETWORK = "\
-- Nothing is written for an account that is gone, or a network that was seen within the day.
INSERT INTO login_networks (user_id, network, seen_ms)
SELECT id, ?2, ?3 FROM users WHERE id = ?1
ON CONFLICT (user_id, network) DO UPDATE SET seen_ms = excluded.seen_ms
WHERE login_networks.seen_ms < excluded.seen_ms - ?4";
    const DROP_LOGIN_NETWORKS = "\
DELETE FROM login_networks WHERE user_id = ?1 AND network NOT IN (
    SELECT network FROM login_networks WHERE user_id = ?1
    ORDER BY seen_ms DESC, network LIMIT ?2
)";
    const NETWORKS_OF_USER = ["SELECT ", NETWORK.sql, "
FROM login_networks WHERE user_id = ?1 ORDER BY seen_ms DESC, network"];
    const FORGET_LOGIN_NETWORKS = "DELETE FROM login_networks WHERE seen_ms < ?1";
}

/// A user to register.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Normalised: trimmed and in lower case.
    pub email: String,
    pub name: Option<String>,
    /// Hash of the password as a PHC string.
    pub password_hash: String,
    pub created_ms: i64,
}

/// A user without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: AccountId,
    pub email: String,
    pub name: Option<String>,
    pub created_ms: i64,
}

/// A user with the data that a login checks.
#[derive(Clone, Debug)]
pub struct UserSecrets {
    pub user: User,
    pub password_hash: String,
    /// Tokens with another epoch are refused.
    pub token_epoch: i64,
    /// Whether an operator has disabled logins.
    pub disabled: bool,
}

/// A network from which an account was used, as a keyed hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LoginNetwork {
    pub id: AccountId,
    pub network: String,
    pub seen_ms: i64,
}

impl Store {
    /// Adds a user, with a random token epoch. [`StoreError::EmailTaken`] if the e-mail, already
    /// normalised, is registered.
    pub fn create_user(&self, user: NewUser) -> Result<UserSecrets> {
        self.write(Write::new(), move |tx| create(tx, &user))
    }

    /// Same as [`create_user`](Self::create_user), for the first account the database ever has.
    /// [`StoreError::NotFirst`] if an account exists or existed. Of two simultaneous calls one
    /// succeeds.
    pub(crate) fn create_first_user(&self, user: NewUser) -> Result<UserSecrets> {
        // Each engine gives ids in order and never twice, and a second insert waits for this one.
        // The error ends the transaction without a commit.
        self.write(Write::new(), move |tx| match create(tx, &user)? {
            created if created.user.id == AccountId(1) => Ok(created),
            _ => Err(StoreError::NotFirst.into()),
        })
    }

    /// The user with an e-mail as it is stored, with the data that a login checks.
    pub fn user_by_email(&self, email: &str) -> Result<Option<UserSecrets>> {
        self.user_by_spellings(&[email.to_owned()])
    }

    /// Same as [`user_by_email`](Self::user_by_email), for an address of at most [`SPELLINGS_MAX`]
    /// spellings. Of several users the one of the first spelling counts. One statement, whether
    /// there is such a user or not, so that its time tells nobody.
    pub fn user_by_spellings(&self, spellings: &[String]) -> Result<Option<UserSecrets>> {
        let spellings = spellings.to_vec();
        self.read(READ_DEADLINE_MS, move |tx| by_spellings(tx, &spellings))
    }

    pub(crate) fn user_by_id(&self, id: AccountId) -> Result<Option<UserSecrets>> {
        self.read(READ_DEADLINE_MS, move |tx| by_id(tx, id))
    }

    /// Replaces the hash `old` by one of the same password with better parameters. Returns false if
    /// the stored hash is no longer `old`.
    pub(crate) fn replace_hash(&self, id: AccountId, old: &str, new: &str) -> Result<bool> {
        let old = old.to_owned();
        let new = new.to_owned();
        self.write(Write::new(), move |tx| replace_hash(tx, id, &old, &new))
    }

    /// Changes the password if the stored hash is still `old_hash`, and returns the user's new,
    /// higher token epoch. `None` if another change came first or the user does not exist.
    pub(crate) fn change_password(
        &self,
        id: AccountId,
        old_hash: &str,
        new_hash: &str,
    ) -> Result<Option<i64>> {
        let old = old_hash.to_owned();
        let new = new_hash.to_owned();
        self.write(Write::new().of([id]).hiding(), move |tx| change_password(tx, id, &old, &new))
    }

    /// Refuses all tokens issued to the user so far, and with `keys` all API keys. Returns the
    /// user's new, higher token epoch. `None` if the user does not exist.
    pub(crate) fn end_tokens(&self, id: AccountId, keys: bool) -> Result<Option<i64>> {
        self.write(Write::new().of([id]), move |tx| {
            if keys {
                api_keys::remove_all(tx, id)?;
            }
            end_tokens(tx, id)
        })
    }

    /// Erases the user and everything stored for them, from the file and its log. `None` if there
    /// is no such user.
    pub fn erase_user(&self, id: AccountId) -> Result<Option<ErasedRows>> {
        // In batches, since a ledger may have hundreds of thousands of rows.
        self.empty_ledger(id)?;
        self.erase(Write::new().of([id]), move |tx| erase(tx, id), Option::is_some)
    }

    /// Networks from which accounts were used at `since_ms` or later, each with the account's
    /// e-mail, the newest first. The number is bounded.
    pub(crate) fn login_networks(&self, since_ms: i64) -> Result<Vec<(String, LoginNetwork)>> {
        self.read(PAGE_DEADLINE_MS, move |tx| {
            tx.all(LOGIN_NETWORKS, &args![since_ms, LOGIN_NETWORKS_READ], |row| {
                Ok((row.get(at!(NETWORK_OF_EMAIL.email))?, login_network(row)?))
            })
        })
    }

    /// Stores networks, and keeps the newest few of each account. Accounts that no longer exist are
    /// skipped.
    pub(crate) fn keep_login_networks(
        &self,
        mut seen: Vec<LoginNetwork>,
        deadline_ms: u64,
    ) -> Result<()> {
        // Sorted by key, so that two nodes do not wait for each other.
        seen.sort();
        self.write(
            Write {
                deadline_ms,
                ..Write::page()
            },
            move |tx| {
                let keep = seen.iter().map(
                    |LoginNetwork {
                         id,
                         network,
                         seen_ms,
                     }| {
                        args![*id, network, *seen_ms, LOGIN_NETWORK_AGAIN_MS]
                    },
                );
                if tx.run_each(KEEP_LOGIN_NETWORK, keep)? == 0 {
                    return Ok(());
                }
                let mut ids: Vec<AccountId> = seen.iter().map(|seen| seen.id).collect();
                ids.dedup();
                let of_accounts = ids.into_iter().map(|id| args![id, LOGIN_NETWORKS_MAX]);
                tx.run_each(DROP_LOGIN_NETWORKS, of_accounts).map(drop)
            },
        )
    }

    /// The stored networks of one account, the latest first.
    pub(crate) fn login_networks_of(&self, id: AccountId) -> Result<Vec<LoginNetwork>> {
        self.read(READ_DEADLINE_MS, move |tx| tx.all(NETWORKS_OF_USER, &args![id], login_network))
    }

    /// Deletes networks that were last seen before `before_ms`.
    pub(crate) fn forget_login_networks(&self, before_ms: i64) -> Result<()> {
        self.write(Write::page(), move |tx| {
            tx.run(FORGET_LOGIN_NETWORKS, &args![before_ms]).map(drop)
        })
    }
}

pub(super) fn create(tx: &dyn Tx, user: &NewUser) -> Result<UserSecrets, Failure> {
    let NewUser {
        email,
        name,
        password_hash,
        created_ms,
    } = user;
    let token_epoch = (random()? >> (u64::BITS - FIRST_EPOCH_BITS))
        .max(1)
        .cast_signed();
    let columns = args![
        email,
        name.as_ref(),
        password_hash,
        *created_ms,
        token_epoch
    ];
    let id = tx.only(CREATE_USER, &columns, "a row that was added", |row| row.get(0))?;
    let user = User {
        id,
        email: email.clone(),
        name: name.clone(),
        created_ms: *created_ms,
    };
    let password_hash = password_hash.clone();
    Ok(UserSecrets {
        user,
        password_hash,
        token_epoch,
        disabled: false,
    })
}

pub(super) fn by_spellings(
    tx: &dyn Tx,
    spellings: &[String],
) -> Result<Option<UserSecrets>, Failure> {
    let first = spellings.first().map_or("", String::as_str);
    let of = |at: usize| spellings.get(at).map_or(first, String::as_str);
    let found = tx.all(USER_BY_EMAIL, &args![of(0), of(1), of(2), of(3), of(4)], secrets)?;
    let rank = |user: &UserSecrets| spellings.iter().position(|known| *known == user.user.email);
    Ok(found.into_iter().min_by_key(rank))
}

pub(super) fn by_id(tx: &dyn Tx, id: AccountId) -> Result<Option<UserSecrets>, Failure> {
    tx.first(USER_BY_ID, &args![id], secrets)
}

fn secrets(row: &dyn Cells) -> Result<UserSecrets, Failure> {
    let user = record!(row of SECRETS, User [id, email, name, created_ms]);
    Ok(record!(row of SECRETS, UserSecrets [password_hash, token_epoch, disabled] user))
}

fn login_network(row: &dyn Cells) -> Result<LoginNetwork, Failure> {
    Ok(record!(row of NETWORK, LoginNetwork [id, network, seen_ms]))
}

pub(super) fn replace_hash(
    tx: &dyn Tx,
    id: AccountId,
    old: &str,
    new: &str,
) -> Result<bool, Failure> {
    Ok(tx.run(REPLACE_HASH, &args![id, old, new])? == 1)
}

pub(super) fn change_password(
    tx: &dyn Tx,
    id: AccountId,
    old: &str,
    new: &str,
) -> Result<Option<i64>, Failure> {
    tx.first(CHANGE_PASSWORD, &args![id, old, new, epoch_salt()?], |row| row.get(0))
}

pub(super) fn end_tokens(tx: &dyn Tx, id: AccountId) -> Result<Option<i64>, Failure> {
    tx.first(END_TOKENS, &args![id, epoch_salt()?], |row| row.get(0))
}

pub(super) fn erase(tx: &dyn Tx, id: AccountId) -> Result<Option<ErasedRows>, Failure> {
    // Deleted explicitly to count the rows. A foreign key deletes the user's other rows.
    let DeletedRows {
        holdings,
        positions,
        pnl_snapshots,
    } = portfolios::delete(tx, id)?;
    let counted = tx.first(ERASE_USER, &args![id], |row| row.get::<i64>(0))?;
    let Some(counted) = counted else {
        return Ok(None);
    };
    let journal_entries =
        u64::try_from(counted).map_err(|_| damaged("a count of journal entries"))?;
    debug_assert!(journal_entries <= journal::ENTRIES_MAX as u64);
    Ok(Some(ErasedRows {
        holdings,
        positions,
        pnl_snapshots,
        journal_entries,
    }))
}

/// The random half of a token epoch.
pub(super) fn epoch_salt() -> Result<i64, Failure> {
    Ok((random()? >> u32::BITS).cast_signed())
}

pub(super) fn random() -> Result<u64, Failure> {
    getrandom::u64().map_err(|error| StoreError::Unavailable(error.to_string()).into())
}
