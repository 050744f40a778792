//! Changes of accounts and tokens, which the database numbers and notes by itself. Runs on the
//! store's threads, within a transaction.

use crate::store::arg::args;
use crate::store::cells::{Cells, damaged};
use crate::store::limits::{CHANGES_KEPT, CHANGES_PAGE};
use crate::store::tx::{Failure, Sql, Tx, sql};
use crate::store::{AccountId, Change, Changes, LastRead};

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
            .map(|number| Ok::<_, Failure>((number, row.get::<i64>(8)?, change(row)?)));
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

fn change(row: &dyn Cells) -> Result<Change, Failure> {
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
pub(crate) fn noticed(tx: &dyn Tx) -> Result<i64, Failure> {
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
