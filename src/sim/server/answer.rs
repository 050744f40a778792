//! What a route of the simulator answers, before faults are applied and it becomes a reply.

use super::json::Json;
use crate::sim::broker_a::ticker::Ticker;

/// What a route answers, before faults are applied.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content: Content,
    /// The caller did something wrong.
    pub(crate) rejected: bool,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Content {
    Json(Json),
    /// With its media type.
    Text(&'static str, Vec<u8>),
    /// Elsewhere.
    Moved(String),
    /// Always compressed, whatever the request accepts; with its media type.
    Gzipped(&'static str, Vec<u8>),
    /// The key that accepts a WebSocket, and what is sent on it.
    Ticker(String, Ticker),
}

impl Answer {
    pub(crate) fn ok(json: Json) -> Self {
        Self { status: 200, content: Content::Json(json), rejected: false }
    }

    pub(crate) fn rejected(status: u16, json: Json) -> Self {
        Self { status, content: Content::Json(json), rejected: true }
    }

    pub(crate) fn text(status: u16, media_type: &'static str, text: &str) -> Self {
        let content = Content::Text(media_type, text.as_bytes().to_vec());
        Self { status, content, rejected: status >= 400 }
    }
}
