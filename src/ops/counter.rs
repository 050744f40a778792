//! Counters that any thread may increment without waiting.
//!
//! They are relaxed atomics: a reader sees each increment eventually, and increments of two
//! counters in no particular order.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::base::Words;

/// A counter, aligned so that it shares no cache line with another counter (false sharing). 128
/// bytes because x86 fetches lines in pairs and some ARM cores have lines of that length.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counter(AtomicU64);

impl Counter {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(crate) fn add(&self, by: u64) {
        self.0.fetch_add(by, Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }

    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A count for each variant of an enum that has words.
#[derive(Debug)]
pub(crate) struct Counts<W> {
    by_place: Box<[AtomicU64]>,
    of: PhantomData<W>,
}

impl<W: Words> Default for Counts<W> {
    fn default() -> Self {
        let by_place = W::EVERY.iter().map(|_| AtomicU64::default()).collect();
        Self {
            by_place,
            of: PhantomData,
        }
    }
}

impl<W: Words> Counts<W> {
    pub(crate) fn increment(&self, variant: W) {
        self.by_place[variant.place()].fetch_add(1, Relaxed);
    }

    pub(crate) fn of(&self, variant: W) -> u64 {
        self.by_place[variant.place()].load(Relaxed)
    }

    /// All counts, with the words of their variants.
    pub(crate) fn by_word(&self) -> Vec<(&'static str, u64)> {
        W::EVERY
            .iter()
            .map(|variant| (variant.word(), self.of(*variant)))
            .collect()
    }
}

/// Number of shards. More edge threads than this share shards, which is correct and slower.
pub(super) const SHARDS: usize = 16;

/// A counter for the hot path: each thread adds to its own shard, and a reader sums the shards.
#[derive(Debug, Default)]
pub(crate) struct Sharded([Counter; SHARDS]);

impl Sharded {
    pub(crate) fn add(&self, by: u64) {
        self.0[shard()].add(by);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.iter().map(Counter::value).sum()
    }
}

/// The shard of this thread. A coroutine that moves to another thread uses that thread's shard; the
/// sum stays right. Never inlined, so that the compiler cannot keep the address of the thread-local
/// across a suspension point of the caller.
#[inline(never)]
pub(super) fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static THREAD_SHARD: Cell<Option<usize>> = const { Cell::new(None) };
    }
    THREAD_SHARD.with(|shard| {
        shard.get().unwrap_or_else(|| {
            let index = NEXT.fetch_add(1, Relaxed) % SHARDS;
            shard.set(Some(index));
            index
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_lose_no_increment_of_concurrent_threads() {
        let plain = Counter::default();
        let sharded = Sharded::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        plain.increment();
                        sharded.add(2);
                    }
                });
            }
        });
        assert_eq!((plain.value(), sharded.value()), (20_000, 40_000));
    }
}
