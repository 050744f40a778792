//! Where a coroutine runs after it was parked: moves between workers are noted and counted.
//!
//! Runs on the workers. Never blocks.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use may::coroutine;
use may::sync::Blocker;

use crate::rt::staged;

may::coroutine_local!(static MOVED: Cell<bool> = Cell::new(false));

/// Calls `wait`, which may suspend the coroutine, and notes if it ended on another thread.
pub(super) fn noting_moves<T>(wait: impl FnOnce() -> T) -> T {
    let before = thread();
    let waited = wait();
    if thread() != before {
        MOVED.with(|moved| moved.set(true));
    }
    waited
}

/// Whether the coroutine has ever moved to another thread while it waited.
pub(super) fn has_moved() -> bool {
    MOVED.with(Cell::get)
}

/// Something that only this thread has. Never inlined: the address of a thread-local must not be
/// kept in a register across a wait.
#[inline(never)]
fn thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// Shortest timeout passed to may. It misses a timeout that fires before the coroutine has
/// suspended, and takes one below a millisecond for "no timeout".
const PARK_MS_MIN: u64 = 10;

/// Lets one coroutine or thread wait until another one wakes it. The waiter creates it and gives a
/// clone to the waker.
#[derive(Clone, Debug)]
pub struct Parker(Wait);

#[derive(Clone, Debug)]
enum Wait {
    May(Arc<Blocker>),
    /// On a stage: whether it was woken.
    Staged(Arc<AtomicBool>),
}

impl Parker {
    /// A parker for the calling coroutine or thread, which alone may call [`Parker::park`].
    pub fn current() -> Self {
        Self(match staged::is_set() {
            false => Wait::May(Blocker::current()),
            true => Wait::Staged(Arc::default()),
        })
    }

    /// Waits for [`unpark`](Self::unpark), at most `limit_ms`; true if woken in time. Returns at
    /// once if `unpark` was called before.
    pub fn park(&self, limit_ms: u64) -> bool {
        let limit = Duration::from_millis(limit_ms.max(PARK_MS_MIN));
        let blocker = match &self.0 {
            Wait::May(blocker) => blocker,
            Wait::Staged(woken) => {
                return staged::wait(Some(limit), || woken.swap(false, Ordering::Relaxed));
            }
        };
        noting_moves(|| {
            let woken = blocker.park(Some(limit)).is_ok();
            if !woken && coroutine::is_coroutine() {
                // After a timeout the coroutine runs on may's only timer thread until it yields.
                // Yield, so that it goes back to a worker.
                coroutine::yield_now();
            }
            woken
        })
    }

    /// Wakes the waiter, from any thread.
    pub(crate) fn unpark(&self) {
        match &self.0 {
            Wait::May(blocker) => blocker.unpark(),
            Wait::Staged(woken) => woken.store(true, Ordering::Relaxed),
        }
    }
}
