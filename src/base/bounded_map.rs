//! A map that never has more than so many entries: a new key that finds it full evicts those that
//! are worth least.
//!
//! For what is remembered about callers, who can invent keys without end. Not for what must not be
//! forgotten, and not where the bound is in bytes. Plain values: whoever shares one brings a lock.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// In [`BoundedMap::evicting_in_batches`]: of the bound, this part goes at once.
const BATCH_PART: usize = 8;

/// The map. The hasher has a secret of its own, so that nobody can aim at one bucket.
#[derive(Debug)]
pub struct BoundedMap<K, V> {
    entries: HashMap<K, V>,
    max: usize,
    batch: usize,
    evicted: u64,
}

impl<K: Eq + Hash, V> BoundedMap<K, V> {
    /// At most `max` entries (at least one). A new key evicts one entry, which it looks for among
    /// all: for some thousand entries, off the edge.
    pub fn new(max: usize) -> Self {
        Self { entries: HashMap::default(), max: max.max(1), batch: 1, evicted: 0 }
    }

    /// The same, but a full map makes room for many new keys at once, so that looking is rare.
    pub fn evicting_in_batches(max: usize) -> Self {
        Self { batch: (max / BATCH_PART).max(1), ..Self::new(max) }
    }

    /// The entry of `key`, made by `new` where there is none. If that takes room, entries go
    /// that have no `worth`, and if those are too few, the ones with the least.
    pub fn or_insert_with<W: Ord>(
        &mut self,
        key: K,
        worth: impl Fn(&V) -> Option<W>,
        new: impl FnOnce() -> V,
    ) -> &mut V {
        self.make_room_for(&key, worth);
        self.entries.entry(key).or_insert_with(new)
    }

    /// Puts an entry in, making room as above.
    pub fn insert<W: Ord>(&mut self, key: K, value: V, worth: impl Fn(&V) -> Option<W>) {
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
            // Many may be equal, so a count says how many of those go.
            let mut equal_left = batch - less.iter().filter(|worth| **worth < *bound).count();
            self.entries.retain(|_, value| {
                let worth = worth(value);
                let goes = worth < *bound || (worth == *bound && equal_left > 0);
                equal_left -= usize::from(goes && worth == *bound);
                !goes
            });
        }
        self.evicted += (before - self.entries.len()) as u64;
    }

    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key)
    }

    pub fn value_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.entries.get_mut(key)
    }

    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.entries.remove(key)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values()
    }

    pub fn retain(&mut self, keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain(keep);
    }

    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = (K, V)> {
        self.entries.drain()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Entries evicted for lack of room, since the start.
    pub fn evicted(&self) -> u64 {
        self.evicted
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
    fn a_new_key_evicts_the_least_and_a_known_one_nothing() {
        let mut map = BoundedMap::new(3);
        for (key, value) in [(1, 30), (2, 10), (3, 20), (1, 5)] {
            put(&mut map, key, value);
        }
        assert_eq!((keys(&map), map.evicted()), (vec![1, 2, 3], 0));
        put(&mut map, 4, 0);
        assert_eq!((keys(&map), map.evicted()), (vec![2, 3, 4], 1));
        assert_eq!((map.remove(&2), map.get(&2)), (Some(10), None));
        put(&mut map, 5, 0);
        assert_eq!((map.len(), map.evicted()), (3, 1), "there was room");
    }

    #[test]
    fn what_is_worth_nothing_goes_first_and_all_of_it() {
        let mut map = BoundedMap::new(4);
        (1..=4).for_each(|key| put(&mut map, key, key));
        map.or_insert_with(9, |value| (*value > 3).then_some(*value), || 9);
        assert_eq!((keys(&map), map.evicted()), (vec![4, 9], 3));
    }

    proptest! {
        #[test]
        fn it_is_bounded_and_nothing_goes_that_was_worth_more_than_what_stayed(
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
                let is_gone = |key: &u32| map.get(key).is_none();
                let gone: Vec<u32> = before.keys().copied().filter(is_gone).collect();
                let full = before.len() == max && !before.contains_key(&key);
                prop_assert_eq!(gone.len(), if full { map.batch } else { 0 });
                let dearest = gone.iter().map(|key| before[key]).max();
                let stayed = before.iter().filter(|(key, _)| map.get(key).is_some());
                let others = stayed.filter(|(known, _)| **known != key);
                let cheapest = others.map(|(_, value)| *value).min();
                if let (Some(dearest), Some(cheapest)) = (dearest, cheapest) {
                    prop_assert!(dearest <= cheapest);
                }
            }
        }
    }
}
