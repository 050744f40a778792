//! `GET /api/health`: what the scheduler last saw, made ahead of time.

use super::call::Call;
use super::state::State;
use crate::http::{Problem, Response, Verdict};

/// Never waits.
pub fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let report = state.health.load();
    let Some(report) = report.as_deref() else {
        return Err(Problem::unavailable("starting", "The service is starting.", 1));
    };
    let given = call.request.preconditions();
    // It has no tag: it changes each second. One of a service that is down is no success.
    if report.status() == 200 && given.judge(None)? == Verdict::NotModified {
        reply.send(304, "", &[("Cache-Control", "no-store")]);
    } else {
        reply.send_document(report);
    }
    Ok(())
}
