//! `GET /api/index/snapshot`: picks the prepared response and copies it out.

use super::call::Call;
use super::state::State;
use crate::http::{Problem, Response};

/// Never waits, and allocates nothing once there is data.
pub fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let request = &call.request;
    let published = state.snapshot.load();
    let Some(published) = published.as_deref() else {
        let detail = "No index data has arrived yet.";
        return Err(Problem::unavailable("snapshot_not_ready", detail, 1));
    };
    reply.send_document(published.select(request.accept_encoding(), request.preconditions())?);
    Ok(())
}
