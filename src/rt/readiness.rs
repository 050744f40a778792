//! Waiting until a socket can be read or written. A coroutine waits; an event of epoll, or a wake
//! from any thread, ends the wait.
//!
//! may reads a socket's event flags once more after another worker may have taken the coroutine,
//! see `rt/coroutines.rs`. So a coroutine that has moved lets every worker finish what it runs
//! before it frees the flags.

#![expect(clippy::disallowed_types, reason = "this is the place that makes may's wait safe")]

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use may::io::{CoIo, WaitIo, WaitIoWaker};

use super::coroutines;

/// epoll's bits as may hands them on (epoll_ctl(2)), and the bit that its waker adds.
pub(crate) const READABLE: usize = 0x1;
pub(crate) const ERROR_OR_GONE: usize = 0x8 | 0x10 | 0x2000;
pub(crate) const WOKEN: usize = 0x8000_0000;

/// The event flags of one socket. Used by one coroutine at a time.
///
/// It does not own the socket: `CoIo` would close the socket before it takes it out of epoll, and
/// between the two another worker may accept a connection with the same number. So the socket is
/// dropped after this.
pub(crate) struct Readiness {
    /// On the heap, where it stays when the connection moves. None only while it is dropped.
    io: Option<Box<CoIo<Descriptor>>>,
}

impl Readiness {
    /// Begins to poll `socket`.
    ///
    /// # Errors
    /// When it cannot be polled.
    pub(crate) fn of(socket: &impl AsRawFd) -> io::Result<Self> {
        let io = CoIo::new(Descriptor(socket.as_raw_fd())).map_err(io::Error::from)?;
        Ok(Self { io: Some(Box::new(io)) })
    }

    /// Waits for events, and takes those that have come: edges are reported once.
    pub(crate) fn wait(&self) -> usize {
        coroutines::noting_moves(|| self.io().wait_io())
    }

    /// Ends a wait from any thread, with [`WOKEN`]; the next one if none is under way.
    pub(crate) fn waker(&self) -> WaitIoWaker {
        self.io().waker()
    }

    fn io(&self) -> &CoIo<Descriptor> {
        self.io.as_ref().expect("taken in drop alone")
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        let Some(io) = self.io.take() else { return };
        let unread = match std::thread::panicking() {
            true => !coroutines::has_moved(),
            false => coroutines::settle_if_moved(),
        };
        if unread {
            return drop(io);
        }
        tracing::error!("edge worker stuck: event flags of an ended connection stay in memory");
        Box::leak(io);
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

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
        let (wakers, waiting) = mpsc::channel();
        let (awake, wakes) = mpsc::channel();
        let ended = Arc::new(AtomicUsize::new(0));
        let count = 8;
        for _ in 0..count {
            let (wakers, awake, ended) = (wakers.clone(), awake.clone(), Arc::clone(&ended));
            coroutines::spawn_for(0, move || {
                let (socket, _peer) = UnixStream::pair().unwrap();
                let readiness = Readiness::of(&socket).unwrap();
                wakers.send(readiness.waker()).unwrap();
                while readiness.wait() & WOKEN == 0 {}
                awake.send(coroutines::has_moved()).unwrap();
                drop(readiness);
                ended.fetch_add(1, Ordering::SeqCst);
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
        assert_eq!(ended.load(Ordering::SeqCst), 0);
        drop(release);
        assert_eq!(wakes.iter().take(count - 1).count(), count - 1);
        while ended.load(Ordering::SeqCst) < count {
            pass(1);
        }
    }
}
