//! What the connections of a server share: the service, its settings, counters, and the bounds that
//! hold for all of them together. Read and changed on the edge; nothing here waits.

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

/// What all connections of a server share.
pub struct Shared<S> {
    pub service: S,
    settings: ArcSwap<HttpSettings>,
    /// Grows with each change of the settings, so that connections need not look at them each time.
    generation: AtomicU64,
    pub slots: Arc<ConnectionTable>,
    pub stats: HttpStats,
    /// Output that waits for slow readers.
    pub unread: Backpressure,
    per_address: Mutex<HashMap<IpAddr, usize>>,
    pub(crate) draining: AtomicBool,
    /// The drain is over; whoever still waits for a slot gets none.
    pub(crate) ended: AtomicBool,
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
    /// The settings in force. Never inlined: the load takes a thread-local's address, which
    /// must not outlive a wait of the caller.
    #[inline(never)]
    pub fn settings(&self) -> Arc<HttpSettings> {
        self.settings.load_full()
    }

    /// Counts the changes of the settings; one relaxed load.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Puts other limits in force, for open connections from their next request on. What
    /// sockets, threads and buffers were made for stays: the address, the edge's threads, the size
    /// of a head, and a table of connections that can be used less but does not grow.
    pub fn change_settings(&self, wanted: &HttpSettings) {
        let made_for = self.settings();
        self.slots.set_cap(wanted.connections_max);
        self.settings.store(Arc::new(HttpSettings {
            listen: made_for.listen.clone(),
            edge_threads: made_for.edge_threads,
            head_bytes_max: made_for.head_bytes_max,
            headers_max: made_for.headers_max,
            connections_max: self.slots.cap(),
            ..wanted.clone()
        }));
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether connections are to end after their next answer.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn draining(&self) -> &AtomicBool {
        &self.draining
    }
}

/// One connection's share of what its address may have open; of IPv6, its network.
pub struct AddressPlace<S> {
    shared: Arc<Shared<S>>,
    address: Option<IpAddr>,
}

impl<S> AddressPlace<S> {
    /// `None` when the address has as many as it may.
    pub fn take(shared: &Arc<Shared<S>>, peer: Peer) -> Option<Self> {
        let settings = shared.settings();
        // A tenth of all is left to others, however few there may be.
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
