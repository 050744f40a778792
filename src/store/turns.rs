//! Turns of users: the right to change a user's portfolio. Syncs and deletions of one user, also on
//! different nodes, need it one after the other. Each checks within its transaction that it has the
//! turn, and fails with [`StoreError::TurnLost`] if the turn ran out and another holder took it. A
//! file belongs to one process, which grants every turn at once. On a server each user has a row
//! with the holder of the turn, judged by the server's clock.

use crate::base::rng;
use crate::store::accounts::{AccountId, expect_user};
use crate::store::errors::{Result, StoreError};
use crate::store::open::Store;
use crate::store::tx::{Failure, Tx, Write, args, statements};

/// Deadline for extending or ending a turn, for which a finished answer waits. If it fails, the
/// turn runs out by itself.
const DEADLINE_MS: u64 = 1_000;

statements! {
    /// Locks the rows that registrations and changes of all nodes wait for.
    const PROBE_SHARED = "\
SELECT last_user.user_id FROM last_user, change_count
WHERE last_user.id = 1 AND change_count.id = 1 FOR UPDATE";
    const TAKE = "\
-- Who waits looks at the row and does not lock it.
INSERT INTO turns (user_id, holder, number, until)
SELECT id, ?2, 1, clock_timestamp() + ?3 * interval '1 millisecond' FROM users
WHERE id = ?1 AND NOT EXISTS (
    SELECT 1 FROM turns WHERE user_id = ?1 AND until >= clock_timestamp()
)
ON CONFLICT (user_id) DO UPDATE SET holder = excluded.holder, number = turns.number + 1,
    until = clock_timestamp() + ?3 * interval '1 millisecond'
WHERE turns.until < clock_timestamp()
RETURNING number";
    const EXTEND = "\
-- Also one that has run out: as long as nobody has taken it, nobody has written in between.
UPDATE turns SET until = clock_timestamp() + ?4 * interval '1 millisecond'
WHERE user_id = ?1 AND holder = ?2 AND number = ?3";
    const END = "\
-- Nobody is its holder then, so that an extension that comes late finds nothing to extend.
UPDATE turns SET holder = '', until = '-infinity'
WHERE user_id = ?1 AND holder = ?2 AND number = ?3";
    const HOLD = "\
-- Whoever takes the turn waits for the end of this transaction.
SELECT 1 FROM turns WHERE user_id = ?1 AND holder = ?2 AND number = ?3 FOR SHARE";
}

/// The right to change a user's portfolio. Of all nodes that share a database, one holder has it at
/// a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub user: AccountId,
    /// Random text, different for each turn.
    pub holder: String,
    /// Higher than the number of every earlier turn of the user.
    pub number: i64,
}

impl Turn {
    /// Lifetime of a turn that is not extended, by the clock of the database. A node that is gone
    /// blocks its user for this long.
    pub(crate) const LASTS_MS: u64 = 20_000;
    /// Interval between extensions. Three may fail before the turn runs out.
    pub(crate) const EXTENDED_EACH_MS: u64 = 5_000;

    /// The turn of the one process that has the database. Nobody can take it.
    pub fn alone(user: AccountId) -> Self {
        Self { user, holder: String::new(), number: 0 }
    }

    /// Whether this is the turn of a single process.
    pub(crate) fn is_alone(&self) -> bool {
        self.number == 0
    }
}

impl Store {
    /// Takes the user's turn for [`Turn::LASTS_MS`]; `None` while another holder has it.
    pub(crate) fn take_turn(&self, user: AccountId) -> Result<Option<Turn>> {
        if !self.is_shared() {
            return Ok(Some(Turn::alone(user)));
        }
        // Each attempt has its own: a request that was given up may reach the server late.
        let holder = format!("{:016x}", rng::bits());
        self.write(Write::new(), move |tx| {
            let args = args![user, &holder, Turn::LASTS_MS.cast_signed()];
            let granted = tx.first(TAKE, &args, |row| row.get::<i64>(0))?;
            if granted.is_none() {
                expect_user(tx, user)?;
            }
            Ok(granted.map(|number| Turn { user, holder: holder.clone(), number }))
        })
    }

    /// Extends a turn to its whole lifetime from now; false if another holder has taken it.
    pub(crate) fn extend_turn(&self, turn: &Turn) -> Result<bool> {
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
    pub(crate) fn end_turn(&self, turn: &Turn) -> Result<()> {
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

/// Keeps other holders from taking the turn until the end of the transaction.
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
    expect_user(tx, *user)?;
    Err(StoreError::TurnLost.into())
}
