//! epoll for an OS thread that serves many sockets, and the bells by which other threads end its
//! wait.
//!
//! Sockets are polled edge-triggered: a change of readiness is reported once, and again only after
//! a read or write has found the socket not ready. Coroutines do not use this; they wait with
//! `rt/readiness.rs`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

/// Most reports of one wait.
const EVENTS_MAX: usize = 256;

/// The reports of a socket by which it can be read, or is closed.
const INPUT: EventFlags = EventFlags::IN
    .union(EventFlags::RDHUP)
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);

/// Sockets and bells, each under a number that the caller chooses. Used by one thread.
pub(crate) struct Poll {
    epoll: OwnedFd,
}

/// One report of [`Poll::wait`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    pub number: u64,
    /// There is input to read, or the connection is over.
    pub has_input: bool,
}

impl Poll {
    /// # Errors
    /// Without a free descriptor.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
        })
    }

    /// A new bell, which is reported as `number`.
    ///
    /// # Errors
    /// Without a free descriptor.
    pub(crate) fn bell(&self, number: u64) -> io::Result<Arc<Bell>> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.epoll, &descriptor, EventData::new_u64(number), flags)?;
        Ok(Arc::new(Bell {
            descriptor,
            is_rung: AtomicBool::new(false),
        }))
    }

    /// Polls `socket` until it is closed. What is ready already is reported too.
    ///
    /// # Errors
    /// When it cannot be polled.
    pub(crate) fn add(&self, socket: &impl AsFd, number: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number), flags)?)
    }

    /// Waits until something is ready, at most for `limit`, and moves the reports to `reports`.
    pub(crate) fn wait(&self, limit: Option<Duration>, reports: &mut Vec<Report>) {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let events = match epoll::wait(&self.epoll, &mut room, limit.as_ref()) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return,
            // The descriptor and the memory are ours.
            Err(error) => unreachable!("epoll_wait: {error}"),
        };
        // Copied out, because the kernel's record is packed.
        reports.extend(events.iter().map(|event| {
            let number = event.data;
            let flags = event.flags;
            Report {
                number: number.u64(),
                has_input: flags.intersects(INPUT),
            }
        }));
    }
}

/// Ends the wait of a [`Poll`]. Several rings before it is heard are one.
#[derive(Debug)]
pub(crate) struct Bell {
    descriptor: OwnedFd,
    is_rung: AtomicBool,
}

impl Bell {
    /// Rings, from any thread. Never waits. What the other thread is to see is stored before.
    pub(crate) fn ring(&self) {
        if self.is_rung.swap(true, Ordering::SeqCst) {
            return;
        }
        // Fails only if the count would exceed 64 bits. It is never read: each write is an edge.
        let _ = rustix::io::write(&self.descriptor, &1u64.to_ne_bytes());
    }

    /// Notes that it was heard. The caller then looks at what was stored before the ring.
    pub(crate) fn hear(&self) {
        self.is_rung.store(false, Ordering::SeqCst);
    }

    /// Whether it has been rung and not heard yet.
    pub(crate) fn is_rung(&self) -> bool {
        self.is_rung.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn numbers(poll: &Poll, limit: Duration) -> Vec<(u64, bool)> {
        let mut reports = Vec::new();
        poll.wait(Some(limit), &mut reports);
        reports
            .iter()
            .map(|report| (report.number, report.has_input))
            .collect()
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn a_bell_is_reported_once_for_any_number_of_rings_before_it_is_heard() {
        let poll = Poll::new().unwrap();
        let bell = poll.bell(7).unwrap();
        assert_eq!(numbers(&poll, Duration::ZERO), []);
        for _ in 0..3 {
            (0..5).for_each(|_| bell.ring());
            assert!(bell.is_rung());
            assert_eq!(numbers(&poll, PATIENCE), [(7, true)]);
            assert_eq!(numbers(&poll, Duration::ZERO), []);
            bell.hear();
            assert!(!bell.is_rung());
        }
        let ringing = Arc::clone(&bell);
        let rings = crate::rt::threads::spawn("rings", move || ringing.ring()).unwrap();
        assert_eq!(numbers(&poll, PATIENCE), [(7, true)]);
        rings.join().unwrap();
    }

    #[test]
    fn a_socket_is_reported_when_it_has_input_when_it_can_be_written_again_and_at_its_end() {
        let poll = Poll::new().unwrap();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.write_all(b"a").unwrap();
        poll.add(&near, 3).unwrap();
        assert_eq!(numbers(&poll, PATIENCE), [(3, true)], "what was there before");
        assert_eq!(numbers(&poll, Duration::ZERO), [], "once");
        let mut room = [0; 8];
        assert_eq!(near.read(&mut room).unwrap(), 1);
        while near.write(&[0; 4096]).is_ok_and(|count| count > 0) {}
        assert_eq!(numbers(&poll, Duration::ZERO), []);
        far.set_nonblocking(true).unwrap();
        while far.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
        assert_eq!(numbers(&poll, PATIENCE), [(3, false)], "it can be written");
        drop(far);
        assert_eq!(numbers(&poll, PATIENCE), [(3, true)]);
        drop(near);
        assert_eq!(numbers(&poll, Duration::ZERO), [], "closed and forgotten");
    }
}
