//! A thin safe wrapper over epoll with nanosecond timeouts.
//!
//! At 10,000 requests a second one is due every 100 µs, so the millisecond timeouts of the usual
//! wrappers would mean either late sends or a spinning core.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::schedule::NS_PER_S;

/// Readiness of one registered descriptor.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    /// Token given at registration.
    pub token: usize,
    /// The socket can be written (for one that was connecting: the attempt has ended).
    pub writable: bool,
    /// The socket can be read, was closed or has an error.
    pub readable: bool,
}

/// An epoll instance.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
}

/// Reused storage for the events of one wait.
pub struct Events {
    buffer: Vec<libc::epoll_event>,
    filled: usize,
}

impl Events {
    /// Room for `capacity` events a wait.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { buffer: vec![libc::epoll_event { events: 0, u64: 0 }; capacity], filled: 0 }
    }

    /// Number of events of the last wait.
    pub fn len(&self) -> usize {
        self.filled
    }

    /// True if the last wait ended without events.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Event `index` of the last wait.
    pub fn at(&self, index: usize) -> Ready {
        let event = self.buffer[index];
        let bits = event.events;
        Ready {
            token: usize::try_from(event.u64).expect("tokens are registered as usize"),
            writable: bits & libc::EPOLLOUT as u32 != 0,
            readable: bits & (libc::EPOLLIN | libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0,
        }
    }
}

impl Epoll {
    /// Creates an instance.
    ///
    /// # Errors
    /// The system refused.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; a descriptor that is returned belongs to us alone.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// Registers a socket edge-triggered for reading, and for writing if `writable`.
    ///
    /// # Errors
    /// The system refused.
    pub fn add(&self, socket: &impl AsRawFd, token: usize, writable: bool) -> io::Result<()> {
        let write_bit = if writable { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET | write_bit) as u32,
            u64: token as u64,
        };
        let socket_fd: RawFd = socket.as_raw_fd();
        // SAFETY: `event` outlives the call; both descriptors are open.
        let result = unsafe {
            libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, socket_fd, &raw mut event)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Waits for events for at most `timeout_ns`. An interrupted wait is an empty one.
    ///
    /// # Errors
    /// The system refused.
    pub fn wait(&self, events: &mut Events, timeout_ns: u64) -> io::Result<()> {
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout_ns / NS_PER_S).unwrap_or(libc::time_t::MAX),
            tv_nsec: i64::try_from(timeout_ns % NS_PER_S).expect("below 10^9"),
        };
        events.filled = 0;
        // SAFETY: the buffer is valid for its length and the timespec for the call; a null signal
        // mask leaves the mask alone.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                events.buffer.as_mut_ptr(),
                events.buffer.len(),
                &raw const timeout,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            };
        }
        events.filled = usize::try_from(count).expect("not negative");
        Ok(())
    }
}
