//! Erases a user with everything that is stored of them. Runs on the store's threads, within a
//! transaction.

use rusqlite::Connection;

use super::columns::{damaged, first};
use super::condition::Failure;
use super::{cleaning, portfolios};
use crate::store::{AccountId, Deleted, Erased, limits};

const ERASE_USER: &str = include_str!("../../../sql/store/erase_user.sql");

pub(crate) fn erase(connection: &Connection, id: AccountId) -> Result<Erased, Failure> {
    // Deleted explicitly to count the rows. A foreign key deletes the rest with the user.
    let portfolio = portfolios::delete(connection, id)?;
    let Some(counted) = first(connection, ERASE_USER, [id.0], |row| Ok(row.get::<_, i64>(0)?))?
    else {
        return Ok(Erased { user: false, portfolio: Deleted::default(), journal_entries: 0 });
    };
    cleaning::count(connection)?;
    let journal_entries =
        u64::try_from(counted).map_err(|_| damaged("a count of journal entries"))?;
    debug_assert!(journal_entries <= limits::ENTRIES_MAX as u64);
    Ok(Erased { user: true, portfolio, journal_entries })
}
