//! A socket whose reads and writes end by a deadline, however the bytes drip in, and whose answers
//! are bounded.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::base::Clock;

/// A connected socket of either kind.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn set_timeouts(&self, wait: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => {
                tcp.set_read_timeout(Some(wait)).and(tcp.set_write_timeout(Some(wait)))
            }
            Self::Unix(unix) => {
                unix.set_read_timeout(Some(wait)).and(unix.set_write_timeout(Some(wait)))
            }
        }
    }
}

/// A socket and the time by which every read and write has ended.
#[derive(Debug)]
pub(super) struct Timed {
    socket: Socket,
    /// The machine's, whatever clock the market has.
    timer: Clock,
    until_mono_ms: u64,
    /// Bytes that may still be read until the next [`allow`](Timed::allow).
    bytes_left: usize,
}

impl Timed {
    pub(super) fn new(socket: Socket, timer: &Clock) -> Self {
        Self { socket, timer: timer.clone(), until_mono_ms: 0, bytes_left: 0 }
    }

    /// From now on everything ends by `until_mono_ms`, and no more than `bytes_max` are read.
    pub(super) fn allow(&mut self, until_mono_ms: u64, bytes_max: usize) {
        (self.until_mono_ms, self.bytes_left) = (until_mono_ms, bytes_max);
    }

    /// Reads or writes once, and again where a signal interrupts that: the system does not resume a
    /// call of a socket that has a timeout (signal(7)), and a broken call costs the connection.
    fn once(
        &mut self,
        mut work: impl FnMut(&mut Socket) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            self.limit()?;
            match work(&mut self.socket) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done.map_err(as_late),
            }
        }
    }

    /// Sets the time that is left as the socket's own timeout.
    fn limit(&self) -> io::Result<()> {
        let left_ms = self.until_mono_ms.saturating_sub(self.timer.monotonic_ms());
        if left_ms == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_timeouts(Duration::from_millis(left_ms))
    }
}

/// The system says of a socket's timeout that the call would block.
fn as_late(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes_left == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "answer over its limit"));
        }
        let most = buffer.len().min(self.bytes_left);
        let read = self.once(|socket| match socket {
            Socket::Tcp(tcp) => tcp.read(&mut buffer[..most]),
            Socket::Unix(unix) => unix.read(&mut buffer[..most]),
        })?;
        self.bytes_left -= read;
        Ok(read)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.once(|socket| match socket {
            Socket::Tcp(tcp) => tcp.write(bytes),
            Socket::Unix(unix) => unix.write(bytes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
