//! Open connections or streams, counted together and by client network.
//!
//! Used on the edge; the lock is held for a few instructions.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::base::limiter::network;
use crate::http::settings::{HttpSettings, PlaceLimits};
use crate::ops::{Counter, Durations};

/// Counts of open connections or streams.
#[derive(Debug, Default)]
pub(crate) struct Places {
    open: AtomicUsize,
    /// Places that they take.
    all: AtomicUsize,
    by_network: Mutex<HashMap<IpAddr, usize>>,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    All,
    Network,
}

impl Places {
    /// Number of open connections or streams.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Places that they take.
    pub(crate) fn taken(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// Counts one more connection or stream, which takes `count` places. They also count for the
    /// network of `address`, if it is given.
    ///
    /// # Errors
    /// [`Full`], and nothing is counted.
    pub(crate) fn take(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        count: usize,
        limits: PlaceLimits,
    ) -> Result<Place, Full> {
        let mut place = Place {
            places: Arc::clone(self),
            count,
            network: None,
        };
        self.open.fetch_add(1, Ordering::Relaxed);
        if self
            .all
            .fetch_add(count, Ordering::Relaxed)
            .saturating_add(count)
            > limits.all
        {
            return Err(Full::All);
        }
        if let Some(network) = address.map(network) {
            let mut by_network = self.by_network.lock();
            let taken = by_network.get(&network).copied().unwrap_or(0);
            if taken.saturating_add(count) > limits.of_a_network {
                drop(by_network);
                return Err(Full::Network);
            }
            by_network.insert(network, taken + count);
            place.network = Some(network);
        }
        Ok(place)
    }
}

/// One open connection or stream; uncounted on drop.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    count: usize,
    network: Option<IpAddr>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.open.fetch_sub(1, Ordering::Relaxed);
        self.places.all.fetch_sub(self.count, Ordering::Relaxed);
        let Some(network) = self.network else { return };
        let mut by_network = self.places.by_network.lock();
        if let Some(taken) = by_network.get_mut(&network) {
            *taken -= self.count;
            if *taken == 0 {
                by_network.remove(&network);
            }
        }
    }
}

// ---- Streams
//
// Streams of a server: how many may be open, and their counters.

/// The streams of a server.
#[derive(Debug, Default)]
pub struct Streams {
    places: Arc<Places>,
    fan_out_mono_ms: AtomicU64,
    pub stats: Arc<StreamStats>,
}

/// Counters of streams.
#[derive(Debug, Default)]
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
    /// From the beginning of a walk to the last write, in one series.
    pub fan_out: Durations,
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
    pub(crate) fn fan_out_mono_ms(&self) -> u64 {
        self.fan_out_mono_ms.load(Ordering::Relaxed)
    }

    pub(super) fn saw_fan_out(&self, now_mono_ms: u64) {
        self.fan_out_mono_ms.store(now_mono_ms, Ordering::Relaxed);
    }

    /// Counts one more stream, which takes `count` places, of a client at `address`.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn take(
        &self,
        address: Option<IpAddr>,
        count: usize,
        settings: &HttpSettings,
    ) -> Result<Place, Full> {
        let (address, limits) = settings.stream_limits(address);
        let taken = self.places.take(address, count, limits);
        if taken.is_err() {
            self.stats.refused.increment();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PlaceLimits = PlaceLimits {
        all: 3,
        of_a_network: 2,
    };

    #[test]
    fn both_limits_hold_and_a_place_that_is_left_can_be_taken_again() {
        let places = Arc::new(Places::default());
        let address = |text: &str| Some(text.parse().unwrap());
        let take = |text: &str| places.take(address(text), 1, LIMITS);
        let first = take("2001:db8::1").unwrap();
        let second = take("2001:db8::2").unwrap();
        assert_eq!(take("2001:db8::3").unwrap_err(), Full::Network);
        let third = places.take(None, 1, LIMITS).unwrap();
        assert_eq!(take("192.0.2.1").unwrap_err(), Full::All);
        assert_eq!(places.open(), 3);
        drop((first, third));
        let other = take("192.0.2.1").unwrap();
        let again = take("2001:db8::3").unwrap();
        assert_eq!(places.open(), 3);
        drop((second, other, again));
        assert_eq!((places.open(), places.by_network.lock().len()), (0, 0));
    }

    #[test]
    fn what_takes_two_places_counts_double_against_both_limits() {
        let places = Arc::new(Places::default());
        let address = |text: &str| Some(text.parse().unwrap());
        let single = places.take(address("192.0.2.1"), 1, LIMITS).unwrap();
        assert_eq!(places.take(address("192.0.2.1"), 2, LIMITS).unwrap_err(), Full::Network);
        let double = places.take(address("192.0.2.2"), 2, LIMITS).unwrap();
        assert_eq!((places.open(), places.taken()), (2, 3));
        drop(single);
        assert_eq!(places.take(None, 2, LIMITS).unwrap_err(), Full::All);
        drop(double);
        assert_eq!((places.open(), places.taken()), (0, 0));
        assert!(places.by_network.lock().is_empty());
    }
}
