//! Open connections or streams, counted together and by client network.
//!
//! Used on the edge; the lock is held for a few instructions.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::base::network::network;

/// What is open.
#[derive(Debug, Default)]
pub struct Places {
    all: AtomicUsize,
    by_network: Mutex<HashMap<IpAddr, usize>>,
}

/// The most that may be open.
#[derive(Debug, Clone, Copy)]
pub struct PlaceLimits {
    pub all: usize,
    pub of_a_network: usize,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    All,
    Network,
}

impl Places {
    /// How many are open.
    pub fn open(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// Counts one more, of the network of `address` if there is one.
    ///
    /// # Errors
    /// [`Full`], and nothing is counted.
    pub fn take(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        limits: PlaceLimits,
    ) -> Result<Place, Full> {
        let mut place = Place { places: Arc::clone(self), network: None };
        if self.all.fetch_add(1, Ordering::Relaxed) >= limits.all {
            return Err(Full::All);
        }
        if let Some(network) = address.map(network) {
            let mut by_network = self.by_network.lock();
            let count = by_network.entry(network).or_insert(0);
            if *count >= limits.of_a_network {
                drop(by_network);
                return Err(Full::Network);
            }
            *count += 1;
            place.network = Some(network);
        }
        Ok(place)
    }
}

/// One that is open; uncounted on drop.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    network: Option<IpAddr>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.all.fetch_sub(1, Ordering::Relaxed);
        let Some(network) = self.network else { return };
        let mut by_network = self.places.by_network.lock();
        if let Some(count) = by_network.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                by_network.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PlaceLimits = PlaceLimits { all: 3, of_a_network: 2 };

    #[test]
    fn both_limits_hold_and_a_place_that_is_left_can_be_taken_again() {
        let places = Arc::new(Places::default());
        let address = |text: &str| Some(text.parse().unwrap());
        let take = |text: &str| places.take(address(text), LIMITS);
        let first = take("2001:db8::1").unwrap();
        let second = take("2001:db8::2").unwrap();
        assert_eq!(take("2001:db8::3").unwrap_err(), Full::Network);
        let third = places.take(None, LIMITS).unwrap();
        assert_eq!(take("192.0.2.1").unwrap_err(), Full::All);
        assert_eq!(places.open(), 3);
        drop((first, third));
        let other = take("192.0.2.1").unwrap();
        let again = take("2001:db8::3").unwrap();
        assert_eq!(places.open(), 3);
        drop((second, other, again));
        assert_eq!((places.open(), places.by_network.lock().len()), (0, 0));
    }
}
