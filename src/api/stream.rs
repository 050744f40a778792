//! `GET /api/index/stream`: the snapshot as server-sent events, whole at first and after each
//! change, and with `symbols` also their quotes. The id of a snapshot's event is the content hash
//! in its ETag, so a client that comes back with the id of the current snapshot gets nothing until
//! the next change. Quotes have no id: a client that comes back gets them all.

use std::net::IpAddr;
use std::sync::Arc;

use crate::api::call::{Call, Handled};
use crate::api::choices::{Member, StreamClient};
use crate::api::event_streams::EventStreams;
use crate::api::query::{Decoded, values};
use crate::api::state::State;
use crate::api::symbols::symbols;
use crate::auth::ApiKey;
use crate::base::limiter::{network, site};
use crate::base::{Clock, Network};
use crate::http::document::coding::ETAG_HASH_BYTES;
use crate::http::document::events::CodedFrame;
use crate::http::document::negotiate::{Coding, stream_coding};
use crate::http::{
    Frame, Frames, Group, Problem, Request, Response, StreamsFull, Taken, Verdict, WantedStream,
};

/// `Retry-After` at the limit of streams. Streams live for an hour, but some end sooner.
const RETRY_AFTER_S: u64 = 10;

/// Places that a stream with quotes takes among all streams and among those of its address.
const QUOTE_STREAM_PLACES: usize = 2;

/// Never waits.
pub(super) fn read(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let request = call.request;
    let query = call.query();
    let symbols = match values(query, b"symbols").next() {
        Some(_) => Some(symbols(query)?),
        None => None,
    };
    // A stream has no state for an `ETag`.
    if request.preconditions().judge(None)? == Verdict::NotModified {
        response.body();
        response.send(304, "", &[("Cache-Control", "no-store, no-transform")]);
        return Ok(());
    }
    let coding = stream_coding(request.accept_encoding());
    let streams = &state.event_streams;
    let address = request.client_address();
    let mut events = Events {
        streams: Arc::clone(streams),
        coding,
        seen_tag: last_event(request),
        seen_number: None,
        quotes: None,
        key: call.key().map(|key| (Arc::clone(key), state.clock.clone())),
    };
    let places = if symbols.is_some() {
        QUOTE_STREAM_PLACES
    } else {
        1
    };
    let choices_max = response.settings.stream_choices_max;
    let trusted = &response.settings.trusted_proxies;
    let is_limited =
        |client: &IpAddr| !client.is_loopback() && !Network::any_contains(trusted, *client);
    let asker = StreamClient {
        client: address.map(network),
        site: address.filter(is_limited).map(site),
        is_user: symbols.is_some() && (call.key().is_some() || state.auth.recognises(request)),
    };
    let wanted = WantedStream {
        coding,
        address,
        places,
        opening: &streams.opening,
    };
    let opened = response.stream(wanted, || {
        if let Some(symbols) = symbols {
            let member = streams
                .choices
                .join(state.quote_source(), symbols, asker, choices_max)?;
            events.quotes = Some((member, None));
        }
        Ok(Box::new(events))
    });
    opened.map_err(|StreamsFull| {
        let detail = "Too many streams are open, of all clients or of this address, or with too \
                      many different choices of symbols.";
        Problem::unavailable("streams_full", detail, RETRY_AFTER_S)
    })
}

type Tag = [u8; 2 * ETAG_HASH_BYTES];

/// The id of the last event that the client has: by header, or by query, because a browser cannot
/// set the header of its first request and some clients never set it. A text that cannot be an id
/// counts as absent.
fn last_event(request: &Request<'_>) -> Option<Tag> {
    let mut sent = request.headers("last-event-id");
    match (sent.next(), sent.next()) {
        (Some(id), None) if !id.is_empty() => id.try_into().ok(),
        (Some(_), Some(_)) => None,
        _ => last_event_in(request.query().unwrap_or_default()),
    }
}

/// Clients name it `lastEventId`, `Last-Event-ID`, `last_event_id` and so on. The last one counts:
/// clients that reconnect append theirs to an address that may name an older one.
fn last_event_in(query: &[u8]) -> Option<Tag> {
    let mut ids = query.split(|byte| *byte == b'&').filter_map(|pair| {
        let at = memchr::memchr(b'=', pair)?;
        let id = &pair[at + 1..];
        (!id.is_empty() && is_last_event_id(&pair[..at])).then_some(id)
    });
    let id: Result<Vec<u8>, _> = Decoded(ids.next_back()?).collect();
    id.ok()?.as_slice().try_into().ok()
}

/// Whether a name is `lasteventid`, in any case and with any hyphens and underscores.
fn is_last_event_id(name: &[u8]) -> bool {
    let bytes = Decoded(name).filter_map(Result::ok);
    let letters = bytes.filter(|byte| !matches!(byte, b'-' | b'_'));
    letters
        .map(|byte| byte.to_ascii_lowercase())
        .eq(*b"lasteventid")
}

/// The events for one client: the snapshot's, and those of chosen quotes.
struct Events {
    streams: Arc<EventStreams>,
    coding: Coding,
    /// The tag of the snapshot that the client has.
    seen_tag: Option<Tag>,
    seen_number: Option<u64>,
    /// The choice of quotes, and the state of it that the client has.
    quotes: Option<(Member, Option<u64>)>,
    /// The API key with which the stream was opened; it ends with the key.
    key: Option<(Arc<ApiKey>, Clock)>,
}

impl Events {
    fn newest_snapshot(&mut self) -> Option<Taken> {
        let current = self.streams.snapshot.load();
        let current = current.as_deref()?;
        let tag: Tag = current.tag().as_bytes().try_into().ok()?;
        let number = current.number();
        let seen_number = self.seen_number.replace(number);
        if self.seen_tag.replace(tag) == Some(tag) {
            return None;
        }
        let skipped = seen_number.map_or(0, |seen| (number - seen).saturating_sub(1));
        Some(Taken {
            frame: current.event()?.of(self.coding).clone(),
            second: None,
            skipped,
        })
    }
}

impl Frames for Events {
    fn group(&self) -> Group {
        self.quotes
            .as_ref()
            .map_or(Group::COMMON, |(member, _)| member.choice.group)
    }

    fn has_ended(&self) -> Option<bool> {
        self.key
            .as_ref()
            .map(|(key, clock)| key.has_ended(clock.now_ms()))
    }

    fn newest(&mut self) -> Option<Taken> {
        let coding = self.coding;
        let quotes = self.quotes.as_mut();
        let quotes = quotes.and_then(|(member, seen)| member.choice.newest(seen, coding));
        match (self.newest_snapshot(), quotes) {
            (Some(snapshot), Some(quotes)) => Some(Taken {
                second: Some(quotes.frame),
                skipped: snapshot.skipped + quotes.skipped,
                ..snapshot
            }),
            (snapshot, quotes) => snapshot.or(quotes),
        }
    }

    fn heartbeat(&self) -> Frame {
        self.streams.heartbeat.of(self.coding).clone()
    }

    fn farewell(&self, retry_ms: u64) -> Frame {
        // Without an empty line, like the opening: it counts from its line end on.
        CodedFrame::stored(format!("retry: {retry_ms}\n").as_bytes())
            .of(self.coding)
            .clone()
    }
}
