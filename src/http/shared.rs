//! What the connections of a server share: the service, its settings, counters, and the bounds that
//! hold for all of them together. Read and changed on the edge; nothing here waits.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Serve;
use super::request::Peer;
use super::slots::Slots;
use super::stats::HttpStats;
use crate::config::HttpSettings;

/// Output waiting for slow readers, all connections together: past it the slowest lose.
pub const UNREAD_OUTPUT_TOTAL_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What all connections of a server share.
pub struct Shared<S> {
    pub service: S,
    pub settings: HttpSettings,
    pub slots: Arc<Slots>,
    pub stats: HttpStats,
    pub unread_output_bytes: AtomicUsize,
    per_address: Mutex<HashMap<IpAddr, usize>>,
    pub(super) draining: AtomicBool,
    /// The drain is over; whoever still waits for a slot gets none.
    pub(super) ended: AtomicBool,
    pub(super) accepting: AtomicBool,
}

impl<S: Serve> Shared<S> {
    pub(super) fn new(service: S, settings: &HttpSettings, slots: Arc<Slots>) -> Self {
        Self {
            stats: HttpStats::new(service.kinds()),
            service,
            settings: settings.clone(),
            slots,
            unread_output_bytes: AtomicUsize::new(0),
            per_address: Mutex::new(HashMap::new()),
            draining: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            accepting: AtomicBool::new(true),
        }
    }
}

impl<S> Shared<S> {
    /// Whether connections are to end after their next answer.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(super) fn draining(&self) -> &AtomicBool {
        &self.draining
    }
}

/// A share of the output that waits for slow clients, summed over all connections.
pub struct UnreadOutput<S> {
    shared: Arc<Shared<S>>,
    bytes: usize,
}

impl<S> UnreadOutput<S> {
    /// `None` when everybody together holds too much.
    pub fn hold(shared: &Arc<Shared<S>>, bytes: usize) -> Option<Self> {
        let total = shared.unread_output_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let held = Self { shared: Arc::clone(shared), bytes };
        (total <= UNREAD_OUTPUT_TOTAL_BYTES_MAX).then_some(held)
    }
}

impl<S> Drop for UnreadOutput<S> {
    fn drop(&mut self) {
        self.shared.unread_output_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// One connection's share of what its address may have open.
pub struct AddressPlace<S> {
    shared: Arc<Shared<S>>,
    address: Option<IpAddr>,
}

impl<S> AddressPlace<S> {
    /// `None` when the address has as many as it may.
    pub fn take(shared: &Arc<Shared<S>>, peer: Peer) -> Option<Self> {
        let max = shared.settings.connections_per_address_max;
        let address = match peer {
            Peer::Ip(address) if max > 0 && !shared.settings.trusted_proxies.contains(&address) => {
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
