//! `DELETE /api/portfolio/data`: everything synced is gone for good; the journal stays.

use super::errors::in_progress;
use crate::api::call::Call;
use crate::api::json::write_object;
use crate::api::state::State;
use crate::http::message::response::JSON;
use crate::http::{Problem, Response};

/// Parks for a sync of the same user that is under way, which would else bring the data back, and
/// for the store.
pub fn delete(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let id = call.caller().id;
    state.admit_write(call.caller())?;
    let desk = &state.portfolio;
    let _turn = desk.turns.take(id.0, desk.sync_deadline_ms).map_err(|_| in_progress())?;
    let deleted = state.store.delete_portfolio(id);
    // Whatever became of it: a write that was given up may have happened.
    desk.answers.invalidate(id.0);
    let deleted = deleted?;
    write_object(reply.body(), |object| {
        object.text("message", "All portfolio data has been deleted.");
        object.object("deleted", |object| {
            object.count("holdings", deleted.holdings as usize);
            object.count("positions", deleted.positions as usize);
            object.count("pnl_snapshots", deleted.pnl_snapshots as usize);
        });
    });
    reply.send(200, JSON, &[("Cache-Control", "no-store")]);
    Ok(())
}
