//! Turns of users: the right to change a user's portfolio, which syncs and deletions of one user
//! take in turn, also on different nodes. Each checks within its transaction that it has the turn,
//! and fails with [`StoreError::TurnLost`] where that ran out and another has taken it. A file is
//! one process's, which grants every turn at once. On a server a user has a row with the holder of
//! the turn, judged by the server's clock.

use crate::base::rng;
use crate::store::open::Store;
use crate::store::statements::accounts;
use crate::store::tx::{Failure, Sql, Tx, Write, args, sql};
use crate::store::{AccountId, StoreError, Turn};

/// Deadline of an extension, and of the end of a turn, for which a finished answer waits. What
/// fails costs the turn nothing but time: it runs out by itself.
const DEADLINE_MS: u64 = 1_000;

const TAKE: Sql = sql!("sql/postgres/take_turn.sql");
const EXTEND: Sql = sql!("sql/postgres/extend_turn.sql");
const END: Sql = sql!("sql/postgres/end_turn.sql");
#[cfg(feature = "engines")]
const HOLD: Sql = sql!("sql/postgres/hold_turn.sql");

impl Store {
    /// Takes the user's turn for [`Turn::LASTS_MS`]; `None` while another holder has it.
    pub(crate) fn take_turn(&self, user: AccountId) -> Result<Option<Turn>, StoreError> {
        if !self.is_shared() {
            return Ok(Some(Turn::alone(user)));
        }
        // Of each attempt its own: one that was given up may come to the server late.
        let holder = format!("{:016x}", rng::bits());
        self.write(Write::new(), move |tx| {
            let args = args![user, &holder, Turn::LASTS_MS.cast_signed()];
            let granted = tx.first(TAKE, &args, |row| row.get::<i64>(0))?;
            if granted.is_none() {
                accounts::expect_user(tx, user)?;
            }
            Ok(granted.map(|number| Turn { user, holder: holder.clone(), number }))
        })
    }

    /// Lets a turn last for its whole time from now; false where another has taken it.
    pub(crate) fn extend_turn(&self, turn: &Turn) -> Result<bool, StoreError> {
        if !self.is_shared() {
            return Ok(true);
        }
        let Turn { user, holder, number } = turn.clone();
        self.write(brief(), move |tx| {
            let args = args![user, &holder, number, Turn::LASTS_MS.cast_signed()];
            Ok(tx.run(EXTEND, &args)? > 0)
        })
    }

    /// Ends a turn, if its holder still has it.
    pub(crate) fn end_turn(&self, turn: &Turn) -> Result<(), StoreError> {
        if !self.is_shared() {
            return Ok(());
        }
        let Turn { user, holder, number } = turn.clone();
        self.write(brief(), move |tx| tx.run(END, &args![user, &holder, number]).map(drop))
    }
}

fn brief() -> Write {
    Write { deadline_ms: DEADLINE_MS, ..Write::new() }
}

/// Keeps others from taking the turn until the end of the transaction.
///
/// # Errors
/// [`StoreError::TurnLost`], or [`StoreError::NoSuchUser`].
#[cfg(feature = "engines")]
pub(super) fn hold(tx: &dyn Tx, turn: &Turn) -> Result<(), Failure> {
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
