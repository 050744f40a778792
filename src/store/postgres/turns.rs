//! Turns of users: a row for each user with the holder of the turn, judged by the server's clock.
//! Asked on the store's lanes, as everything of a request.

use super::store::PostgresStore;
use crate::base::rng;
use crate::store::arg::args;
use crate::store::statements::accounts;
use crate::store::transact::{Transact, Write};
use crate::store::tx::{Failure, Sql, Tx, sql};
use crate::store::{AccountId, StoreError, Turn};

/// Deadline of an extension, and of the end of a turn, for which a finished answer waits. What
/// fails costs the turn nothing but time: it runs out by itself.
const DEADLINE_MS: u64 = 1_000;

const TAKE: Sql = sql!("sql/postgres/take_turn.sql");
const EXTEND: Sql = sql!("sql/postgres/extend_turn.sql");
const END: Sql = sql!("sql/postgres/end_turn.sql");
const HOLD: Sql = sql!("sql/postgres/hold_turn.sql");

/// `None` while another has the turn.
pub(crate) fn take(store: &PostgresStore, user: AccountId) -> Result<Option<Turn>, StoreError> {
    // Of each attempt its own: one that was given up may come to the server late.
    let holder = format!("{:016x}", rng::bits());
    store.write(Write::new(), move |tx| {
        let granted = tx.first(TAKE, &args![user, &holder, lasts_ms()], |row| row.get::<i64>(0))?;
        if granted.is_none() {
            accounts::expect_user(tx, user)?;
        }
        Ok(granted.map(|number| Turn { user, holder: holder.clone(), number }))
    })
}

/// False where another has taken the turn.
pub(crate) fn extend(store: &PostgresStore, turn: &Turn) -> Result<bool, StoreError> {
    let Turn { user, holder, number } = turn.clone();
    store.write(brief(), move |tx| {
        Ok(tx.run(EXTEND, &args![user, &holder, number, lasts_ms()])? > 0)
    })
}

/// Changes nothing where another has taken the turn.
pub(crate) fn end(store: &PostgresStore, turn: &Turn) -> Result<(), StoreError> {
    let Turn { user, holder, number } = turn.clone();
    store.write(brief(), move |tx| tx.run(END, &args![user, &holder, number]).map(drop))
}

/// Keeps others from taking the turn until the end of the transaction.
///
/// # Errors
/// [`StoreError::TurnLost`], or [`StoreError::NoSuchUser`].
pub(crate) fn hold(tx: &dyn Tx, turn: &Turn) -> Result<(), Failure> {
    if turn.is_alone() {
        return Ok(());
    }
    let Turn { user, holder, number } = turn;
    if tx.first(HOLD, &args![*user, holder, *number], |_| Ok(()))?.is_some() {
        return Ok(());
    }
    accounts::expect_user(tx, *user)?;
    Err(StoreError::TurnLost.into())
}

fn brief() -> Write {
    Write { deadline_ms: DEADLINE_MS, ..Write::new() }
}

fn lasts_ms() -> i64 {
    i64::try_from(Turn::LASTS_MS).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
