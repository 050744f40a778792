//! A user's turn to change the portfolio: one sync or deletion after the other, on this node by
//! the user's lock, and then on all nodes that share its database.

use super::user_lock::Crowded;
use crate::api::errors::in_progress;
use crate::api::state::State;
use crate::base::rng;
use crate::http::Problem;
use crate::rt::coroutines::Parker;
use crate::store::{AccountId, Turn};

/// How often a turn that another node has is asked for again, more or less.
const ASKED_EACH_MS: u64 = 100;

/// Does `work` in the user's turn. Parks while other requests have it, for at most as long as a
/// sync may take. A turn whose end is not stored, or that a panic leaves behind, runs out.
pub(super) fn in_turn<T>(
    state: &State,
    id: AccountId,
    work: impl FnOnce(&Turn) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let wait_ms = state.portfolio.sync_deadline_ms;
    let until_ms = state.clock.monotonic_ms().saturating_add(wait_ms);
    let _lock = state.portfolio.locks.take(id.0, wait_ms).map_err(|Crowded| in_progress())?;
    let turn = take(state, id, until_ms)?;
    let done = work(&turn);
    if let Err(error) = state.store.end_turn(&turn) {
        tracing::warn!(user = id.0, %error, "a turn was not ended and will run out");
    }
    done
}

fn take(state: &State, id: AccountId, until_ms: u64) -> Result<Turn, Problem> {
    loop {
        if let Some(turn) = state.store.take_turn(id)? {
            return Ok(turn);
        }
        let left_ms = until_ms.saturating_sub(state.clock.monotonic_ms());
        if left_ms == 0 {
            state.portfolio.locks.count_refusal();
            return Err(in_progress());
        }
        Parker::current().park(rng::jittered_ms(ASKED_EACH_MS).min(left_ms));
    }
}

/// Keeps the turn while what it was taken for goes on. Where it was lost, the store refuses what is
/// to be written.
pub(super) fn extend(state: &State, turn: &Turn) {
    match state.store.extend_turn(turn) {
        Ok(true) => {}
        Ok(false) => tracing::warn!(user = turn.user.0, "a turn ran out and was taken"),
        Err(error) => tracing::warn!(user = turn.user.0, %error, "a turn was not extended"),
    }
}
