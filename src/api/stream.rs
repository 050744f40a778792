//! `GET /api/index/stream`: the snapshot as server-sent events, whole at first and after each
//! change, and with `symbols` their quotes beside it. The id of a snapshot's event is the content
//! hash in its ETag, so a client that comes back with the id of the current snapshot gets nothing
//! until the next change. Quotes have no id: a client that comes back gets them all.

mod choice;
mod choices;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::call::Call;
use super::query::{once, values};
use super::quotes::symbols;
use super::state::State;
use crate::base::network::{network, site};
use crate::http::document::coding::ETAG_HASH_BYTES;
use crate::http::document::events::{CodedFrame, event};
use crate::http::document::negotiate::{Coding, stream_coding};
use crate::http::{
    Frame, Frames, Problem, PublishedJson, Refreshed, Request, Response, Shows, StreamsFull, Taken,
    Verdict, WantedStream,
};
pub use choices::Choices;
use choices::{Asker, Member};

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

/// Places that a stream with quotes takes among all streams and among those of its address.
const QUOTE_STREAM_PLACES: usize = 2;

/// What all streams share.
pub struct EventStreams {
    snapshot: Arc<PublishedJson>,
    /// How many states of the snapshot had been published when streams were last woken.
    shown_states: AtomicU64,
    choices: Arc<Choices>,
    opening: CodedFrame,
    heartbeat: CodedFrame,
}

impl EventStreams {
    /// Streams of `snapshot`, which is published as [`SNAPSHOT_EVENT`].
    pub fn of(snapshot: Arc<PublishedJson>) -> Self {
        Self {
            choices: Arc::new(Choices::new(snapshot.news().clone())),
            shown_states: AtomicU64::new(0),
            snapshot,
            opening: CodedFrame::opening(OPENING),
            heartbeat: CodedFrame::stored(&event(HEARTBEAT_EVENT, None, b"{}")),
        }
    }

    /// Makes the events of quotes that have changed. On the thread `fan-out`.
    pub(super) fn refresh(&self, state: &State) -> Refreshed {
        // Of what is published and not of the counter, which is ahead for a moment: a walk in it
        // would show the state before.
        let states = self.snapshot.load().as_ref().map_or(0, |current| current.number() + 1);
        let snapshot_changed = self.shown_states.swap(states, Ordering::Relaxed) != states;
        let is_watching = self.choices.count() > 0;
        let quotes_changed = is_watching && self.choices.look(state);
        let changed = match (snapshot_changed, quotes_changed) {
            (true, _) => Some(Shows::Common),
            (false, true) => Some(Shows::Chosen),
            (false, false) => None,
        };
        Refreshed { changed, is_watching }
    }

    /// The choices of symbols that streams show quotes of.
    pub fn choices(&self) -> &Choices {
        &self.choices
    }
}

/// Never waits.
pub fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let request = &call.request;
    let query = request.query().unwrap_or_default();
    let symbols = match values(query, b"symbols").next() {
        Some(_) => Some(symbols(query)?),
        None => None,
    };
    // A stream has no state that could be named.
    if request.preconditions().judge(None)? == Verdict::NotModified {
        reply.body();
        reply.send(304, "", &[("Cache-Control", "no-store, no-transform")]);
        return Ok(());
    }
    let coding = stream_coding(request.accept_encoding());
    let streams = &state.event_streams;
    let address = request.client_address();
    let snapshot = SnapshotFrames {
        streams: Arc::clone(streams),
        coding,
        seen_tag: last_event(request),
        seen_number: None,
    };
    let places = if symbols.is_some() { QUOTE_STREAM_PLACES } else { 1 };
    let choices_max = reply.settings.stream_choices_max;
    let is_limited =
        |client: &IpAddr| !client.is_loopback() && !reply.settings.trusted_proxies.contains(client);
    let asker = Asker {
        client: address.map(network),
        site: address.filter(is_limited).map(site),
        is_user: symbols.is_some() && state.auth.recognises(request),
    };
    let wanted = WantedStream { coding, address, places, opening: &streams.opening };
    let opened = reply.stream(wanted, || match symbols {
        None => Ok(Box::new(snapshot)),
        Some(symbols) => {
            let member = streams.choices.join(state, symbols, asker, choices_max)?;
            Ok(Box::new(QuoteFrames { snapshot, member, seen: None }))
        }
    });
    opened.map_err(|StreamsFull| {
        let detail = "Too many streams are open, of all clients or of this address, or with too \
                      many different choices of symbols.";
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
        Some(Taken { frame: current.event()?.of(self.coding).clone(), second: None, skipped })
    }

    fn heartbeat(&self) -> Frame {
        self.streams.heartbeat.of(self.coding).clone()
    }

    fn farewell(&self, retry_ms: u64) -> Frame {
        CodedFrame::stored(format!("retry: {retry_ms}\n\n").as_bytes()).of(self.coding).clone()
    }
}

/// The snapshot's events and those of chosen quotes, for one client.
struct QuoteFrames {
    snapshot: SnapshotFrames,
    member: Member,
    /// State of the quotes that the client has.
    seen: Option<u64>,
}

impl Frames for QuoteFrames {
    fn shows(&self) -> Shows {
        Shows::Chosen
    }

    fn newest(&mut self) -> Option<Taken> {
        let quotes = self.member.choice().newest(&mut self.seen, self.snapshot.coding);
        match (self.snapshot.newest(), quotes) {
            (Some(snapshot), Some(quotes)) => Some(Taken {
                second: Some(quotes.frame),
                skipped: snapshot.skipped + quotes.skipped,
                ..snapshot
            }),
            (snapshot, quotes) => snapshot.or(quotes),
        }
    }

    fn heartbeat(&self) -> Frame {
        self.snapshot.heartbeat()
    }

    fn farewell(&self, retry_ms: u64) -> Frame {
        self.snapshot.farewell(retry_ms)
    }
}
