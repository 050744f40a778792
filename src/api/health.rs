//! `GET /api/health`: what the scheduler last saw, made ahead of time.

use super::{Call, State};
use crate::http::{Problem, Reply};

/// Never waits.
pub fn read(state: &State, _: &Call<'_>, reply: &mut Reply<'_>) -> Result<(), Problem> {
    match state.health.load().as_deref() {
        Some(report) => {
            reply.prepared(report);
            Ok(())
        }
        None => Err(Problem::unavailable("starting", "The service is starting.", 1)),
    }
}
