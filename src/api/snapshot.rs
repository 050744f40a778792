//! `GET /api/index/snapshot`: picks the prepared response and copies it out.
//!
//! Runs on the edge. Never waits, and allocates nothing once there is data.

use crate::api::call::{Call, Handled};
use crate::api::replies::OF_ALL_CODINGS;
use crate::api::replies::{send_published, send_tagged};
use crate::api::state::State;
use crate::http::document::coding::etag;
use crate::http::{Problem, Response};

/// Never waits, and allocates nothing once there is data.
pub(crate) fn read(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    if state.snapshot.is_outlived(call.request.arrived_mono_ms)
        && let Some(published) = state.snapshot.load().as_deref()
    {
        let json = aged(published.json());
        let tag = etag(&json);
        response.body().extend_from_slice(&json);
        return send_tagged(call, &tag, &OF_ALL_CODINGS, response);
    }
    if send_published(&state.snapshot, call, response)? {
        return Ok(());
    }
    let detail = "No index data has arrived yet.";
    Err(Problem::unavailable("snapshot_not_ready", detail, 1))
}

/// The snapshot as it is when no price in it is fresh any more. In texts quotation marks are
/// escaped, so only the member is found.
pub(super) fn aged(json: &[u8]) -> Vec<u8> {
    const FRESH: &[u8] = b"stale\":false";
    let mut aged = Vec::with_capacity(json.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(json, FRESH) {
        aged.extend_from_slice(&json[from..at]);
        aged.extend_from_slice(b"stale\":true");
        from = at + FRESH.len();
    }
    aged.extend_from_slice(&json[from..]);
    aged
}
