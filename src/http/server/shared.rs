//! State that all connections of a server share: the service, settings, counters, and limits over
//! all connections together. Used on the edge; nothing here waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;

use super::connection_table::ConnectionTable;
use super::places::{Place, PlaceLimits, Places};
use super::stats::HttpStats;
use super::streams::Streams;
use crate::http::connection::backpressure::Backpressure;
use crate::http::message::request::Peer;
use crate::http::serve::Serve;
use crate::http::settings::HttpSettings;

/// The state shared by all connections of a server.
pub struct Shared<S> {
    pub service: S,
    settings: ArcSwap<HttpSettings>,
    /// Incremented with each change of the settings, so that connections notice a change cheaply.
    generation: AtomicU64,
    pub slots: Arc<ConnectionTable>,
    pub stats: HttpStats,
    /// Output that clients have not read yet.
    pub unread: Backpressure,
    /// Open connections by client network.
    places: Arc<Places>,
    pub streams: Streams,
    pub(crate) draining: AtomicBool,
    /// The drain is over: a connection that still waits for a slot is dropped.
    pub(crate) ended: AtomicBool,
    /// The accept loop still runs.
    pub(crate) accepting: AtomicBool,
}

impl<S: Serve> Shared<S> {
    pub(crate) fn new(service: S, settings: &HttpSettings, slots: Arc<ConnectionTable>) -> Self {
        Self {
            stats: HttpStats::new(service.kinds()),
            service,
            settings: ArcSwap::from_pointee(settings.clone()),
            generation: AtomicU64::new(0),
            slots,
            unread: Backpressure::default(),
            places: Arc::default(),
            streams: Streams::default(),
            draining: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            accepting: AtomicBool::new(true),
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
    pub fn generation(&self) -> u64 {
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

    pub(crate) fn draining(&self) -> &AtomicBool {
        &self.draining
    }

    /// Counts a connection of `peer`; `None` if its network is at the limit.
    pub(crate) fn place(&self, peer: Peer) -> Option<Place> {
        let settings = self.settings();
        // At least a tenth of all connections is left to other networks.
        let cap = self.slots.cap();
        let max = settings.connections_per_address_max.min(cap - cap / 10);
        let address = match peer {
            Peer::Ip(address) if max > 0 && !peer.is_trusted(&settings.trusted_proxies) => {
                Some(address)
            }
            _ => None,
        };
        // The table limits them all.
        let limits = PlaceLimits { all: usize::MAX, of_a_network: max };
        self.places.take(address, limits).ok()
    }
}
