//! State that all connections of a server share: the service and the trait through which it is
//! called, settings, counters, and limits over all connections together. Used on the edge; nothing
//! here waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;

use crate::http::connection::backpressure::{Backpressure, Cut};
use crate::http::message::request::{Peer, Request};
use crate::http::message::upload::{Upload, Uploads};
use crate::http::server::connection_table::ConnectionTable;
use crate::http::server::handover::Mailboxes;
use crate::http::server::places::{Place, Places, Streams};
use crate::http::settings::{BodyLimits, HttpSettings};
use crate::http::{Group, Problem, Response};
use crate::ops::histogram::DurationCounts;
use crate::ops::{Counter, Durations, RefusalLines, Sharded};
use crate::rt::News;

/// Which streams may send something: those of [`Group::COMMON`], and all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub(crate) common: bool,
    pub(crate) others: bool,
}

/// A service that answers requests. Called on an edge worker, from a coroutine with 64 KiB of
/// stack.
pub trait Serve: Send + Sync + 'static {
    /// Number of kinds of requests (routes) in the statistics. They are numbered from 1, and
    /// [`Response::is_of_kind`] sets the kind of a request.
    fn kinds(&self) -> usize {
        0
    }

    /// Signals that the content of streams has changed; `None` if the service has no streams.
    fn news(&self) -> Option<News> {
        None
    }

    /// Updates the content of streams that no other thread updates, and calls `wake` for each group
    /// of streams that is `due` and has something new, as soon as it has it. Returns whether some
    /// streams send content that changes without news. The thread `fan-out` calls it, so it may
    /// take some milliseconds.
    fn refresh_streams(&self, due: Due, wake: &mut dyn FnMut(Group)) -> bool {
        if due.common {
            wake(Group::COMMON);
        }
        false
    }

    /// Header lines, each with its line end, for every response to a request from this origin,
    /// including refusals by the HTTP server. Called before [`Self::serve`]; must not park.
    fn lines_for(&self, _origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        None
    }

    /// Limits of this request's body. Called when its head, which announces a body, has arrived and
    /// nothing of the body is collected; never for a request without one. Must not park.
    fn body_limits(&self, _head: &Request<'_>, settings: &HttpSettings) -> BodyLimits {
        settings.body_limits()
    }

    /// Whether it has pages for people, so that a browser's request which the HTTP server refuses
    /// is answered by a page too.
    fn has_pages(&self) -> bool {
        false
    }

    /// Called when every connection is taken: whether the one that has been silent for longest ends
    /// for the new one. Otherwise that waits.
    fn makes_room(&self) -> bool {
        false
    }

    /// Whether the file that this head announces may be sent, and the number of its user. Called
    /// for a body of [`BodyKind::Upload`](crate::http::BodyKind) before any of it is collected;
    /// must not park.
    ///
    /// # Errors
    /// The refusal. The connection ends after it, unless the file has arrived with its head.
    fn admit(&self, _head: &Request<'_>) -> Result<i64, Problem> {
        Err(Problem::internal())
    }

    /// Sends the refusal of [`admit`](Self::admit) where the connection goes on.
    fn refuse_upload(&self, _head: &Request<'_>, problem: &Problem, response: &mut Response<'_>) {
        response.problem(problem);
    }

    /// Sends exactly one response to an admitted request, whose file has arrived. As
    /// [`serve`](Self::serve) otherwise.
    fn serve_upload<'a>(
        &'a self,
        _request: &Request<'_>,
        _upload: Upload,
        response: &mut Response<'a>,
    ) {
        response.problem(&Problem::internal());
    }

    /// Sends exactly one response through `response`. May park (for a lane); must not block.
    fn serve<'a>(&'a self, request: &Request<'_>, response: &mut Response<'a>);
}

/// The state shared by all connections of a server.
pub struct Shared<S> {
    pub service: S,
    settings: ArcSwap<HttpSettings>,
    /// Incremented with each change of the settings, so that connections notice a change cheaply.
    generation: AtomicU64,
    pub slots: Arc<ConnectionTable>,
    pub stats: HttpStats,
    /// Output that clients have not read yet.
    pub unread: Arc<Backpressure>,
    pub uploads: Arc<Uploads>,
    /// Open connections by client network.
    places: Arc<Places>,
    pub streams: Streams,
    /// The threads that write streams.
    pub(crate) mailboxes: Mailboxes,
    pub(crate) draining: AtomicBool,
    /// The drain is over: a connection that still waits for a slot is dropped.
    pub(crate) ended: AtomicBool,
    /// Accept loops that still run: one for each listening socket.
    pub(crate) accepting: AtomicUsize,
}

impl<S: Serve> Shared<S> {
    pub(crate) fn new(service: S, settings: &HttpSettings, slots: Arc<ConnectionTable>) -> Self {
        Self {
            stats: HttpStats::new(service.kinds()),
            service,
            settings: ArcSwap::from_pointee(settings.clone()),
            generation: AtomicU64::new(0),
            slots,
            unread: Arc::default(),
            uploads: Arc::default(),
            places: Arc::default(),
            streams: Streams::default(),
            mailboxes: Mailboxes::default(),
            draining: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            accepting: AtomicUsize::new(0),
        }
    }
}

impl<S> Shared<S> {
    /// The settings in force. Never inlined, so that the compiler cannot keep the address of
    /// arc-swap's thread-local across a suspension point of the caller.
    #[inline(never)]
    pub fn settings(&self) -> Arc<HttpSettings> {
        self.settings.load_full()
    }

    /// Number of changes of the settings so far. Costs one relaxed load.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Applies new settings, to open connections from their next request on. The address, the
    /// number of edge threads and the limits of heads stay as they are, because sockets, threads
    /// and buffers were made for them. The connection limit cannot exceed the table's size.
    pub fn change_settings(&self, wanted: &HttpSettings) {
        let current = self.settings();
        self.slots.set_cap(wanted.connections_max);
        self.settings.store(Arc::new(HttpSettings {
            listen: current.listen.clone(),
            edge_threads: current.edge_threads,
            head_bytes_max: current.head_bytes_max,
            headers_max: current.headers_max,
            connections_max: self.slots.cap(),
            ..wanted.clone()
        }));
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the server drains: each connection ends after its next response.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Counts and logs a connection that was cut off with so much unread output.
    pub(crate) fn count_cut(&self, why: Cut, unread_bytes: usize) {
        match why {
            Cut::Slow => self.stats.write_timeouts.increment(),
            Cut::Crowded => self.stats.unread_cuts.increment(),
        }
        self.unread.log_cut(why, unread_bytes, self.slots.now_ms());
    }

    /// Counts a connection of `peer`; `None` if its network is at the limit.
    pub(crate) fn place(&self, peer: Peer) -> Option<Place> {
        let (address, limits) = self.settings().connection_limits(self.slots.cap(), peer);
        self.places.take(address, 1, limits).ok()
    }
}

// ---- Stats
//
// Counters of the HTTP server, for health and metrics.

/// Classes of status codes.
pub(crate) const STATUS_CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// Counters of connections and requests.
#[derive(Debug, Default)]
pub struct HttpStats {
    pub accepted: Counter,
    pub accept_errors: Counter,
    /// How often accepting paused at the connection limit.
    pub accept_pauses: Counter,
    pub address_refusals: Counter,
    pub idle_closed: Counter,
    pub read_timeouts: Counter,
    /// Connections closed because the client read too slowly.
    pub write_timeouts: Counter,
    /// Connections closed because the unread output of all connections exceeded its limit and this
    /// one was the slowest.
    pub unread_cuts: Counter,
    pub handler_panics: Counter,
    pub client_errors: Counter,
    pub server_errors: Counter,
    /// Limits log lines about requests refused before a handler saw them.
    pub refusal_lines: RefusalLines,
    /// Requests whose handler was called, and requests refused before that.
    begun: Sharded,
    /// Time from the complete request to the complete response in the output buffer, by kind, then
    /// by status class.
    durations: Durations,
}

impl HttpStats {
    /// `kinds`: see [`Serve::kinds`].
    pub(crate) fn new(kinds: usize) -> Self {
        let durations = Durations::new((kinds + 1) * STATUS_CLASSES.len());
        Self {
            durations,
            ..Self::default()
        }
    }

    pub(crate) fn begin(&self) {
        self.begun.increment();
    }

    /// Counts one response. `kind` is 0 if the request is of no known kind.
    pub(crate) fn count(&self, kind: usize, status: u16, took_ns: u64) {
        match status {
            400..=499 => self.client_errors.increment(),
            500.. => self.server_errors.increment(),
            _ => {}
        }
        let class = usize::from((status / 100).clamp(2, 5) - 2);
        self.durations
            .record(kind * STATUS_CLASSES.len() + class, took_ns);
    }

    /// Durations of the requests of a kind, by class in the order of [`STATUS_CLASSES`].
    pub(crate) fn durations(&self, kind: usize) -> [DurationCounts; STATUS_CLASSES.len()] {
        let first = kind * STATUS_CLASSES.len();
        std::array::from_fn(|class| self.durations.read(first + class))
    }

    /// Requests being handled, including those that wait for a lane.
    pub(crate) fn in_flight(&self) -> u64 {
        // Read the ended ones first, so that the difference cannot be negative.
        let ended = self.durations.count();
        self.begun.value().saturating_sub(ended)
    }
}
