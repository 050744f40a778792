//! `GET /api/index/stream`: the snapshot as server-sent events, whole at first and after each
//! change. An event's id is the content hash in the snapshot's ETag, so a client that comes back
//! with the id of the current snapshot gets nothing until the next change.

use std::sync::Arc;

use super::call::Call;
use super::query::{invalid, once, values};
use super::state::State;
use crate::http::document::coding::ETAG_HASH_BYTES;
use crate::http::document::events::{CodedFrame, event};
use crate::http::document::negotiate::{Coding, stream_coding};
use crate::http::{
    Frame, Frames, Problem, PublishedJson, Request, Response, StreamsFull, Taken, Verdict,
};

/// Name of the event that carries the snapshot.
pub const SNAPSHOT_EVENT: &str = "snapshot";

/// Sent at once, so that proxies and clients see bytes before the first data. Clients come back
/// three seconds after a connection is lost.
const OPENING: &[u8] = b"retry: 3000\n: bhav\n\n";

/// An event and not a comment: browsers do not show comments to scripts, so these could not tell a
/// dead line from a quiet one.
const HEARTBEAT_EVENT: &str = "beat";

/// When to try again at the limit of streams. They live for an hour, but readers come and go.
const RETRY_AFTER_S: u64 = 10;

/// What all streams share.
pub struct EventStreams {
    snapshot: Arc<PublishedJson>,
    opening: CodedFrame,
    heartbeat: CodedFrame,
}

impl EventStreams {
    /// Streams of `snapshot`, which is published as [`SNAPSHOT_EVENT`].
    pub fn of(snapshot: Arc<PublishedJson>) -> Self {
        Self {
            snapshot,
            opening: CodedFrame::opening(OPENING),
            heartbeat: CodedFrame::stored(&event(HEARTBEAT_EVENT, None, b"{}")),
        }
    }
}

/// Never waits.
pub fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let request = &call.request;
    let query = request.query().unwrap_or_default();
    if values(query, b"symbols").next().is_some() {
        let message = "Streams carry the snapshot only; ask live-prices for quotes.";
        return Err(invalid("symbols", message));
    }
    // A stream has no state that could be named.
    if request.preconditions().judge(None)? == Verdict::NotModified {
        reply.body();
        reply.send(304, "", &[("Cache-Control", "no-store, no-transform")]);
        return Ok(());
    }
    let coding = stream_coding(request.accept_encoding());
    let streams = &state.event_streams;
    let frames = SnapshotFrames {
        streams: Arc::clone(streams),
        coding,
        seen_tag: last_event(request),
        seen_number: None,
    };
    let opened = reply.stream(coding, request.client_address(), &streams.opening, Box::new(frames));
    opened.map_err(|StreamsFull| {
        let detail = "Too many streams are open, of all clients or of this address.";
        Problem::unavailable("streams_full", detail, RETRY_AFTER_S)
    })
}

type Tag = [u8; 2 * ETAG_HASH_BYTES];

/// The id of the last event that the client has: by header, or by query, because a browser cannot
/// set the header of its first request. One that cannot be an id is like one that is not there.
fn last_event(request: &Request<'_>) -> Option<Tag> {
    let mut sent = request.headers("last-event-id");
    match (sent.next(), sent.next()) {
        (Some(id), None) => id.try_into().ok(),
        (Some(_), Some(_)) => None,
        (None, _) => {
            let query = request.query().unwrap_or_default();
            let id = once(query, b"last_event_id").ok().flatten()?;
            id.as_bytes().try_into().ok()
        }
    }
}

/// The snapshot's events for one client.
struct SnapshotFrames {
    streams: Arc<EventStreams>,
    coding: Coding,
    /// The tag that the client has.
    seen_tag: Option<Tag>,
    seen_number: Option<u64>,
}

impl Frames for SnapshotFrames {
    /// Never inlined: the guard is bound to the thread, and the caller may park.
    #[inline(never)]
    fn newest(&mut self) -> Option<Taken> {
        let current = self.streams.snapshot.load();
        let current = current.as_deref()?;
        let tag: Tag = current.tag().as_bytes().try_into().ok()?;
        let number = current.number();
        let seen_number = self.seen_number.replace(number);
        if self.seen_tag.replace(tag) == Some(tag) {
            return None;
        }
        let skipped = seen_number.map_or(0, |seen| (number - seen).saturating_sub(1));
        Some(Taken { frame: current.event()?.of(self.coding).clone(), skipped })
    }

    fn heartbeat(&self) -> Frame {
        self.streams.heartbeat.of(self.coding).clone()
    }

    fn farewell(&self, retry_ms: u64) -> Frame {
        CodedFrame::stored(format!("retry: {retry_ms}\n\n").as_bytes()).of(self.coding).clone()
    }
}
