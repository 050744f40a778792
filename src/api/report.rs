//! Replies that say what was done, and are kept by nobody.

use serde::Serialize;

use crate::http::Response;
use crate::http::message::response::JSON;
use crate::views::json;

/// Sends `view`, which is of this moment alone.
pub(super) fn reply_with(status: u16, view: &impl Serialize, reply: &mut Response<'_>) {
    json::write(reply.body(), view);
    reply.send(status, JSON, &[("Cache-Control", "no-store")]);
}
