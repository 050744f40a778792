//! The coroutine side: worker count, stack size, spawning on the worker that owns a descriptor, and
//! the one way to wait with a limit.
//!
//! may is built without its `io_timeout`, `io_cancel` and `work_steal` features: deadlines come
//! from the connection table's sweeper, nothing is ever cancelled, and a connection stays on the
//! worker whose epoll holds its descriptor. That makes every wait cheaper and lets an idle worker
//! sleep for good.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use may::coroutine;
use may::sync::Blocker;

/// Stack of a coroutine in words of eight bytes: 64 KiB of address space, of which only touched
/// pages cost memory. An even number, since may reports stack use of odd ones at exit. Half of this
/// is may's default; a failed name look-up takes 13 KiB and a printed backtrace 20 KiB, so there is
/// room for both.
const STACK_WORDS: usize = 0x2000;

/// Finished coroutines whose stacks are kept for the next connection. Each keeps its touched pages.
const POOLED_STACKS: usize = 512;

/// Sets the number of edge workers, 0 meaning one per core. Has an effect only before the first
/// coroutine.
pub fn configure(threads: usize) {
    let config = may::config();
    if threads > 0 {
        config.set_workers(threads);
    }
    config.set_stack_size(STACK_WORDS);
    config.set_pool_capacity(POOLED_STACKS);
    // A pinned worker cannot leave a core that a lane thread or a neighbour is using.
    config.set_worker_pin(false);
}

/// How many workers there are.
pub fn workers() -> usize {
    may::config().get_workers()
}

/// Starts a coroutine on the worker that polls `descriptor`.
///
/// # Errors
/// When no stack can be mapped (the kernel's limit on mappings): the caller refuses the connection
/// and goes on. may reports this by a panic, which is caught here.
pub fn spawn_for(descriptor: i32, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = coroutine::Builder::new().id(descriptor.unsigned_abs() as usize);
    // SAFETY-relevant rules of may (no thread-local borrow over a wait, bounded stack depth) are
    // the module rules of `rt`; the macro is may's own safe wrapper.
    match catch_unwind(AssertUnwindSafe(|| may::go!(builder, body))) {
        Ok(spawned) => spawned.map(drop),
        Err(_) => Err(io::Error::other("no memory mapping left for a coroutine stack")),
    }
}

/// Starts a coroutine on any worker.
///
/// # Errors
/// As [`spawn_for`].
pub fn spawn(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    spawn_for(0, body)
}

/// Waits until every worker has finished what it ran when this was called, for at most `limit_ms`;
/// says whether all have.
pub fn settle(limit_ms: u64) -> bool {
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

/// Shortest park: may loses a timeout that fires before the coroutine is stored, and takes less
/// than a millisecond for "no limit".
const PARK_MS_MIN: u64 = 10;

/// A place to wait, for one coroutine or thread. Made by the waiter, given to the waker.
#[derive(Clone, Debug)]
pub struct Parker(Arc<Blocker>);

impl Parker {
    /// For the calling coroutine or thread; only that one may call [`Parker::park`].
    pub fn current() -> Self {
        Self(Blocker::current())
    }

    /// Waits until [`unpark`](Self::unpark) or for `limit_ms`; true if it was woken in time. A wake
    /// that came before is not lost.
    pub fn park(&self, limit_ms: u64) -> bool {
        let limit = Duration::from_millis(limit_ms.max(PARK_MS_MIN));
        let woken = self.0.park(Some(limit)).is_ok();
        if !woken && coroutine::is_coroutine() {
            // A timed-out coroutine runs on may's only timer thread until it yields; go back to a
            // worker.
            coroutine::yield_now();
        }
        woken
    }

    /// Wakes the waiter, from any thread.
    pub fn unpark(&self) {
        self.0.unpark();
    }
}
