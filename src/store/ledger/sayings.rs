//! What a person says of the ledger: whose an account is, corrections, and choices in conflicts.

use crate::base::Words;
use crate::ledger::row::AccountName;
use crate::ledger::trades::{Choices, Keep};
use crate::store::account_id::AccountId;
use crate::store::arg::args;
use crate::store::cells::{Cells, stored_as_words};
use crate::store::columns::{at, columns, record};
use crate::store::errors::{Result, StoreError};
use crate::store::ledger::versions::count_write;
use crate::store::open::Store;
use crate::store::portfolios;
use crate::store::tx::{Expected, Failure, Revision, Tx, statements};
use crate::store::write::{READ_DEADLINE_MS, Write};

/// Accounts of a user.
pub(crate) const ACCOUNTS_MAX: usize = 10;
/// Corrections of a user: several for each security of a large portfolio.
pub(crate) const CORRECTIONS_MAX: usize = 2_000;
/// Choices of a user. Each is of a conflict, of which files have a handful.
const CHOICES_MAX: usize = 2_000;

columns! {
    const ACCOUNT = [name, person];
    const CORRECTION = [id, document];
    const CHOICE = [conflict, kept];
}

statements! {
    const ACCOUNTS =
        ["SELECT ", ACCOUNT.sql, " FROM ledger_accounts WHERE user_id = ?1 ORDER BY name"];
    const ACCOUNTS_OF_IMPORTS =
        "SELECT account FROM ledger_imports WHERE user_id = ?1 AND state <> 'gone'";
    const KEEP_ACCOUNT = "\
INSERT INTO ledger_accounts (user_id, name) VALUES (?1, ?2) ON CONFLICT (user_id, name) DO NOTHING";
    const SET_PERSON = "\
INSERT INTO ledger_accounts (user_id, name, person) VALUES (?1, ?2, ?3)
ON CONFLICT (user_id, name) DO UPDATE SET person = excluded.person";
    const CORRECTIONS =
        ["SELECT ", CORRECTION.sql, " FROM ledger_corrections WHERE user_id = ?1 ORDER BY id"];
    const PUT_CORRECTION = "\
INSERT INTO ledger_corrections (user_id, id, document) VALUES (?1, ?2, ?3)
ON CONFLICT (user_id, id) DO UPDATE SET document = excluded.document";
    const DELETE_CORRECTION = "DELETE FROM ledger_corrections WHERE user_id = ?1 AND id = ?2";
    const COUNT_CORRECTIONS =
        "SELECT count(*) FROM ledger_corrections WHERE user_id = ?1 AND id <> ?2";
    const CORRECTION_OF_USER =
        ["SELECT ", CORRECTION.sql, " FROM ledger_corrections WHERE user_id = ?1 AND id = ?2"];
    const CHOICES =
        ["SELECT ", CHOICE.sql, " FROM ledger_choices WHERE user_id = ?1 ORDER BY conflict"];
    const PUT_CHOICE = "\
INSERT INTO ledger_choices (user_id, conflict, kept) VALUES (?1, ?2, ?3)
ON CONFLICT (user_id, conflict) DO UPDATE SET kept = excluded.kept";
    const COUNT_CHOICES = "SELECT count(*) FROM ledger_choices WHERE user_id = ?1";
    const FORGET_ACCOUNTS = "DELETE FROM ledger_accounts WHERE user_id = ?1";
    const FORGET_CORRECTIONS = "DELETE FROM ledger_corrections WHERE user_id = ?1";
    const FORGET_CHOICES = "DELETE FROM ledger_choices WHERE user_id = ?1";
}

stored_as_words! {
    Keep: "a choice",
}

/// A demat account and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerAccount {
    pub name: AccountName,
    pub person: String,
}

/// A correction, as the document that was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredCorrection {
    pub id: String,
    pub document: String,
}

impl StoredCorrection {
    /// Revision of the correction.
    pub(crate) fn revision(&self) -> Revision {
        Revision::of(&self.document)
    }
}

impl Store {
    /// The accounts whose person was said, or of which an import was confirmed.
    pub(crate) fn ledger_accounts(&self, user: AccountId) -> Result<Vec<LedgerAccount>> {
        self.read(READ_DEADLINE_MS, move |tx| accounts(tx, user))
    }

    /// Says whose an account is.
    ///
    /// # Errors
    /// [`StoreError::TooMany`] with [`ACCOUNTS_MAX`].
    pub(crate) fn set_person(
        &self,
        user: AccountId,
        name: AccountName,
        person: String,
        now_ms: i64,
    ) -> Result<()> {
        self.write(Write::new().of([user]), move |tx| {
            portfolios::expect_user(tx, user)?;
            expect_room_for(tx, user, &name)?;
            tx.run(SET_PERSON, &args![user, &name, &person])?;
            count_write(tx, user, now_ms)
        })
    }

    /// All corrections, in the order of their ids.
    pub(crate) fn corrections(&self, user: AccountId) -> Result<Vec<StoredCorrection>> {
        self.read(READ_DEADLINE_MS, move |tx| tx.all(CORRECTIONS, &args![user], correction))
    }

    /// Adds or replaces a correction.
    ///
    /// # Errors
    /// [`StoreError::TooMany`] with [`CORRECTIONS_MAX`].
    pub(crate) fn put_correction(
        &self,
        user: AccountId,
        correction: StoredCorrection,
        expected: Expected,
        now_ms: i64,
    ) -> Result<()> {
        self.write(Write::new().of([user]).hiding(), move |tx| {
            portfolios::expect_user(tx, user)?;
            expect_correction(tx, user, &correction.id, &expected)?;
            let StoredCorrection { id, document } = &correction;
            let others: usize =
                tx.only(COUNT_CORRECTIONS, &args![user, id], "a count", |row| row.get(0))?;
            if others >= CORRECTIONS_MAX {
                let what = "corrections";
                return Err(StoreError::TooMany {
                    what,
                    limit: CORRECTIONS_MAX,
                }
                .into());
            }
            tx.run(PUT_CORRECTION, &args![user, id, document])?;
            count_write(tx, user, now_ms)
        })
    }

    /// Deletes a correction. False if there is none of this id.
    pub(crate) fn delete_correction(
        &self,
        user: AccountId,
        id: String,
        expected: Expected,
        now_ms: i64,
    ) -> Result<bool> {
        self.write(Write::new().of([user]).hiding(), move |tx| {
            expect_correction(tx, user, &id, &expected)?;
            let is_deleted = tx.run(DELETE_CORRECTION, &args![user, &id])? > 0;
            if is_deleted {
                count_write(tx, user, now_ms)?;
            }
            Ok(is_deleted)
        })
    }

    /// All choices.
    pub(crate) fn choices(&self, user: AccountId) -> Result<Choices> {
        self.read(READ_DEADLINE_MS, move |tx| {
            let found = tx.all(CHOICES, &args![user], |row| {
                Ok((row.get(at!(CHOICE.conflict))?, row.get(at!(CHOICE.kept))?))
            })?;
            Ok(found.into_iter().collect())
        })
    }

    /// Keeps one of the two rows of a conflict.
    ///
    /// # Errors
    /// [`StoreError::TooMany`].
    pub(crate) fn put_choice(
        &self,
        user: AccountId,
        conflict: String,
        kept: Keep,
        now_ms: i64,
    ) -> Result<()> {
        self.write(Write::new().of([user]), move |tx| {
            portfolios::expect_user(tx, user)?;
            let count: usize = tx.only(COUNT_CHOICES, &args![user], "a count", |row| row.get(0))?;
            if count >= CHOICES_MAX {
                return Err(StoreError::TooMany {
                    what: "choices",
                    limit: CHOICES_MAX,
                }
                .into());
            }
            tx.run(PUT_CHOICE, &args![user, &conflict, kept])?;
            count_write(tx, user, now_ms)
        })
    }
}

fn correction(row: &dyn Cells) -> Result<StoredCorrection, Failure> {
    Ok(record!(row of CORRECTION, StoredCorrection [id, document]))
}

/// Checks a precondition against the correction of this id. There is none to match one that is not
/// there.
fn expect_correction(
    tx: &dyn Tx,
    user: AccountId,
    id: &str,
    expected: &Expected,
) -> Result<(), Failure> {
    if expected.is_any() {
        return Ok(());
    }
    match tx.first(CORRECTION_OF_USER, &args![user, id], correction)? {
        Some(found) => expected.compare(|| found.revision())?,
        None if expected.one_of.is_some() => return Err(StoreError::NotAsExpected.into()),
        None => {}
    }
    Ok(())
}

fn accounts(tx: &dyn Tx, user: AccountId) -> Result<Vec<LedgerAccount>, Failure> {
    tx.all(ACCOUNTS, &args![user], |row| {
        Ok(record!(row of ACCOUNT, LedgerAccount [name, person]))
    })
}

/// Refuses an account that would be one too many, with those of imports that are not gone.
pub(super) fn expect_room_for(
    tx: &dyn Tx,
    user: AccountId,
    name: &AccountName,
) -> Result<(), Failure> {
    let mut names: Vec<AccountName> = accounts(tx, user)?
        .into_iter()
        .map(|known| known.name)
        .collect();
    names.extend(tx.all(ACCOUNTS_OF_IMPORTS, &args![user], |row| row.get::<AccountName>(0))?);
    names.push(name.clone());
    names.sort_unstable();
    names.dedup();
    match names.len() > ACCOUNTS_MAX {
        true => Err(StoreError::TooMany {
            what: "accounts",
            limit: ACCOUNTS_MAX,
        }
        .into()),
        false => Ok(()),
    }
}

/// Keeps that there is an account of this name.
pub(super) fn keep_account(
    tx: &dyn Tx,
    user: AccountId,
    name: &AccountName,
) -> Result<(), Failure> {
    tx.run(KEEP_ACCOUNT, &args![user, name]).map(drop)
}

/// Deletes all that the person said.
pub(super) fn forget_all(tx: &dyn Tx, user: AccountId) -> Result<(), Failure> {
    for sql in [FORGET_ACCOUNTS, FORGET_CORRECTIONS, FORGET_CHOICES] {
        tx.run(sql, &args![user])?;
    }
    Ok(())
}
