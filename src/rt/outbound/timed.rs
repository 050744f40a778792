//! A socket whose reads and writes end by a deadline, however slowly bytes pass.

use std::io;
use std::io::{Read, Write};
use std::time::Duration;

use socket2::Socket;

use crate::base::Clock;

/// A socket with a deadline, and with a bound on the bytes that are read until it.
#[derive(Debug)]
pub(crate) struct Timed {
    socket: Socket,
    timer: Clock,
    until_mono_ms: u64,
    bytes_left: usize,
    write_timeout: Option<Duration>,
}

impl Timed {
    /// Nothing passes before [`allow`](Self::allow) is called.
    pub(crate) fn new(socket: impl Into<Socket>, timer: &Clock) -> Self {
        let socket = socket.into();
        let timer = timer.clone();
        Self {
            socket,
            timer,
            until_mono_ms: 0,
            bytes_left: 0,
            write_timeout: None,
        }
    }

    /// Bounds writes by this instead of the deadline. A peer that reads nothing for this long
    /// counts as gone.
    #[must_use]
    pub(crate) fn with_write_timeout(self, timeout: Duration) -> Self {
        Self {
            write_timeout: Some(timeout),
            ..self
        }
    }

    /// From now on reads and writes end by this time, and at most so many bytes are read.
    pub(crate) fn allow(&mut self, until_mono_ms: u64, bytes_max: usize) {
        (self.until_mono_ms, self.bytes_left) = (until_mono_ms, bytes_max);
    }

    /// From now on reads and writes end this much later. The bytes are not bounded.
    pub(crate) fn allow_for_ms(&mut self, ms: u64) {
        self.allow(self.timer.monotonic_ms() + ms, usize::MAX);
    }

    fn left(&self) -> io::Result<Duration> {
        match self.until_mono_ms.saturating_sub(self.timer.monotonic_ms()) {
            0 => Err(io::ErrorKind::TimedOut.into()),
            left_ms => Ok(Duration::from_millis(left_ms)),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes_left == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "answer over its limit"));
        }
        let most = buffer.len().min(self.bytes_left);
        loop {
            self.socket.set_read_timeout(Some(self.left()?))?;
            match self.socket.read(&mut buffer[..most]) {
                Ok(read) => {
                    self.bytes_left -= read;
                    return Ok(read);
                }
                // The system does not resume a read with a timeout after a signal (signal(7)).
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_wait(&error) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let late = self
            .write_timeout
            .map_or(io::ErrorKind::TimedOut, |_| io::ErrorKind::BrokenPipe);
        loop {
            let wait = self.write_timeout.map_or_else(|| self.left(), Ok)?;
            self.socket.set_write_timeout(Some(wait))?;
            match self.socket.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_wait(&error) => return Err(late.into()),
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a read or write ended at its deadline.
pub(crate) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
