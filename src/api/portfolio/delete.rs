//! `DELETE /api/portfolio/data`: everything synced is gone for good; the journal stays.

use super::turn::in_turn;
use crate::api::call::Call;
use crate::api::report::reply_with;
use crate::api::state::State;
use crate::http::{Problem, Response};
use crate::views::portfolio_deleted::{DeletedRows, PortfolioDeleted};

/// Parks for a sync of the same user that is under way, which would else bring the data back, and
/// for the store.
pub fn delete(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let id = call.caller().id;
    state.admit_write(call.caller())?;
    let deleted = in_turn(state, id, |turn| {
        let deleted = state.store.delete_portfolio(turn);
        // Whatever became of it: a write that was given up may have happened.
        state.portfolio.answers.invalidate(id.0);
        Ok(deleted?)
    })?;
    let deleted = DeletedRows {
        holdings: deleted.holdings,
        positions: deleted.positions,
        pnl_snapshots: deleted.pnl_snapshots,
    };
    let message = "All portfolio data has been deleted.";
    reply_with(200, &PortfolioDeleted { message, deleted }, reply);
    Ok(())
}
