//! State that all connections of a server share: the service, settings, counters, and limits over
//! all connections together. Used on the edge; nothing here waits.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::connection_table::ConnectionTable;
use super::stats::HttpStats;
use crate::base::network::network;
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
    per_address: Mutex<HashMap<IpAddr, usize>>,
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
            per_address: Mutex::new(HashMap::new()),
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
}

/// One connection counted against the limit of its client network; uncounted on drop.
pub struct AddressPlace<S> {
    shared: Arc<Shared<S>>,
    address: Option<IpAddr>,
}

impl<S> AddressPlace<S> {
    /// Counts a connection; `None` if its network is at the limit.
    pub fn take(shared: &Arc<Shared<S>>, peer: Peer) -> Option<Self> {
        let settings = shared.settings();
        // At least a tenth of all connections is left to other networks.
        let cap = shared.slots.cap();
        let max = settings.connections_per_address_max.min(cap - cap / 10);
        let address = match peer {
            Peer::Ip(address) if max > 0 && !peer.is_trusted(&settings.trusted_proxies) => {
                let address = network(address);
                let mut open = shared.per_address.lock();
                let count = open.entry(address).or_insert(0);
                if *count >= max {
                    return None;
                }
                *count += 1;
                Some(address)
            }
            _ => None,
        };
        Some(Self { shared: Arc::clone(shared), address })
    }
}

impl<S> Drop for AddressPlace<S> {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut open = self.shared.per_address.lock();
        if let Some(count) = open.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&address);
            }
        }
    }
}
