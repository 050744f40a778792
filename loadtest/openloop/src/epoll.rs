//! epoll with nanosecond timeouts.
//!
//! At 10,000 requests a second one is due every 100 µs, so the millisecond timeouts of the usual
//! wrappers would mean either late sends or a spinning core.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::schedule::NS_PER_S;

/// Events taken from one wait.
const EVENTS_MAX: usize = 1_024;

/// Readiness of one registered descriptor.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    /// Token given at registration.
    pub token: usize,
    /// The socket can be written (for one that was connecting: the attempt has ended).
    pub writable: bool,
}

/// An epoll instance.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Creates an instance.
    ///
    /// # Errors
    /// The system refused.
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Registers a socket edge-triggered for reading, and for writing if `writable`.
    ///
    /// # Errors
    /// The system refused.
    pub fn add(&self, socket: &impl AsFd, token: usize, writable: bool) -> io::Result<()> {
        let mut flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        flags.set(epoll::EventFlags::OUT, writable);
        Ok(epoll::add(&self.0, socket, epoll::EventData::new_u64(token as u64), flags)?)
    }

    /// Waits for at most `timeout_ns`, and puts what is ready into `ready`. An interrupted wait is
    /// an empty one.
    ///
    /// # Errors
    /// The system refused.
    pub fn wait(&self, ready: &mut Vec<Ready>, timeout_ns: u64) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: (timeout_ns / NS_PER_S) as i64,
            tv_nsec: (timeout_ns % NS_PER_S) as i64,
        };
        let mut events = [MaybeUninit::uninit(); EVENTS_MAX];
        ready.clear();
        match epoll::wait(&self.0, &mut events, Some(&timeout)) {
            // The kernel's struct is packed, so that nothing of it can be referred to.
            Ok((events, _)) => ready.extend(events.iter().map(|&epoll::Event { flags, data }| {
                let writable = flags.contains(epoll::EventFlags::OUT);
                Ready {
                    token: data.u64() as usize,
                    writable,
                }
            })),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
