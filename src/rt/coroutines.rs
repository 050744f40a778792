//! Coroutines (the `may` crate): worker count, stack size, spawning on the worker that polls a
//! descriptor, and [`Parker`], the only way to wait with a timeout.
//!
//! may is built without its features `io_timeout`, `io_cancel` and `work_steal`. Deadlines are
//! enforced by the connection table's sweeper, no coroutine is ever cancelled, and a connection
//! stays on the worker whose epoll holds its descriptor. This makes every wait cheaper, and an idle
//! worker sleeps until there is work.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use may::coroutine;
use may::sync::Blocker;

use crate::base::Clock;

/// Stack size of a coroutine in words of eight bytes: 64 KiB of address space, of which only
/// touched pages use memory. Twice may's default, because a failed name look-up takes 13 KiB and a
/// printed backtrace 20 KiB. Must be even: for an odd size may prints stack use at exit.
const STACK_WORDS: usize = 0x2000;

/// Stacks of finished coroutines kept for new connections. Each keeps its touched pages.
const POOLED_STACKS: usize = 512;

/// Sets the number of edge workers; 0 means one for each core. Takes effect only if called before
/// the first coroutine is spawned.
pub fn configure(threads: usize) {
    let config = may::config();
    if threads > 0 {
        config.set_workers(threads);
    }
    config.set_stack_size(STACK_WORDS);
    config.set_pool_capacity(POOLED_STACKS);
    // A worker pinned to a core would wait while a lane thread or another process uses that core.
    config.set_worker_pin(false);
}

/// Number of edge workers.
pub(crate) fn workers() -> usize {
    may::config().get_workers()
}

/// Starts a coroutine on the worker that polls `descriptor`.
///
/// # Errors
/// If no stack can be mapped (the kernel limits the number of mappings). The caller then refuses
/// the connection. may reports this by a panic, which is caught here.
pub fn spawn_for(descriptor: i32, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = coroutine::Builder::new().id(descriptor.unsigned_abs() as usize);
    // `go!` is may's safe wrapper. Its safety conditions (no thread-local borrow across a
    // suspension point, bounded stack depth) are rules for all code on the edge, see module `rt`.
    match catch_unwind(AssertUnwindSafe(|| may::go!(builder, body))) {
        Ok(spawned) => spawned.map(drop),
        Err(_) => Err(io::Error::other("no memory mapping left for a coroutine stack")),
    }
}

/// Starts a coroutine on any worker.
///
/// # Errors
/// As in [`spawn_for`].
#[cfg(test)]
pub(crate) fn spawn(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    spawn_for(0, body)
}

/// Waits until every worker has finished what it ran when this was called, for at most `limit_ms`;
/// says whether all have.
pub(crate) fn settle(limit_ms: u64) -> bool {
    let parker = Parker::current();
    let left = Arc::new(AtomicUsize::new(workers()));
    for worker in 0..workers() {
        let (parker, left) = (parker.clone(), Arc::clone(&left));
        let passes = spawn_for(worker as i32, move || {
            if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                parker.unpark();
            }
        });
        if passes.is_err() {
            return false;
        }
    }
    parker.park(limit_ms);
    left.load(Ordering::Acquire) == 0
}

/// Shortest timeout passed to may. It misses a timeout that fires before the coroutine has
/// suspended, and takes one below a millisecond for "no timeout".
const PARK_MS_MIN: u64 = 10;

/// Lets one coroutine or thread wait until another one wakes it. The waiter creates it and gives a
/// clone to the waker.
#[derive(Clone, Debug)]
pub struct Parker(Arc<Blocker>);

impl Parker {
    /// A parker for the calling coroutine or thread, which alone may call [`Parker::park`].
    pub fn current() -> Self {
        Self(Blocker::current())
    }

    /// Waits for [`unpark`](Self::unpark), at most `limit_ms`; true if woken in time. Returns at
    /// once if `unpark` was called before.
    pub fn park(&self, limit_ms: u64) -> bool {
        let limit = Duration::from_millis(limit_ms.max(PARK_MS_MIN));
        let woken = self.0.park(Some(limit)).is_ok();
        if !woken && coroutine::is_coroutine() {
            // After a timeout the coroutine runs on may's only timer thread until it yields. Yield,
            // so that it goes back to a worker.
            coroutine::yield_now();
        }
        woken
    }

    /// Wakes the waiter, from any thread.
    pub(crate) fn unpark(&self) {
        self.0.unpark();
    }
}

// ---- Liveness
//
// Edge liveness: sends one coroutine at a time through every edge worker and remembers when each
// worker last finished one.
//
// The main thread sends them about once a second. One costs a worker a few microseconds.

struct Worker {
    /// When the worker last finished a probe.
    passed_mono_ms: AtomicU64,
    /// A probe is queued or runs. No other is sent then, so that none pile up on a stuck worker.
    under_way: AtomicBool,
}

/// Probe coroutines of all edge workers.
pub(crate) struct EdgeLiveness {
    clock: Clock,
    workers: Arc<[Worker]>,
}

impl EdgeLiveness {
    /// For the configured workers. Each counts as having finished a probe now.
    pub(crate) fn new(clock: &Clock) -> Self {
        let now_mono_ms = clock.monotonic_ms();
        let worker = |_| Worker {
            passed_mono_ms: AtomicU64::new(now_mono_ms),
            under_way: AtomicBool::new(false),
        };
        Self { clock: clock.clone(), workers: (0..workers()).map(worker).collect() }
    }

    /// Sends a probe to each worker that has finished its last one.
    pub(crate) fn send(&self) {
        for index in 0..self.workers.len() {
            if self.workers[index].under_way.swap(true, Ordering::AcqRel) {
                continue;
            }
            let (workers, clock) = (Arc::clone(&self.workers), self.clock.clone());
            let sent = spawn_for(index as i32, move || {
                let worker = &workers[index];
                worker.passed_mono_ms.store(clock.monotonic_ms(), Ordering::Release);
                worker.under_way.store(false, Ordering::Release);
            });
            if sent.is_err() {
                // No memory for a stack: the next call tries again.
                self.workers[index].under_way.store(false, Ordering::Release);
            }
        }
    }

    /// The earliest, among all workers, of the times at which they last finished a probe.
    pub(crate) fn passed_mono_ms(&self) -> u64 {
        let passed = |worker: &Worker| worker.passed_mono_ms.load(Ordering::Acquire);
        self.workers.iter().map(passed).min().unwrap_or(0)
    }
}
