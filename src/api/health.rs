//! `GET /api/health`: the report that the scheduler last made. Prepared in advance.

use crate::api::call::{Call, Handled};
use crate::api::replies::NO_STORE;
use crate::api::state::State;
use crate::http::{Problem, Response, Verdict};

/// Never waits.
pub(super) fn read(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let report = state.health.load();
    let Some(report) = report.as_deref() else {
        return Err(Problem::unavailable("starting", "The service is starting.", 1));
    };
    let given = call.request.preconditions();
    // The report has no `ETag`, because it changes each second. If the service is down the answer
    // is no success, so preconditions do not apply.
    if report.status() == 200 && given.judge(None)? == Verdict::NotModified {
        response.send(304, "", &[NO_STORE]);
    } else {
        response.send_document(report);
    }
    Ok(())
}
