//! State of the event streams: the snapshot's and the chosen quotes' events, the same
//! for all clients.
//!
//! The thread `fan-out` makes the events; those that write streams clone an `Arc` of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::api::choices::Choices;
use crate::api::quote_source::QuoteSource;
use crate::http::document::events::{CodedFrame, event};
use crate::http::{Due, Group, PublishedJson};

/// Name of the event that carries the snapshot.
pub(crate) const SNAPSHOT_EVENT: &str = "snapshot";

/// Sent at once, so that proxies and clients see bytes before the first data. Clients come back
/// three seconds after a connection is lost. No empty line follows, so `retry` belongs to the first
/// event: some clients (`httpx-sse`) make an empty event of a `retry` that stands alone.
pub(super) const OPENING: &[u8] = b"retry: 3000\n: bhav\n";

/// An event and not a comment, because browsers hide comments from scripts, which could then not
/// tell a dead connection from a quiet one.
pub(super) const HEARTBEAT_EVENT: &str = "beat";

/// State shared by all streams.
pub struct EventStreams {
    pub(super) snapshot: Arc<PublishedJson>,
    /// Number of states of the snapshot that were published when streams of the snapshot alone were
    /// last woken, and those with quotes.
    shown_states: [AtomicU64; 2],
    /// The choices of symbols whose quotes streams send.
    pub choices: Arc<Choices>,
    pub(super) opening: CodedFrame,
    pub(super) heartbeat: CodedFrame,
}

impl EventStreams {
    /// Streams of `snapshot`, which is published as [`SNAPSHOT_EVENT`].
    pub(crate) fn of(snapshot: Arc<PublishedJson>) -> Self {
        Self {
            choices: Arc::new(Choices::new(snapshot.news().clone())),
            shown_states: Default::default(),
            snapshot,
            opening: CodedFrame::opening(OPENING),
            heartbeat: CodedFrame::stored(&event(HEARTBEAT_EVENT, None, b"{}")),
        }
    }

    /// Wakes the streams that have something new, on the thread `fan-out`: first those that send
    /// the snapshot alone, then those with quotes, choice by choice as their events are made.
    /// Returns whether quotes may change without news.
    pub(super) fn refresh(
        &self,
        source: QuoteSource<'_>,
        due: Due,
        wake: &mut dyn FnMut(Group),
    ) -> bool {
        // The number of the published document, not the counter, which is ahead for a moment. A
        // walk in that moment would send the previous state.
        let states = self
            .snapshot
            .load()
            .as_ref()
            .map_or(0, |current| current.number() + 1);
        let [common, others] = &self.shown_states;
        if due.common && common.swap(states, Ordering::Relaxed) != states {
            wake(Group::COMMON);
        }
        if due.others {
            let is_new = others.swap(states, Ordering::Relaxed) != states;
            self.choices.look(source, is_new, wake);
        }
        self.choices.count() > 0
    }
}
