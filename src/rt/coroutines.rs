//! Coroutines (the `may` crate): worker count, stack size, spawning on the worker that polls a
//! descriptor, and `Parker`, the only way to wait with a timeout.
//!
//! A wait begins unsafely in may: it stores the coroutine where another thread can take it, and
//! then goes on reading what belongs to the coroutine: its record (`Park`) or a socket's event
//! flags (`CoIo`). A coroutine that was taken in between runs on another worker, and if it ends
//! there the first worker reads freed memory. So every wait goes through `noting_moves`, and
//! `keep_until_workers_pass` frees what such a worker may still read: event flags for
//! `rt/readiness.rs`, the record for a coroutine that ends. The coroutine never waits for it.
//!
//! may is built without its features `io_timeout`, `io_cancel` and `work_steal`. Deadlines are
//! enforced by the connection table's sweeper, no coroutine is ever cancelled, and a connection
//! stays on the worker whose epoll holds its descriptor. This makes every wait cheaper, and an idle
//! worker sleeps until there is work.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use may::coroutine;

use crate::rt::moving::has_moved;

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
    let kept = move || {
        let _record = Record;
        body();
    };
    match catch_unwind(AssertUnwindSafe(|| may::go!(builder, kept))) {
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

/// Held by a test that blocks a worker and waits for another one. Two such tests at once may each
/// wait for the worker that the other blocks.
#[cfg(test)]
pub(super) static BLOCKS_A_WORKER: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

/// Keeps the record of the coroutine in which it is dropped, if that has moved.
pub(super) struct Record;

impl Drop for Record {
    fn drop(&mut self) {
        if has_moved() {
            keep_until_workers_pass(Arc::new(coroutine::current()));
        }
    }
}

/// Drops `kept`, if it is the last of its clones, once every worker has finished what it runs now.
/// Never waits. A worker that is stuck keeps it, and with it the place that its connection takes.
pub(super) fn keep_until_workers_pass<T: Send + Sync + 'static>(kept: Arc<T>) {
    for worker in 0..workers() {
        let clone = Arc::clone(&kept);
        if spawn_for(worker as i32, move || drop(clone)).is_err() {
            tracing::error!("no coroutine to wait for a worker: an ended one stays in memory");
            return std::mem::forget(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;
    use crate::rt::coroutines::keep_until_workers_pass;
    use crate::rt::moving::{Parker, has_moved};
    use std::cell::Cell;

    /// Counts how often it was dropped.
    struct Kept(Arc<AtomicUsize>);

    impl Drop for Kept {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Lets a coroutine pass through `worker`.
    fn pass(worker: i32) {
        let (passed, passes) = mpsc::channel();
        spawn_for(worker, move || passed.send(()).unwrap()).unwrap();
        passes.recv().unwrap();
    }

    #[test]
    fn what_a_worker_may_read_outlives_what_every_worker_runs() {
        let _alone = BLOCKS_A_WORKER.lock();
        let dropped = Arc::new(AtomicUsize::new(0));
        for busy in 0..workers() as i32 {
            let (release, released) = mpsc::channel::<()>();
            let (blocks, blocked) = mpsc::channel();
            spawn_for(busy, move || {
                blocks.send(()).unwrap();
                let _ = released.recv();
            })
            .unwrap();
            blocked.recv().unwrap();
            keep_until_workers_pass(Arc::new(Kept(Arc::clone(&dropped))));
            (0..workers() as i32)
                .filter(|other| *other != busy)
                .for_each(pass);
            assert_eq!(dropped.load(Ordering::SeqCst), busy as usize);
            drop(release);
            while dropped.load(Ordering::SeqCst) == busy as usize {
                pass(busy);
            }
        }
    }

    #[test]
    fn a_coroutine_that_moved_ends_at_once_also_by_a_panic() {
        if workers() < 2 {
            return; // a coroutine cannot move
        }
        let _alone = BLOCKS_A_WORKER.lock();
        may::coroutine_local!(static ENDS: Cell<Option<Kept>> = Cell::new(None));
        let count = 16;
        let (parkers, waiting) = mpsc::channel();
        let (awake, wakes) = mpsc::channel();
        let ended = Arc::new(AtomicUsize::new(0));
        for number in 0..count {
            let parkers = parkers.clone();
            let awake = awake.clone();
            let ended = Arc::clone(&ended);
            spawn_for(0, move || {
                ENDS.with(|ends| ends.set(Some(Kept(ended))));
                let parker = Parker::current();
                parkers.send(parker.clone()).unwrap();
                assert!(parker.park(60_000));
                awake.send(has_moved()).unwrap();
                // Without the hook, which would count it and write it to the log.
                if number % 2 == 1 {
                    resume_unwind(Box::new("on purpose"));
                }
            })
            .unwrap();
        }
        let parkers: Vec<Parker> = waiting.iter().take(count).collect();
        pass(0); // behind it all of them wait
        let (release, released) = mpsc::channel::<()>();
        let (blocks, blocked) = mpsc::channel();
        spawn_for(0, move || {
            blocks.send(()).unwrap();
            let _ = released.recv();
        })
        .unwrap();
        blocked.recv().unwrap();
        parkers.iter().for_each(Parker::unpark);
        // Those that were given to the other worker have moved. They end beside the blocked one.
        assert!(wakes.recv().unwrap());
        while ended.load(Ordering::SeqCst) == 0 {
            pass(1);
        }
        drop(release);
        assert_eq!(wakes.iter().take(count - 1).count(), count - 1);
        while ended.load(Ordering::SeqCst) < count {
            pass(0);
            pass(1);
        }
    }
}
