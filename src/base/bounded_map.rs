//! A map with a fixed maximum of entries. When it is full, a new key evicts the entries of least
//! worth.
//!
//! It keeps state per caller, because callers can invent keys without end. It is unfit for state
//! that must survive, and for bounds in bytes. It has no lock of its own: to share it, wrap it in
//! one.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Part of the entries that [`BoundedMap::evicting_in_batches`] evicts at a time.
const BATCH_PART: usize = 8;

/// The map. Its hasher is seeded with a random secret, so a caller cannot construct colliding keys.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    entries: HashMap<K, V>,
    max: usize,
    /// Entries evicted when a new key finds the map full.
    batch: usize,
    evicted: u64,
}

impl<K: Eq + Hash, V> BoundedMap<K, V> {
    /// A map of at most `max` entries; 0 counts as 1. On a full map every new key scans all entries
    /// to evict one, so use this for at most a few thousand entries, and not on edge threads.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            entries: HashMap::default(),
            max: max.max(1),
            batch: 1,
            evicted: 0,
        }
    }

    /// A map of at most `max` entries that evicts an eighth of them at once, so that scans are
    /// rare.
    pub(crate) fn evicting_in_batches(max: usize) -> Self {
        Self {
            batch: (max / BATCH_PART).max(1),
            ..Self::new(max)
        }
    }

    /// The entry of `key`, made by `new` if there is none. If the map is full, all entries whose
    /// `worth` is `None` are evicted first; if that is too few, the entries of least worth.
    pub(crate) fn or_insert_with<W: Ord>(
        &mut self,
        key: K,
        worth: impl Fn(&V) -> Option<W>,
        new: impl FnOnce() -> V,
    ) -> &mut V {
        self.make_room_for(&key, worth);
        self.entries.entry(key).or_insert_with(new)
    }

    /// Inserts or replaces an entry. Evicts like [`Self::or_insert_with`].
    pub(crate) fn insert<W: Ord>(&mut self, key: K, value: V, worth: impl Fn(&V) -> Option<W>) {
        self.make_room_for(&key, worth);
        self.entries.insert(key, value);
    }

    fn make_room_for<W: Ord>(&mut self, key: &K, worth: impl Fn(&V) -> Option<W>) {
        if self.entries.len() < self.max || self.entries.contains_key(key) {
            return;
        }
        let before = self.entries.len();
        self.entries.retain(|_, value| worth(value).is_some());
        let batch = self.batch.min(self.entries.len());
        if self.entries.len() + self.batch > self.max && batch > 0 {
            let mut worths: Vec<Option<W>> = self.entries.values().map(&worth).collect();
            let (less, bound, _) = worths.select_nth_unstable(batch - 1);
            // Several entries may have exactly the worth `bound`; only so many of them are evicted.
            let mut equal_left = batch - less.iter().filter(|worth| **worth < *bound).count();
            self.entries.retain(|_, value| {
                let worth = worth(value);
                let evict = worth < *bound || (worth == *bound && equal_left > 0);
                equal_left -= usize::from(evict && worth == *bound);
                !evict
            });
        }
        self.evicted += (before - self.entries.len()) as u64;
    }

    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key)
    }

    pub(crate) fn value_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.entries.get_mut(key)
    }

    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.entries.remove(key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values()
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain(keep);
    }

    pub(crate) fn drain(&mut self) -> impl ExactSizeIterator<Item = (K, V)> {
        self.entries.drain()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Entries evicted in the map's lifetime.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }
}

// ---- Call window
//
// A sliding-window limit, for brokers that allow "N calls a second": no window of that length ever
// contains more calls, wherever it begins.
//
// A [`Limiter`](super::limiter::Limiter) with a burst of N would admit up to 2 N calls within one
// window: the burst, and the calls refilled meanwhile. `CallWindow` has no lock of its own: to
// share one, wrap it in a lock.

/// The times of the latest calls.
#[derive(Debug)]
pub(crate) struct CallWindow {
    calls_max: usize,
    span_ms: u64,
    /// One entry a call, oldest first; never more than `calls_max`.
    times_ms: VecDeque<u64>,
}

impl CallWindow {
    /// At most `calls_max` calls within any `span_ms`.
    pub(crate) fn new(calls_max: usize, span_ms: u64) -> Self {
        Self {
            calls_max,
            span_ms,
            times_ms: VecDeque::new(),
        }
    }

    /// Time until `calls` more calls fit, if only `share` of the `calls_max` places may be used.
    /// Zero if they fit now. Counts nothing.
    pub(crate) fn wait_ms(&mut self, calls: usize, share: usize, now_ms: u64) -> u64 {
        self.forget_past(now_ms);
        let over = (self.times_ms.len() + calls).saturating_sub(share.min(self.calls_max));
        if over == 0 {
            return 0;
        }
        // A request for more calls than are ever allowed waits until the window is empty.
        let last_ms = self.times_ms.get(over - 1).copied().unwrap_or(now_ms);
        (last_ms + self.span_ms).saturating_sub(now_ms).max(1)
    }

    /// Records calls as made, even beyond the limit. Only the latest `calls_max` are remembered.
    pub(crate) fn count(&mut self, calls: usize, now_ms: u64) {
        self.forget_past(now_ms);
        self.times_ms.extend(std::iter::repeat_n(now_ms, calls));
        let surplus = self.times_ms.len().saturating_sub(self.calls_max);
        self.times_ms.drain(..surplus);
    }

    /// Records one call if the limit allows it. Returns whether it did.
    pub(crate) fn admit(&mut self, now_ms: u64) -> bool {
        let admitted = self.wait_ms(1, self.calls_max, now_ms) == 0;
        if admitted {
            self.count(1, now_ms);
        }
        admitted
    }

    /// Removes up to `calls` calls that were recorded for the time `at_ms`: they were not made.
    pub(crate) fn give_back(&mut self, calls: usize, at_ms: u64) {
        let first = self.times_ms.partition_point(|at| *at < at_ms);
        let same = self.times_ms.partition_point(|at| *at <= at_ms) - first;
        self.times_ms.drain(first..first + same.min(calls));
    }

    /// Number of calls in the window that ends now.
    pub(crate) fn calls(&mut self, now_ms: u64) -> usize {
        self.forget_past(now_ms);
        self.times_ms.len()
    }

    fn forget_past(&mut self, now_ms: u64) {
        // A call exactly `span_ms` ago is outside the window; a call one millisecond later is
        // inside.
        while self
            .times_ms
            .front()
            .is_some_and(|at| at + self.span_ms <= now_ms)
        {
            self.times_ms.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(map: &BoundedMap<u32, u32>) -> Vec<u32> {
        let mut keys: Vec<u32> = map.entries.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    fn put(map: &mut BoundedMap<u32, u32>, key: u32, value: u32) {
        map.insert(key, value, |value| Some(*value));
    }

    #[test]
    fn a_full_map_evicts_the_entry_of_least_worth_for_a_new_key_only() {
        let mut map = BoundedMap::new(3);
        for (key, value) in [(1, 30), (2, 10), (3, 20), (1, 5)] {
            put(&mut map, key, value);
        }
        assert_eq!((keys(&map), map.evicted()), (vec![1, 2, 3], 0));
        put(&mut map, 4, 0);
        assert_eq!((keys(&map), map.evicted()), (vec![2, 3, 4], 1));
        assert_eq!((map.remove(&2), map.get(&2)), (Some(10), None));
        put(&mut map, 5, 0);
        assert_eq!((map.len(), map.evicted()), (3, 1), "the map was not full");
    }

    #[test]
    fn entries_without_worth_are_all_evicted_first() {
        let mut map = BoundedMap::new(4);
        (1..=4).for_each(|key| put(&mut map, key, key));
        map.or_insert_with(9, |value| (*value > 3).then_some(*value), || 9);
        assert_eq!((keys(&map), map.evicted()), (vec![4, 9], 3));
    }

    proptest! {
        #[test]
        fn a_map_stays_bounded_and_evicts_nothing_worth_more_than_what_it_keeps(
            max in 1usize..40,
            batches in any::<bool>(),
            puts in prop::collection::vec((0u32..60, 0u32..10), 1..200),
        ) {
            let new = if batches { BoundedMap::evicting_in_batches } else { BoundedMap::new };
            let mut map: BoundedMap<u32, u32> = new(max);
            for (key, value) in puts {
                let before = map.entries.clone();
                put(&mut map, key, value);
                prop_assert!(map.len() <= max);
                prop_assert_eq!(map.get(&key), Some(&value));
                let is_evicted = |key: &u32| map.get(key).is_none();
                let evicted: Vec<u32> = before.keys().copied().filter(is_evicted).collect();
                let full = before.len() == max && !before.contains_key(&key);
                prop_assert_eq!(evicted.len(), if full { map.batch } else { 0 });
                let evicted_worth_max = evicted.iter().map(|key| before[key]).max();
                let kept = before.iter().filter(|(key, _)| map.get(key).is_some());
                let others = kept.filter(|(kept_key, _)| **kept_key != key);
                let kept_worth_min = others.map(|(_, value)| *value).min();
                if let (Some(evicted), Some(kept)) = (evicted_worth_max, kept_worth_min) {
                    prop_assert!(evicted <= kept);
                }
            }
        }
    }
}

#[cfg(test)]
mod call_window_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn calls_leave_the_window_one_span_after_they_were_made() {
        let mut window = CallWindow::new(2, 1_000);
        let admitted = [0, 999, 999, 1_000, 1_500, 1_999, 2_000].map(|at| window.admit(at));
        assert_eq!(admitted, [true, true, false, true, false, true, true]);
    }

    #[test]
    fn given_back_calls_leave_their_own_instant_and_count_records_beyond_the_limit() {
        let mut window = CallWindow::new(5, 1_000);
        window.count(3, 0);
        window.count(2, 500);
        window.give_back(9, 0);
        assert_eq!((window.calls(500), window.wait_ms(3, 5, 500)), (2, 0));
        window.count(12, 600);
        assert_eq!((window.calls(600), window.wait_ms(1, 5, 600)), (5, 1_000));
        assert_eq!(window.wait_ms(6, 5, 600), 1_000, "more calls than are ever allowed");
    }

    proptest! {
        #[test]
        fn no_span_has_more_than_allowed_and_waits_are_exact(
            calls_max in 1usize..12,
            span_ms in 1u64..2_000,
            tries in prop::collection::vec((0u64..600, 1usize..6), 1..150),
        ) {
            let mut window = CallWindow::new(calls_max, span_ms);
            let mut now_ms = 0;
            let mut made = Vec::new();
            for (pause_ms, calls) in tries {
                now_ms += pause_ms;
                let calls = calls.min(calls_max);
                let wait_ms = window.wait_ms(calls, calls_max, now_ms);
                let within = |end_ms: u64| {
                    made.iter().filter(|at| **at + span_ms > end_ms).count() + calls
                };
                if wait_ms > 0 {
                    prop_assert!(within(now_ms + wait_ms - 1) > calls_max);
                    prop_assert!(within(now_ms + wait_ms) <= calls_max);
                    continue;
                }
                prop_assert!(within(now_ms) <= calls_max);
                window.count(calls, now_ms);
                made.extend(std::iter::repeat_n(now_ms, calls));
            }
        }
    }
}
