//! Streams of a server: how many may be open, and their counters.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::places::{Full, Place, PlaceLimits, Places};
use crate::http::settings::HttpSettings;
use crate::ops::{Counter, Durations};

/// The streams of a server.
#[derive(Debug)]
pub struct Streams {
    places: Arc<Places>,
    fan_out_mono_ms: AtomicU64,
    pub stats: StreamStats,
}

/// Counters of streams.
#[derive(Debug)]
pub struct StreamStats {
    /// Frames sent, without heartbeats.
    pub frames: Counter,
    pub heartbeats: Counter,
    /// Bytes of frames and heartbeats.
    pub bytes: Counter,
    /// Frames that a client did not get because a newer one was there when it could be sent.
    pub conflated: Counter,
    /// Streams refused at a limit.
    pub refused: Counter,
    /// Streams ended because the client read too slowly.
    pub slow_cuts: Counter,
    /// Streams ended because unread output exceeded its limit.
    pub crowded_cuts: Counter,
    /// Streams ended because the client sent too much.
    pub input_cuts: Counter,
    /// From the news of a change to the last wake-up, in one series.
    pub fan_out: Durations,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            places: Arc::default(),
            fan_out_mono_ms: AtomicU64::new(0),
            stats: StreamStats {
                frames: Counter::new(),
                heartbeats: Counter::new(),
                bytes: Counter::new(),
                conflated: Counter::new(),
                refused: Counter::new(),
                slow_cuts: Counter::new(),
                crowded_cuts: Counter::new(),
                input_cuts: Counter::new(),
                fan_out: Durations::new(1),
            },
        }
    }
}

impl Streams {
    /// Open streams.
    pub fn open(&self) -> usize {
        self.places.open()
    }

    /// Places that they take.
    pub fn taken(&self) -> usize {
        self.places.taken()
    }

    /// When the thread that wakes streams was last seen at work, by the monotonic clock.
    pub fn fan_out_mono_ms(&self) -> u64 {
        self.fan_out_mono_ms.load(Ordering::Relaxed)
    }

    pub(super) fn saw_fan_out(&self, now_mono_ms: u64) {
        self.fan_out_mono_ms.store(now_mono_ms, Ordering::Relaxed);
    }

    /// Counts one more stream, which takes `count` places, of a client at `address`. Programs of
    /// this machine and trusted proxies are not limited by address.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn take(
        &self,
        address: Option<IpAddr>,
        count: usize,
        settings: &HttpSettings,
    ) -> Result<Place, Full> {
        let is_limited = |address: &IpAddr| {
            settings.streams_per_address_max > 0
                && !address.is_loopback()
                && !settings.trusted_proxies.contains(address)
        };
        // At least a tenth of all connections is left to requests.
        let cap = settings.connections_max;
        let limits = PlaceLimits {
            all: settings.streams_max.min(cap - cap / 10),
            of_a_network: settings.streams_per_address_max,
        };
        let taken = self.places.take(address.filter(is_limited), count, limits);
        if taken.is_err() {
            self.stats.refused.increment();
        }
        taken
    }
}
