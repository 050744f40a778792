//! Counters that any thread may increment without waiting.
//!
//! They are relaxed atomics: a reader sees each increment eventually, and increments of two
//! counters in no particular order.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A counter, aligned so that it shares no cache line with another counter (false sharing). 128
/// bytes because x86 fetches lines in pairs and some ARM cores have lines of that length.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counter(AtomicU64);

impl Counter {
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub fn increment(&self) {
        self.add(1);
    }

    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Number of shards. More edge threads than this share shards, which is correct and slower.
pub(super) const SHARDS: usize = 16;

/// A counter for the hot path: each thread adds to its own shard, and a reader sums the shards.
#[derive(Debug, Default)]
pub struct Sharded([Counter; SHARDS]);

impl Sharded {
    pub const fn new() -> Self {
        Self([const { Counter::new() }; SHARDS])
    }

    pub fn add(&self, by: u64) {
        self.0[shard()].add(by);
    }

    pub fn increment(&self) {
        self.add(1);
    }

    pub fn value(&self) -> u64 {
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
            let index = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
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
        static PLAIN: Counter = Counter::new();
        static SHARDED: Sharded = Sharded::new();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        PLAIN.increment();
                        SHARDED.add(2);
                    }
                });
            }
        });
        assert_eq!((PLAIN.value(), SHARDED.value()), (20_000, 40_000));
    }
}
