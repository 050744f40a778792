//! Imports: how one comes, becomes a preview, becomes live, and goes.

use std::collections::BTreeSet;

use jiff::civil::Date;

use crate::base::{Words, words};
use crate::ledger::file::{ClientId, ClientIdKind, FileFormat, FileKind};
use crate::ledger::row::AccountName;
use crate::store::account_id::AccountId;
use crate::store::arg::{Arg, Argument, args};
use crate::store::cells::{Cells, Nullable, parsed, stored_as_words};
use crate::store::columns::{at, columns, record, values};
use crate::store::errors::{Result, StoreError};
use crate::store::ledger::quarters::Quarters;
use crate::store::ledger::sayings;
use crate::store::ledger::versions::{LedgerVersions, count_write, versions};
use crate::store::open::Store;
use crate::store::portfolios;
use crate::store::tx::{Expected, Failure, Revision, Tx, statements};
use crate::store::write::{READ_DEADLINE_MS, Write};

/// Imports of a user that are live or shown: a file a month for forty years.
pub(crate) const IMPORTS_MAX: usize = 500;
/// Previews that a user may have open. A further one drops the oldest.
const PREVIEWS_MAX: usize = 4;
/// How long a preview waits for its confirmation.
const PREVIEW_MS: i64 = 30 * 60_000;
/// The longest time in which an import is written. One that takes longer belongs to a process that
/// is gone.
const LOADING_MS: i64 = 2 * 60_000;
/// How long a dropped import is remembered, so that a late confirmation is told what became of it.
const REMEMBERED_MS: i64 = 24 * 3_600_000;
/// Imports that one sweep drops, so that it ends within seconds.
const SWEPT_AT_ONCE: usize = 4;

columns! {
    const COUNTS = [new_count, known_count, conflict_count, refused_count];
    const IMPORT = [
        ..COUNTS, id, user_id, account, state, kind, format, sha256, client_kind, client_id,
        period_from, period_to, row_count, created_ms, due_ms, quarters,
    ];
    const NEW_IMPORT = [
        user_id, account, state, kind, format, sha256, client_kind, client_id, period_from,
        period_to, row_count, new_count, known_count, conflict_count, refused_count, created_ms,
        due_ms,
    ];
}

statements! {
    const IMPORTS =
        ["SELECT ", IMPORT.sql, " FROM ledger_imports WHERE user_id = ?1 ORDER BY id"];
    const IMPORT_OF_USER =
        ["SELECT ", IMPORT.sql, " FROM ledger_imports WHERE user_id = ?1 AND id = ?2"];
    const ADD_IMPORT = ["\
INSERT INTO ledger_imports (", NEW_IMPORT.sql, ")
VALUES (", NEW_IMPORT.parameters(1), ")
RETURNING id"];
    const SET_IMPORT_STATE =
        "UPDATE ledger_imports SET state = ?3, due_ms = ?4 WHERE user_id = ?1 AND id = ?2";
    const IMPORT_IS_EMPTY = "\
UPDATE ledger_imports SET row_count = 0, due_ms = ?3
WHERE user_id = ?1 AND id = ?2 AND state = 'gone'";
    const FORGET_IMPORT =
        "DELETE FROM ledger_imports WHERE user_id = ?1 AND id = ?2 AND state = 'gone'";
    const IMPORTS_DUE = ["\
SELECT ", IMPORT.sql, "
FROM ledger_imports WHERE due_ms <= ?1 ORDER BY due_ms LIMIT ?2"];
}

words! {
    /// How far an import has come. Only a live one counts.
    pub(crate) enum ImportState {
        /// Its rows are being written.
        Loading = "loading",
        /// It waits to be confirmed.
        Preview = "preview",
        Live = "live",
        /// It was dropped, undone or never confirmed. Its rows are removed, or are being removed.
        Gone = "gone",
    }
}

stored_as_words! {
    ClientIdKind: "a kind of client's id",
    FileFormat: "a format of a file",
    FileKind: "a kind of file",
    ImportState: "a state of an import",
}

impl Nullable for AccountName {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        parsed(row, at, Self::parse, "an account's name")
    }
}

impl<'a> Argument<'a> for &'a AccountName {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::from(value.map(AccountName::as_str))
    }
}

/// How many rows of an import are what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportCounts {
    pub new_count: usize,
    pub known_count: usize,
    pub conflict_count: usize,
    pub refused_count: usize,
}

/// An import that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewImport {
    pub account: AccountName,
    pub kind: FileKind,
    pub format: FileFormat,
    /// Of the file, in hexadecimal.
    pub sha256: Option<String>,
    /// Whose the file says it is.
    pub client: Option<ClientId>,
    pub period: Option<(Date, Date)>,
    /// Rows that will be written.
    pub row_count: usize,
    pub counts: ImportCounts,
}

/// A stored import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredImport {
    pub id: i64,
    pub user_id: AccountId,
    pub account: AccountName,
    pub state: ImportState,
    pub kind: FileKind,
    pub format: FileFormat,
    pub sha256: Option<String>,
    pub client: Option<ClientId>,
    pub period_from: Option<Date>,
    pub period_to: Option<Date>,
    pub row_count: usize,
    pub counts: ImportCounts,
    pub created_ms: i64,
    /// Of a preview: when it expires.
    pub due_ms: Option<i64>,
    /// Of a sync: first days of the past quarters that were read to their end.
    pub quarters: BTreeSet<Date>,
}

/// What became of a confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// It is live, by this confirmation or an earlier one.
    Live(ImportCounts),
    /// It expired or was dropped.
    Gone,
    /// The user has none of this id.
    Unknown,
}

impl Store {
    /// All imports of a user that are not gone, the oldest first.
    pub(crate) fn imports(&self, user: AccountId) -> Result<Vec<StoredImport>> {
        self.read(READ_DEADLINE_MS, move |tx| standing(tx, user))
    }

    /// Begins an import, whose rows are written next. Returns its id.
    ///
    /// # Errors
    /// [`StoreError::TooMany`] with `rows_max`, [`IMPORTS_MAX`], or the accounts there may be.
    pub(crate) fn begin_import(
        &self,
        user: AccountId,
        new: NewImport,
        rows_max: usize,
        now_ms: i64,
    ) -> Result<i64> {
        self.write(Write::new().of([user]), move |tx| {
            portfolios::expect_user(tx, user)?;
            expect_rows(tx, user, new.row_count, rows_max)?;
            expect_import(tx, user, &new.account)?;
            add(tx, user, &new, ImportState::Loading, now_ms)
        })
    }

    /// Shows an import whose rows are written, and drops the oldest preview of too many. Returns
    /// when it expires, and those that are to be [emptied](Self::empty_import). `None` if the
    /// import was swept meanwhile.
    pub(crate) fn preview_import(
        &self,
        user: AccountId,
        import: i64,
        now_ms: i64,
    ) -> Result<Option<(i64, Vec<StoredImport>)>> {
        self.write(Write::new().of([user]), move |tx| {
            let mut all = standing(tx, user)?;
            let is_loading = |one: &StoredImport| one.state == ImportState::Loading;
            if !all.iter().any(|one| one.id == import && is_loading(one)) {
                return Ok(None);
            }
            let expires_ms = now_ms + PREVIEW_MS;
            set_state(tx, user, import, ImportState::Preview, Some(expires_ms))?;
            all.retain(|one| one.state == ImportState::Preview);
            all.truncate((all.len() + 1).saturating_sub(PREVIEWS_MAX));
            for dropped in &all {
                set_state(tx, user, dropped.id, ImportState::Gone, Some(now_ms))?;
            }
            Ok(Some((expires_ms, all)))
        })
    }

    /// Makes a preview live.
    pub(crate) fn confirm_import(
        &self,
        user: AccountId,
        import: i64,
        now_ms: i64,
    ) -> Result<Confirmed> {
        self.write(Write::new().of([user]), move |tx| {
            let Some(found) = one(tx, user, import)? else {
                return Ok(Confirmed::Unknown);
            };
            match found.state {
                ImportState::Live => Ok(Confirmed::Live(found.counts)),
                ImportState::Loading => Ok(Confirmed::Unknown),
                ImportState::Preview if found.due_ms.is_some_and(|due_ms| due_ms > now_ms) => {
                    set_state(tx, user, import, ImportState::Live, None)?;
                    sayings::keep_account(tx, user, &found.account)?;
                    count_write(tx, user, now_ms)?;
                    Ok(Confirmed::Live(found.counts))
                }
                ImportState::Preview | ImportState::Gone => Ok(Confirmed::Gone),
            }
        })
    }

    /// Drops a preview or undoes a live import, whose rows do not count from then on. Returns it,
    /// to be [emptied](Self::empty_import); `None` if the user has none of this id.
    pub(crate) fn drop_import(
        &self,
        user: AccountId,
        import: i64,
        now_ms: i64,
    ) -> Result<Option<StoredImport>> {
        self.write(Write::new().of([user]), move |tx| {
            let found = one(tx, user, import)?;
            let stands =
                |one: &StoredImport| matches!(one.state, ImportState::Preview | ImportState::Live);
            let Some(found) = found.filter(stands) else {
                return Ok(None);
            };
            set_state(tx, user, import, ImportState::Gone, Some(now_ms))?;
            if found.state == ImportState::Live {
                count_write(tx, user, now_ms)?;
            }
            Ok(Some(found))
        })
    }

    /// Removes the rows of an import that is gone, batch by batch. Blocks for all of them.
    pub(crate) fn empty_import(&self, import: &StoredImport, now_ms: i64) -> Result<()> {
        let user = import.user_id;
        let id = import.id;
        self.remove_import_rows(user, id, import.row_count)?;
        self.write(Write::new().of([user]).hiding(), move |tx| {
            tx.run(IMPORT_IS_EMPTY, &args![user, id, now_ms + REMEMBERED_MS])
                .map(drop)
        })
    }

    /// Drops everything of a user's ledger, which is empty from then on. Returns the imports that
    /// are to be [emptied](Self::empty_import).
    ///
    /// # Errors
    /// [`StoreError::NotAsExpected`] if `state_of` says that the versions are of another state.
    pub(crate) fn drop_ledger(
        &self,
        user: AccountId,
        expected: Expected,
        state_of: impl Fn(LedgerVersions) -> Revision + Send + 'static,
        now_ms: i64,
    ) -> Result<Vec<StoredImport>> {
        let is_some = |dropped: &Vec<StoredImport>| !dropped.is_empty();
        let write = Write::new().of([user]).hiding();
        let work = move |tx: &dyn Tx| {
            let versions = versions(tx, user)?;
            expected.compare(|| state_of(versions))?;
            drop_all(tx, user, now_ms)
        };
        self.erase(write, work, is_some)
    }

    /// Removes all rows of a user's imports, batch by batch, before the user is erased.
    pub(in crate::store) fn empty_ledger(&self, user: AccountId) -> Result<()> {
        let all = self.read(READ_DEADLINE_MS, move |tx| tx.all(IMPORTS, &args![user], import))?;
        for import in all {
            self.remove_import_rows(user, import.id, import.row_count)?;
        }
        Ok(())
    }

    /// Drops imports whose writer is gone and previews that nobody confirmed, removes what is left
    /// of them, and forgets those that were dropped long ago. Returns their number. Blocks.
    pub(crate) fn sweep_imports(&self, now_ms: i64) -> Result<usize> {
        let due = self.read(READ_DEADLINE_MS, move |tx| {
            tx.all(IMPORTS_DUE, &args![now_ms, SWEPT_AT_ONCE], import)
        })?;
        for import in &due {
            let user = import.user_id;
            let id = import.id;
            if import.state == ImportState::Gone && import.row_count == 0 {
                self.write(Write::page().of([user]), move |tx| {
                    tx.run(FORGET_IMPORT, &args![user, id]).map(drop)
                })?;
                continue;
            }
            let is_due = self.write(Write::page().of([user]), move |tx| {
                // Confirmed meanwhile, perhaps.
                let found = one(tx, user, id)?;
                let is_due = found.is_some_and(|one| one.due_ms.is_some_and(|due| due <= now_ms));
                if is_due {
                    set_state(tx, user, id, ImportState::Gone, Some(now_ms))?;
                }
                Ok(is_due)
            })?;
            if is_due {
                self.empty_import(import, now_ms)?;
            }
        }
        Ok(due.len())
    }
}

/// Drops all imports and what the person said.
fn drop_all(tx: &dyn Tx, user: AccountId, now_ms: i64) -> Result<Vec<StoredImport>, Failure> {
    let all = standing(tx, user)?;
    for import in &all {
        set_state(tx, user, import.id, ImportState::Gone, Some(now_ms))?;
    }
    sayings::forget_all(tx, user)?;
    count_write(tx, user, now_ms)?;
    Ok(all)
}

/// The imports of a user that are not gone.
fn standing(tx: &dyn Tx, user: AccountId) -> Result<Vec<StoredImport>, Failure> {
    let mut all = tx.all(IMPORTS, &args![user], import)?;
    all.retain(|import| import.state != ImportState::Gone);
    Ok(all)
}

pub(super) fn one(tx: &dyn Tx, user: AccountId, id: i64) -> Result<Option<StoredImport>, Failure> {
    tx.first(IMPORT_OF_USER, &args![user, id], import)
}

fn set_state(
    tx: &dyn Tx,
    user: AccountId,
    import: i64,
    state: ImportState,
    due_ms: Option<i64>,
) -> Result<(), Failure> {
    tx.run(SET_IMPORT_STATE, &args![user, import, state, due_ms])
        .map(drop)
}

/// Adds an import in this state. Returns its id.
pub(super) fn add(
    tx: &dyn Tx,
    user: AccountId,
    new: &NewImport,
    state: ImportState,
    now_ms: i64,
) -> Result<i64, Failure> {
    let client = new.client.as_ref();
    let row = values!(NEW_IMPORT {
        user_id: user,
        account: &new.account,
        state: state,
        kind: new.kind,
        format: new.format,
        sha256: new.sha256.as_ref(),
        client_kind: client.map(|client| client.kind),
        client_id: client.map(|client| &client.id),
        period_from: new.period.map(|period| period.0),
        period_to: new.period.map(|period| period.1),
        row_count: new.row_count,
        new_count: new.counts.new_count,
        known_count: new.counts.known_count,
        conflict_count: new.counts.conflict_count,
        refused_count: new.counts.refused_count,
        created_ms: now_ms,
        due_ms: (state == ImportState::Loading).then_some(now_ms + LOADING_MS),
    });
    tx.only(ADD_IMPORT, &row, "an import that was added", |row| row.get(0))
}

/// Refuses rows that would be too many with those of all imports.
pub(super) fn expect_rows(
    tx: &dyn Tx,
    user: AccountId,
    added: usize,
    rows_max: usize,
) -> Result<(), Failure> {
    let rows: usize = standing(tx, user)?
        .iter()
        .map(|import| import.row_count)
        .sum();
    match rows + added > rows_max {
        true => Err(StoreError::TooMany {
            what: "rows of imports",
            limit: rows_max,
        }
        .into()),
        false => Ok(()),
    }
}

/// Refuses an import of this account that would be one too many.
pub(super) fn expect_import(
    tx: &dyn Tx,
    user: AccountId,
    account: &AccountName,
) -> Result<(), Failure> {
    if standing(tx, user)?.len() >= IMPORTS_MAX {
        return Err(StoreError::TooMany {
            what: "imports",
            limit: IMPORTS_MAX,
        }
        .into());
    }
    sayings::expect_room_for(tx, user, account)
}

fn import(row: &dyn Cells) -> Result<StoredImport, Failure> {
    let counts = record!(row of COUNTS, ImportCounts [
        new_count, known_count, conflict_count, refused_count,
    ]);
    let quarters: Option<Quarters> = row.get(at!(IMPORT.quarters))?;
    let kind: Option<ClientIdKind> = row.get(at!(IMPORT.client_kind))?;
    let id: Option<String> = row.get(at!(IMPORT.client_id))?;
    let client = kind.zip(id).map(|(kind, id)| ClientId { kind, id });
    Ok(record!(row of IMPORT, StoredImport [
        id, user_id, account, state, kind, format, sha256, period_from, period_to, row_count,
        created_ms, due_ms,
    ] client, counts, quarters: quarters.unwrap_or_default().0))
}
