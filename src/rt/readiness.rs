//! Waiting until a socket can be read or written. A coroutine waits; an event of epoll, or a wake
//! from any thread, ends the wait.
//!
//! may reads a socket's event flags once more after another worker may have taken the coroutine,
//! see `rt/coroutines.rs`. So the flags of a coroutine that has moved are freed only after every
//! worker has finished what it runs, and the socket is closed after that.

#![expect(
    clippy::disallowed_types,
    reason = "this is the place that makes may's wait safe"
)]

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use may::io::{CoIo, WaitIo, WaitIoWaker};

use crate::rt::moving;

/// epoll's bits as may hands them on (epoll_ctl(2)), and the bit that its waker adds.
pub(crate) const READABLE: usize = 0x1;
pub(crate) const ERROR_OR_GONE: usize = 0x8 | 0x10 | 0x2000;
pub(crate) const WOKEN: usize = 0x8000_0000;

/// A polled socket, used by one coroutine at a time. Its owner is dropped with it, or a moment
/// later if the coroutine has moved.
pub(crate) struct Readiness<T: AsRawFd + Send + Sync + 'static>(Arc<Polled<T>>);

/// Dropped in this order: a socket that is closed before epoll has let go of its number would share
/// the number with a connection that another worker accepts in between.
struct Polled<T> {
    io: CoIo<Descriptor>,
    owner: T,
}

impl<T: AsRawFd + Send + Sync + 'static> Readiness<T> {
    /// Begins to poll the socket that `owner` owns.
    ///
    /// # Errors
    /// When it cannot be polled.
    pub(crate) fn of(owner: T) -> io::Result<Self> {
        let io = CoIo::new(Descriptor(owner.as_raw_fd())).map_err(io::Error::from)?;
        Ok(Self(Arc::new(Polled { io, owner })))
    }

    /// The owner of the socket.
    pub(crate) fn owner(&self) -> &T {
        &self.0.owner
    }

    /// Waits for events, and takes those that have come: edges are reported once.
    pub(crate) fn wait(&self) -> usize {
        moving::noting_moves(|| self.0.io.wait_io())
    }

    /// Ends a wait from any thread, with [`WOKEN`]; the next one if none is under way.
    pub(crate) fn waker(&self) -> WaitIoWaker {
        self.0.io.waker()
    }
}

impl<T: AsRawFd + Send + Sync + 'static> Drop for Readiness<T> {
    fn drop(&mut self) {
        if moving::has_moved() {
            crate::rt::coroutines::keep_until_workers_pass(Arc::clone(&self.0));
        }
    }
}

/// A socket's number without its ownership.
#[derive(Debug)]
struct Descriptor(RawFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;
    use crate::rt::coroutines;

    /// A socket that counts when it is closed.
    struct Counted(UnixStream, Arc<AtomicUsize>);

    impl AsRawFd for Counted {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_raw_fd()
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Lets a coroutine pass through `worker`.
    fn pass(worker: i32) {
        let (passed, passes) = mpsc::channel();
        coroutines::spawn_for(worker, move || passed.send(()).unwrap()).unwrap();
        passes.recv().unwrap();
    }

    #[test]
    fn flags_outlive_every_worker_that_may_still_read_them() {
        if coroutines::workers() < 2 {
            return; // a coroutine cannot move
        }
        let _alone = coroutines::BLOCKS_A_WORKER.lock();
        let (wakers, waiting) = mpsc::channel();
        let (awake, wakes) = mpsc::channel();
        let closed = Arc::new(AtomicUsize::new(0));
        let count = 8;
        for _ in 0..count {
            let wakers = wakers.clone();
            let awake = awake.clone();
            let closed = Arc::clone(&closed);
            coroutines::spawn_for(0, move || {
                let (socket, _peer) = UnixStream::pair().unwrap();
                let readiness = Readiness::of(Counted(socket, closed)).unwrap();
                wakers.send(readiness.waker()).unwrap();
                while readiness.wait() & WOKEN == 0 {}
                awake.send(moving::has_moved()).unwrap();
            })
            .unwrap();
        }
        let wakers: Vec<WaitIoWaker> = waiting.iter().take(count).collect();
        // Behind it all of them wait.
        pass(0);
        let (release, released) = mpsc::channel::<()>();
        let (blocks, blocked) = mpsc::channel();
        coroutines::spawn_for(0, move || {
            blocks.send(()).unwrap();
            let _ = released.recv();
        })
        .unwrap();
        blocked.recv().unwrap();
        wakers.iter().for_each(WaitIoWaker::wakeup);
        // Those that were given to another worker have moved, and are about to end.
        assert!(wakes.recv().unwrap());
        (0..100).for_each(|_| pass(1));
        assert_eq!(closed.load(Ordering::SeqCst), 0);
        drop(release);
        assert_eq!(wakes.iter().take(count - 1).count(), count - 1);
        while closed.load(Ordering::SeqCst) < count {
            pass(1);
        }
    }
}
