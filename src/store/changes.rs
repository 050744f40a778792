//! The data that decides, besides its signature, whether a token is accepted: the identity of the
//! database, revoked tokens, and the changes of accounts and tokens, which triggers of the database
//! number and record.

use crate::store::account_id::AccountId;
use crate::store::accounts::random;
use crate::store::api_keys::{self, StoredKey};
use crate::store::arg::args;
use crate::store::change_log::{Changes, Continuity, LastRead, changes_after, counts};
use crate::store::columns::at;
use crate::store::condition::{IDENTIFIED, IDENTITY};
use crate::store::errors::{Result, StoreError};
use crate::store::open::Store;
use crate::store::tx::{Failure, Tx, statements};
use crate::store::write::{PAGE_DEADLINE_MS, READ_DEADLINE_MS, Write};

/// Changes of accounts and tokens that are kept for nodes that were away, about a megabyte. A node
/// that missed more reloads all accounts, as at its start.
pub(crate) const CHANGES_KEPT: usize = 10_000;

statements! {
    const RENEW_INCARNATION = "\
-- Only while it is still the one that was seen, so that of several who see the same one renews it.
UPDATE identity SET database_id = ?2 WHERE id = 1 AND database_id = ?1";
    const RENEW_IDENTITY = "\
UPDATE identity SET database_id = ?1, cluster_id = coalesce(?2, cluster_id), secret_check = NULL
WHERE id = 1";
    const SECRET_CHECK = "SELECT secret_check FROM identity WHERE id = 1";
    const CLAIM_SECRET = "\
-- Only while the recorded one is still that which was judged.
UPDATE identity SET secret_check = ?2 WHERE id = 1 AND coalesce(secret_check, '') = ?1";
    const REVOKE_TOKEN = "\
INSERT INTO revoked_tokens (token_id, expires_ms) VALUES (?1, ?2)
ON CONFLICT (token_id) DO UPDATE SET expires_ms = CASE
    WHEN revoked_tokens.expires_ms < excluded.expires_ms THEN excluded.expires_ms
    ELSE revoked_tokens.expires_ms END";
    const FORGET_TOKENS = "DELETE FROM revoked_tokens WHERE expires_ms <= ?1";
    const REVOKED_TOKENS = "SELECT token_id, expires_ms FROM revoked_tokens";
    const USER_IDS = "SELECT id FROM users";
    const EPOCHS = "SELECT id, token_epoch FROM users WHERE token_epoch > 0";
    const LAST_USER_ID = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'users'",
        postgres "SELECT user_id FROM last_user WHERE id = 1";
    const NOTICE_CHANGES = "UPDATE change_count SET noticed = ?1 WHERE id = 1 AND noticed < ?1";
    const FORGET_CHANGES =
        "DELETE FROM changes WHERE number <= (SELECT made FROM change_count WHERE id = 1) - ?1";
}

/// Identity of the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DatabaseIdentity {
    /// A token is valid for one incarnation only. A database that was restored, or was seen to have
    /// gone back in time, has a new one.
    pub incarnation: String,
    /// Stays the same as long as the same database goes on. No other database has it.
    pub cluster: String,
}

/// The state that decides whether a token is accepted, besides its signature.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthState {
    /// Tokens issued for another incarnation are refused.
    pub incarnation: String,
    /// Every user.
    pub users: Vec<AccountId>,
    /// The highest id ever given to a user.
    pub last_user: AccountId,
    /// Users with a token epoch other than zero.
    pub epochs: Vec<(AccountId, i64)>,
    /// The last change contained in this state.
    pub read: LastRead,
    /// Ids of revoked tokens, each with the time when it expires anyway (Unix milliseconds).
    pub revoked_tokens: Vec<(String, i64)>,
    /// API keys that are good, or have expired.
    pub keys: Vec<StoredKey>,
}

/// The keys of some accounts, and the number of the last change that they contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeysRead {
    pub incarnation: String,
    pub number: i64,
    pub keys: Vec<StoredKey>,
}

impl Store {
    /// Revokes one token, which expires at `expires_ms`.
    pub(crate) fn revoke_token(&self, token_id: &str, expires_ms: i64) -> Result<()> {
        let token_id = token_id.to_owned();
        self.write(Write::new(), move |tx| {
            tx.run(REVOKE_TOKEN, &args![&token_id, expires_ms])
                .map(drop)
        })
    }

    /// Deletes revocations of tokens that expired before `before_ms`, and returns how many.
    pub(crate) fn forget_revocations(&self, before_ms: i64) -> Result<usize> {
        self.write(Write::new(), move |tx| Ok(tx.run(FORGET_TOKENS, &args![before_ms])? as usize))
    }

    /// The state that decides whether a token is accepted, read at one moment, to be kept in
    /// memory.
    pub(crate) fn auth_state(&self) -> Result<AuthState> {
        self.read(PAGE_DEADLINE_MS, |tx| {
            Ok(AuthState {
                incarnation: identity(tx)?.incarnation,
                users: tx.all(USER_IDS, &[], |row| row.get(0))?,
                last_user: tx
                    .first(LAST_USER_ID, &[], |row| row.get(0))?
                    .unwrap_or_default(),
                read: counts(tx)?.0,
                epochs: tx.all(EPOCHS, &[], |row| Ok((row.get(0)?, row.get(1)?)))?,
                revoked_tokens: tx
                    .all(REVOKED_TOKENS, &[], |row| Ok((row.get(0)?, row.get(1)?)))?,
                keys: api_keys::all(tx)?,
            })
        })
    }

    /// The good and the expired API keys of these accounts, read at one moment.
    pub(crate) fn keys_of(&self, users: Vec<AccountId>) -> Result<KeysRead> {
        self.read(READ_DEADLINE_MS, move |tx| {
            let keys = api_keys::of(tx, &users)?;
            let incarnation = identity(tx)?.incarnation;
            Ok(KeysRead {
                incarnation,
                number: counts(tx)?.0.number,
                keys,
            })
        })
    }

    /// Identity of the database.
    pub(crate) fn identity(&self) -> Result<DatabaseIdentity> {
        self.glance(READ_DEADLINE_MS, identity)
    }

    /// Gives the database a new incarnation if it has gone back since `read` and still has the
    /// incarnation `seen`. Of several nodes, one does. Returns the identity afterwards.
    pub(crate) fn renew_incarnation(&self, seen: &str, read: LastRead) -> Result<DatabaseIdentity> {
        let seen = seen.to_owned();
        self.write(Write::new(), move |tx| {
            // Checked again on the server that takes writes: the reading may have come from a
            // standby that lags.
            if changes_after(tx, read.number)?.continuity(read) == Continuity::WentBack {
                tx.run(RENEW_INCARNATION, &args![&seen, new_id()?])?;
            }
            identity(tx)
        })
    }

    /// Records the check value `own` of the secret that this node signs tokens with, if none is
    /// recorded or the recorded one is in `known`. Returns the recorded one if it is another. A
    /// store of a single process records none.
    pub(crate) fn claim_secret(&self, own: &str, known: &[String]) -> Result<Option<String>> {
        if !self.is_shared() {
            return Ok(None);
        }
        let own = own.to_owned();
        let known = known.to_vec();
        self.write(Write::new(), move |tx| {
            let recorded = tx.first(SECRET_CHECK, &[], |row| row.get::<Option<String>>(0))?;
            match recorded.flatten() {
                Some(recorded) if recorded == own => Ok(None),
                Some(recorded) if !known.contains(&recorded) => Ok(Some(recorded)),
                recorded => {
                    match tx.run(CLAIM_SECRET, &args![recorded.unwrap_or_default(), &own])? {
                        0 => Err(StoreError::Busy.into()),
                        _ => Ok(None),
                    }
                }
            }
        })
    }

    /// The next changes after `number` to the state of [`auth_state`](Self::auth_state), made by
    /// this service, by other nodes or by operators' commands.
    pub(crate) fn changes_after(&self, number: i64) -> Result<Changes> {
        self.glance(READ_DEADLINE_MS, move |tx| changes_after(tx, number))
    }

    /// Records that the one service of a database has applied the changes up to `number`, for
    /// commands that wait for it.
    pub(crate) fn notice_changes(&self, number: i64) -> Result<()> {
        // Some of the changes may have been erasures.
        self.write(Write::new().hiding(), move |tx| {
            tx.run(NOTICE_CHANGES, &args![number]).map(drop)
        })
    }

    /// Deletes all but the newest [`CHANGES_KEPT`] changes. A node that missed some reloads the
    /// whole state.
    pub(crate) fn forget_changes(&self) -> Result<()> {
        self.write(Write::new(), |tx| tx.run(FORGET_CHANGES, &args![CHANGES_KEPT]).map(drop))
    }
}

pub(super) fn identity(tx: &dyn Tx) -> Result<DatabaseIdentity, Failure> {
    let found = tx.only(IDENTITY, &[], "the database's id", |row| {
        Ok((row.get(at!(IDENTIFIED.database_id))?, row.get(at!(IDENTIFIED.cluster_id))?))
    })?;
    match found {
        (Some(incarnation), Some(cluster)) => Ok(DatabaseIdentity {
            incarnation,
            cluster,
        }),
        _ => {
            let why = "a database that was put in place has to take writes once";
            Err(StoreError::Unavailable(why.to_owned()).into())
        }
    }
}

/// Gives the database a new incarnation, and a copy of another database also a new cluster id.
/// Deletes the check value of its nodes' secret.
pub(super) fn renew_identity(tx: &dyn Tx, is_copy: bool) -> Result<DatabaseIdentity, Failure> {
    let cluster = is_copy.then(new_id).transpose()?;
    tx.run(RENEW_IDENTITY, &args![new_id()?, cluster])?;
    identity(tx)
}

/// 128 random bits, as text.
fn new_id() -> Result<String, Failure> {
    Ok(format!("{:016x}{:016x}", random()?, random()?))
}
