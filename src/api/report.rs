//! Replies that report what was done and must not be cached.

use serde::Serialize;

use crate::http::Response;
use crate::http::message::response::JSON;
use crate::views::json;

/// Sends `view` with `Cache-Control: no-store`.
pub(super) fn reply_with(status: u16, view: &impl Serialize, reply: &mut Response<'_>) {
    json::write(reply.body(), view);
    reply.send(status, JSON, &[("Cache-Control", "no-store")]);
}
