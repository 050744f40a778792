//! epoll with nanosecond timeouts.
//!
//! At 10,000 requests a second one is due every 100 µs, so the millisecond timeouts of the usual
//! wrappers would mean either late sends or a spinning core.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::schedule::NS_PER_S;

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

/// Reused storage for the events of one wait.
pub struct Events(Vec<epoll::Event>);

impl Events {
    /// Room for `capacity` events a wait.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// The events of the last wait.
    pub fn ready(&self) -> impl Iterator<Item = Ready> + '_ {
        // The kernel's struct is packed, so that nothing of it can be referred to.
        self.0.iter().map(|&epoll::Event { flags, data }| Ready {
            token: data.u64() as usize,
            writable: flags.contains(epoll::EventFlags::OUT),
        })
    }
}

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

    /// Waits for events for at most `timeout_ns`. An interrupted wait is an empty one.
    ///
    /// # Errors
    /// The system refused.
    pub fn wait(&self, events: &mut Events, timeout_ns: u64) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: (timeout_ns / NS_PER_S) as i64,
            tv_nsec: (timeout_ns % NS_PER_S) as i64,
        };
        events.0.clear();
        match epoll::wait(&self.0, spare_capacity(&mut events.0), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
