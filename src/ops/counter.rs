//! Counters that any thread may touch and none waits for.
//!
//! Relaxed atomics: a reader sees each number eventually, and no order between two numbers.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Alone on its cache lines, so that two busy counters do not slow each other. 128 bytes because
/// x86 fetches lines in pairs and some ARM cores have lines that long.
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

/// Most edge threads that count without meeting; more share, which costs speed and nothing else.
pub(super) const SHARDS: usize = 16;

/// A counter for the hot path: each thread adds to a shard of its own, a reader sums them.
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

/// This thread's shard. A coroutine may count on another thread each time; the sum stays right.
/// Never inlined: the address of a thread-local must not be kept over a wait in the caller.
#[inline(never)]
pub(super) fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<Option<usize>> = const { Cell::new(None) };
    }
    MINE.with(|mine| {
        mine.get().unwrap_or_else(|| {
            let index = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
            mine.set(Some(index));
            index
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_threads() {
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
