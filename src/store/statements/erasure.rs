//! Erases a user with everything that is stored of them. Runs on the store's threads, within a
//! transaction.

use super::portfolios;
use crate::store::arg::args;
use crate::store::cells::damaged;
use crate::store::tx::{Failure, Sql, Tx, sql};
use crate::store::{AccountId, Deleted, Erased, limits};

const ERASE_USER: Sql = sql!("sql/store/erase_user.sql");

pub(crate) fn erase(tx: &dyn Tx, id: AccountId) -> Result<Erased, Failure> {
    // Deleted explicitly to count the rows. A foreign key deletes the rest with the user.
    let portfolio = portfolios::delete(tx, id)?;
    let Some(counted) = tx.first(ERASE_USER, &args![id], |row| row.get::<i64>(0))? else {
        return Ok(Erased { user: false, portfolio: Deleted::default(), journal_entries: 0 });
    };
    let journal_entries =
        u64::try_from(counted).map_err(|_| damaged("a count of journal entries"))?;
    debug_assert!(journal_entries <= limits::ENTRIES_MAX as u64);
    Ok(Erased { user: true, portfolio, journal_entries })
}
