//! Changes of accounts and tokens, which the database numbers and notes by itself. Runs on the
//! store's threads, within a transaction.

use crate::store::arg::args;
use crate::store::cells::{Cells, damaged};
use crate::store::limits::{CHANGES_KEPT, CHANGES_PAGE};
use crate::store::tx::{Failure, Sql, Tx, sql};
use crate::store::{AccountId, Change, Changes};

const CHANGES_AFTER: Sql = sql!("sql/store/changes_after.sql");
const CHANGES_MADE: Sql = sql!("sql/store/changes_made.sql");
const NOTICE_CHANGES: Sql = sql!("sql/store/notice_changes.sql");
const FORGET_CHANGES: Sql = sql!("sql/store/forget_changes.sql");

/// The changes after the one of this number, at most [`CHANGES_PAGE`].
pub(crate) fn after(tx: &dyn Tx, number: i64) -> Result<Changes, Failure> {
    let rows = tx.all(CHANGES_AFTER, &args![number, CHANGES_PAGE], |row| {
        let number: Option<i64> = row.get(2)?;
        let change = number.map(|number| Ok::<_, Failure>((number, change(row)?))).transpose()?;
        Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, change))
    })?;
    let Some((made, noticed, _)) = rows.first() else { return Err(damaged("a count of changes")) };
    let (made, noticed) = (*made, *noticed);
    Ok(Changes { made, noticed, rows: rows.into_iter().filter_map(|row| row.2).collect() })
}

fn change(row: &dyn Cells) -> Result<Change, Failure> {
    let id = || row.get(4).map(AccountId);
    Ok(match row.str(3)? {
        "account" => Change::Account { id: id()?, epoch: row.get(6)? },
        "erased" => Change::Erased { id: id()? },
        "revoked" => Change::Revoked { token_id: row.get(5)?, expires_ms: row.get(6)? },
        _ => Change::Unknown,
    })
}

/// How many changes were made.
pub(crate) fn made(tx: &dyn Tx) -> Result<i64, Failure> {
    Ok(counts(tx)?.0)
}

/// How many changes the one service of a file has taken up.
pub(crate) fn noticed(tx: &dyn Tx) -> Result<i64, Failure> {
    Ok(counts(tx)?.1)
}

fn counts(tx: &dyn Tx) -> Result<(i64, i64), Failure> {
    let found = tx.first(CHANGES_MADE, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    found.ok_or_else(|| damaged("a count of changes"))
}

pub(crate) fn notice(tx: &dyn Tx, number: i64) -> Result<(), Failure> {
    tx.run(NOTICE_CHANGES, &args![number]).map(drop)
}

/// Deletes all but the newest.
pub(crate) fn forget(tx: &dyn Tx) -> Result<(), Failure> {
    tx.run(FORGET_CHANGES, &args![CHANGES_KEPT]).map(drop)
}
