//! Replies that a handler writes itself, each in one way.
//!
//! Runs on the edge. Never waits.

use serde::Serialize;

use crate::api::call::{Call, Handled};
use crate::http::document::coding::etag;
use crate::http::document::variants::{CachePolicy, JSON};
use crate::http::{Problem, PublishedJson, Response};
use crate::views::values;

/// Header of replies that must not be cached: reports of a change, or the state of an instant.
pub(super) const NO_STORE: (&str, &str) = ("Cache-Control", "no-store");

/// Headers of stored data: the client may keep it and must revalidate it each time.
pub(super) const KEPT: [(&str, &str); 2] = [
    ("Cache-Control", "private, no-cache"),
    ("Vary", "Authorization, Cookie"),
];

/// Sends `view` with `Cache-Control: no-store`.
pub(super) fn reply_with(status: u16, view: &impl Serialize, response: &mut Response<'_>) {
    values::write(response.body(), view);
    response.send(status, JSON, &[NO_STORE]);
}

/// Sends the JSON in the body of `response` with the `ETag` `etag`, after the preconditions.
pub(super) fn send_tagged(
    call: &Call<'_>,
    etag: &str,
    headers: &[(&str, &str)],
    response: &mut Response<'_>,
) -> Handled {
    let verdict = call.request.preconditions().judge(Some(etag.as_bytes()))?;
    response.send(verdict.status(), JSON, &[&[("ETag", etag)], headers].concat());
    Ok(())
}

/// Sends the prepared response of what is published; false if nothing is.
#[inline(always)] // Three callers, one of them the hottest route: a call costs it 25 instructions.
pub(super) fn send_published(
    slot: &PublishedJson,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Result<bool, Problem> {
    let request = call.request;
    let published = slot.load();
    let Some(published) = published.as_deref() else {
        return Ok(false);
    };
    response.send_document(published.select(request.accept_encoding(), request.preconditions())?);
    Ok(true)
}

/// Sends `view` as of this instant, with its `ETag`.
pub(super) fn show(view: &impl Serialize, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    values::write(response.body(), view);
    send_tagged(call, &etag(response.written()), &[NO_STORE], response)
}

/// Headers of an answer that a request makes in place of a published document.
pub(super) const OF_ALL_CODINGS: [(&str, &str); 2] = [
    ("Cache-Control", CachePolicy::JSON.cache_control),
    ("Vary", CachePolicy::JSON.vary),
];
