//! Rights to write, each checked within the transaction that needs it: the leader's, and a user's
//! turn.
//!
//! Whoever has a user's turn may change the portfolio. Syncs and deletions of one user, also on
//! different nodes, need it one after the other, and fail with [`StoreError::TurnLost`] if the turn
//! ran out and another holder took it. A file belongs to one process, which grants every turn at
//! once. On a server each user has a row with the holder of the turn, judged by the server's clock.

use crate::base::rng;
use crate::store::account_id::AccountId;
use crate::store::arg::args;
use crate::store::errors::{Result, StoreError};
use crate::store::open::Store;
use crate::store::portfolios::expect_user;
use crate::store::tx::{Failure, Tx, statements};
use crate::store::write::{Epoch, Turn, Write};

/// Deadline for extending or ending a turn, for which a finished answer waits. If it fails, the
/// turn runs out by itself.
const DEADLINE_MS: u64 = 1_000;

statements! { of the server:
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
    const HOLD_LEASE = "\
-- Whoever takes the lease waits for the end of this transaction. A node that is stopped within it
-- keeps the lease from the others for no longer than this.
SELECT set_config('idle_in_transaction_session_timeout', '2s', true)
FROM leases WHERE role = 'feed' AND epoch = ?1 FOR SHARE";
    const HOLD_TURN = "\
-- Whoever takes the turn waits for the end of this transaction.
SELECT 1 FROM turns WHERE user_id = ?1 AND holder = ?2 AND number = ?3 FOR SHARE";
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
            Ok(granted.map(|number| Turn {
                user,
                holder: holder.clone(),
                number,
            }))
        })
    }

    /// Extends a turn to its whole lifetime from now; false if another holder has taken it.
    pub(crate) fn extend_turn(&self, turn: &Turn) -> Result<bool> {
        if !self.is_shared() {
            return Ok(true);
        }
        let Turn {
            user,
            holder,
            number,
        } = turn.clone();
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
        let Turn {
            user,
            holder,
            number,
        } = turn.clone();
        self.write(brief(), move |tx| tx.run(END, &args![user, &holder, number]).map(drop))
    }
}

fn brief() -> Write {
    Write {
        deadline_ms: DEADLINE_MS,
        ..Write::new()
    }
}

impl Write {
    /// A page that only the leader writes. Fails with [`StoreError::Deposed`] if another node has
    /// led since `epoch`.
    pub(crate) fn leading(epoch: Epoch) -> Self {
        Self {
            right: Some(Box::new(move |tx| hold_lease(tx, epoch))),
            ..Self::page()
        }
    }

    /// A write of the user's portfolio. Fails with [`StoreError::TurnLost`] if another holder has
    /// taken the turn since.
    pub(crate) fn in_turn(turn: &Turn) -> Self {
        let turn = turn.clone();
        let of_user = Self::new().of([turn.user]);
        Self {
            right: Some(Box::new(move |tx| hold_turn(tx, &turn))),
            ..of_user
        }
    }
}

/// Keeps other nodes from taking the lease until the end of the transaction.
pub(super) fn hold_lease(tx: &dyn Tx, epoch: Epoch) -> Result<(), Failure> {
    if epoch == Epoch::ALONE {
        return Ok(());
    }
    let number = i64::try_from(epoch.0).unwrap_or(i64::MAX);
    let held = tx.first(HOLD_LEASE, &[number.into()], |_| Ok(()))?;
    held.ok_or_else(|| StoreError::Deposed.into())
}

/// Keeps other holders from taking the turn until the end of the transaction.
fn hold_turn(tx: &dyn Tx, turn: &Turn) -> Result<(), Failure> {
    if turn.is_alone() {
        return Ok(());
    }
    let Turn {
        user,
        holder,
        number,
    } = turn;
    if tx
        .first(HOLD_TURN, &args![*user, holder, *number], |_| Ok(()))?
        .is_some()
    {
        return Ok(());
    }
    expect_user(tx, *user)?;
    Err(StoreError::TurnLost.into())
}
