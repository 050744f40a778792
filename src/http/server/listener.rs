//! Listening and connected sockets: TCP or Unix, bound here or handed over by systemd.
//!
//! Binding happens on the main thread, before any coroutine exists. may's own listener would set
//! SO_REUSEPORT, with which a second instance starts silently on the same port; so sockets are made
//! here.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use socket2::{Domain, SockAddr, Socket as RawSocket, Type};

use crate::http::message::request::Peer;
use crate::ops::owner;

/// Connections that the kernel may queue before they are accepted; it caps this at `somaxconn`.
const BACKLOG: i32 = 4096;

/// The reason why no listening socket could be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("{0:?} is not an address such as 127.0.0.1:8080 or unix:/run/bhav.sock")]
    BadAddress(String),
    #[error("{address} is in use, perhaps by another instance; port 0 takes a free one")]
    InUse { address: String },
    #[error("{address} exists and is not a socket")]
    NotASocket { address: String },
    #[error("cannot listen on {address}: {source}")]
    Io { address: String, source: io::Error },
    #[error("systemd passed {name}, which cannot be served: {reason}")]
    Inherited { name: String, reason: NotServed },
}

/// Why a passed socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum NotServed {
    #[error("it is no stream socket; a socket unit names each address by ListenStream=")]
    Kind,
    #[error("it does not listen; the socket unit must not have Accept=yes")]
    NotListening,
    #[error("it is neither of IPv4 or IPv6 nor a Unix socket")]
    Family,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A descriptor that a supervisor passed, with its name if it has one.
pub(crate) type Passed = (Option<String>, OwnedFd);

/// A bound, listening, non-blocking socket.
#[derive(Debug)]
pub struct Listener {
    socket: RawSocket,
    /// The path of a Unix socket that was made here, which is removed on drop.
    made: Option<PathBuf>,
}

/// An accepted connection.
#[derive(Debug)]
pub struct Socket(RawSocket);

impl Listener {
    /// All sockets that systemd `passed`, else those of `address`. Never empty.
    ///
    /// # Errors
    /// [`ListenError`]. A passed socket that cannot be served is one: its clients would connect and
    /// wait for ever.
    pub fn open(address: &str, passed: Vec<Passed>) -> Result<Vec<Self>, ListenError> {
        let mut listeners = Vec::new();
        for (name, descriptor) in passed {
            let name = name.unwrap_or_else(|| "a socket without a name".into());
            let socket = RawSocket::from(descriptor);
            match socket.r#type() {
                Ok(kind) => listeners.push(
                    Self::inherited(socket, kind)
                        .map_err(|reason| ListenError::Inherited { name, reason })?,
                ),
                // A file that another version has left with the supervisor.
                Err(error) => {
                    tracing::warn!(name, %error, "systemd passed a file that is no socket");
                }
            }
        }
        if listeners.is_empty() {
            return Self::bind(address);
        }
        Ok(listeners)
    }

    /// The sockets bound to `address`, whatever systemd passed: one, or where a name has several
    /// addresses one for each. Never empty.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn bind(address: &str) -> Result<Vec<Self>, ListenError> {
        match address.strip_prefix("unix:") {
            Some(path) => Ok(vec![Self::bind_unix(Path::new(path))?]),
            None => Self::bind_tcp(address),
        }
    }

    fn inherited(socket: RawSocket, kind: Type) -> Result<Self, NotServed> {
        if kind != Type::STREAM {
            return Err(NotServed::Kind);
        }
        let address = socket.local_addr()?;
        if !(address.is_ipv4() || address.is_ipv6() || address.is_unix()) {
            return Err(NotServed::Family);
        }
        if !socket.is_listener()? {
            return Err(NotServed::NotListening);
        }
        socket.set_nonblocking(true)?;
        Ok(Self { socket, made: None })
    }

    /// `localhost` is often an address of IPv4 and one of IPv6, and clients try either.
    fn bind_tcp(address: &str) -> Result<Vec<Self>, ListenError> {
        let bad = || ListenError::BadAddress(address.to_owned());
        let mut resolved: Vec<SocketAddr> = Vec::new();
        for found in address.to_socket_addrs().map_err(|_| bad())? {
            if !resolved.contains(&found) {
                resolved.push(found);
            }
        }
        let mut listeners: Vec<Self> = Vec::new();
        let mut absent = None;
        for mut at in resolved {
            // A free port that the kernel has chosen is the same for all.
            if let (0, Some(first)) = (at.port(), listeners.first()) {
                at.set_port(first.port());
            }
            match Self::bind_at(at) {
                Ok(listener) => listeners.push(listener),
                Err(error) if is_absent(&error) => absent = Some(error),
                Err(source) => return Err(in_words(address, source)),
            }
        }
        match absent {
            Some(source) if listeners.is_empty() => return Err(in_words(address, source)),
            Some(error) => {
                tracing::warn!(address, %error, "this machine lacks an address of that name");
            }
            None => {}
        }
        if listeners.is_empty() {
            Err(bad())
        } else {
            Ok(listeners)
        }
    }

    fn bind_at(address: SocketAddr) -> io::Result<Self> {
        let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        Self::listening(socket, None)
    }

    fn port(&self) -> u16 {
        let address = self
            .socket
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket());
        address.map_or(0, |address| address.port())
    }

    fn bind_unix(path: &Path) -> Result<Self, ListenError> {
        let address = format!("unix:{}", path.display());
        if let Ok(there) = path.symlink_metadata() {
            if !there.file_type().is_socket() {
                return Err(ListenError::NotASocket { address });
            }
            if UnixStream::connect(path).is_ok() {
                return Err(ListenError::InUse { address });
            }
            // Nobody accepts there: the file was left behind by an instance that was killed.
            std::fs::remove_file(path).map_err(|source| in_words(&address, source))?;
        }
        let bind = || -> io::Result<RawSocket> {
            let socket = RawSocket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.bind(&SockAddr::unix(path)?)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
            owner::give_name(path)?;
            Ok(socket)
        };
        let listener = bind().and_then(|socket| Self::listening(socket, Some(path.to_owned())));
        listener.map_err(|source| in_words(&address, source))
    }

    fn listening(socket: RawSocket, made: Option<PathBuf>) -> io::Result<Self> {
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, made })
    }

    /// Takes one waiting connection.
    ///
    /// # Errors
    /// `WouldBlock` when none waits; otherwise the error of accept(2).
    pub fn accept(&self) -> io::Result<(Socket, Peer)> {
        let (socket, address) = self.socket.accept()?;
        let Some(address) = address.as_socket() else {
            return Ok((Socket(socket), Peer::Unix));
        };
        socket.set_tcp_nodelay(true)?;
        Ok((Socket(socket), Peer::Ip(address.ip().to_canonical())))
    }

    /// The address for clients: `127.0.0.1:8080` or `unix:/path`.
    pub fn address(&self) -> String {
        let Ok(address) = self.socket.local_addr() else {
            return "unknown".into();
        };
        match (address.as_socket(), address.as_pathname()) {
            (Some(address), _) => address.to_string(),
            (None, Some(path)) => format!("unix:{}", path.display()),
            (None, None) => "unix".into(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.made {
            // Best effort: a left-over socket file is recognised and replaced at the next start.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether a machine does not have the address, as one without IPv6 has no `::1`.
fn is_absent(error: &io::Error) -> bool {
    let family = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(family)
}

fn in_words(address: &str, source: io::Error) -> ListenError {
    let address = address.to_owned();
    if source.kind() == io::ErrorKind::AddrInUse {
        ListenError::InUse { address }
    } else {
        ListenError::Io { address, source }
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads and writes are bare system calls: the C library's wrappers are cancellation points, whose
/// checks take more instructions than the rest of the call in user space.
impl Socket {
    /// One read(2); the socket is non-blocking.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self, into, RecvFlags::empty())?.0)
    }

    /// One write(2).
    pub(crate) fn write(&self, from: &[u8]) -> io::Result<usize> {
        Ok(send(self, from, SendFlags::NOSIGNAL)?)
    }

    /// One write of two pieces.
    fn write_both(&self, first: &[u8], second: &[u8]) -> io::Result<usize> {
        let pieces = [IoSlice::new(first), IoSlice::new(second)];
        let nothing = &mut SendAncillaryBuffer::default();
        Ok(sendmsg(self, &pieces, nothing, SendFlags::NOSIGNAL)?)
    }

    /// Writes as much as the kernel takes without waiting; returns how many bytes.
    #[inline]
    pub(crate) fn write_ready(&self, out: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < out.len() {
            match self.write(&out[at..]) {
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(at)
    }

    /// The same for two pieces, in one write if the kernel takes them at once.
    pub(crate) fn write_both_ready(&self, first: &[u8], second: &[u8]) -> io::Result<usize> {
        if second.is_empty() {
            return self.write_ready(first);
        }
        loop {
            match self.write_both(first, second) {
                Ok(count) if count < first.len() => {
                    return Ok(count + self.write_ready(&first[count..])?);
                }
                Ok(count) => return Ok(count + self.write_ready(&second[count - first.len()..])?),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Lets the kernel keep at most about `bytes` that are not sent yet, and give up a peer that
    /// acknowledges nothing for `dead_after`. A Unix socket has neither limit and needs none: its
    /// buffer is small, and its peer is a process of this machine.
    pub(crate) fn limit_unsent(&self, bytes: u32, dead_after: Duration) -> io::Result<()> {
        if self.0.domain()? == Domain::UNIX {
            return Ok(());
        }
        self.0.set_tcp_notsent_lowat(bytes)?;
        self.0.set_tcp_user_timeout(Some(dead_after))
    }

    /// Ends the sending direction.
    pub(crate) fn finish_writing(&self) {
        // It fails only if the peer is already gone.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}
