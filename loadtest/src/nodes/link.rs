//! The way from one node to a server: a socket of the driver's own, which passes bytes on until it
//! is cut, muted or slowed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use crate::error::Error;

/// Where a server listens, or where a link does.
#[derive(Debug, Clone)]
pub enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// What becomes of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They pass.
    Open,
    /// Connections end, and new ones end as soon as they are there.
    Cut,
    /// Nothing passes and nothing ends, as where a firewall drops packets.
    Mute,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    ToServer,
    ToNode,
}

/// Sees all bytes: which way, on which connection.
pub type Tap = Arc<dyn Fn(Way, u64, &[u8]) + Send + Sync>;

/// Both ends of a connection.
struct Pair {
    node: File,
    server: File,
}

struct State {
    mode: Mode,
    open: Vec<Weak<Pair>>,
    has_ended: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// How long each answer of the server is held up.
    delay_ms: AtomicU64,
    connections: AtomicU64,
    server: Address,
    tap: Option<Tap>,
}

/// A running link; dropping it ends it with all its connections.
pub struct Link {
    pub address: Address,
    shared: Arc<Shared>,
    listener: OwnedFd,
}

impl Link {
    /// Listens at a Unix socket for `server`.
    pub fn unix(path: PathBuf, server: Address) -> Result<Self, Error> {
        let listener = UnixListener::bind(&path).map_err(Error::io("listen"))?;
        let own = listener.try_clone().map_err(Error::io("listen"))?;
        let accept = move || listener.accept().map(|(stream, _)| File::from(OwnedFd::from(stream)));
        Ok(Self::start(Address::Unix(path), own.into(), accept, server, None))
    }

    /// Listens at a free port for `server`; `tap` sees what passes.
    pub fn tcp(server: SocketAddr, tap: Tap) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::io("listen"))?;
        let address = listener.local_addr().map_err(Error::io("listen"))?;
        let own = listener.try_clone().map_err(Error::io("listen"))?;
        let accept = move || {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            Ok(File::from(OwnedFd::from(stream)))
        };
        let server = Address::Tcp(server);
        Ok(Self::start(Address::Tcp(address), own.into(), accept, server, Some(tap)))
    }

    fn start(
        address: Address,
        listener: OwnedFd,
        accept: impl Fn() -> io::Result<File> + Send + 'static,
        server: Address,
        tap: Option<Tap>,
    ) -> Self {
        let state = State { mode: Mode::Open, open: Vec::new(), has_ended: false };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            delay_ms: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            server,
            tap,
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            while let Ok(node) = accept() {
                accepting.connect(node);
            }
        });
        Self { address, shared, listener }
    }

    pub fn set(&self, mode: Mode) {
        let mut state = self.shared.lock();
        state.mode = mode;
        if mode == Mode::Cut {
            state.end_connections();
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// From now on each answer comes so much later.
    pub fn delay(&self, delay_ms: u64) {
        self.shared.delay_ms.store(delay_ms, Ordering::Relaxed);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.has_ended = true;
        state.end_connections();
        drop(state);
        self.shared.changed.notify_all();
        shut(&self.listener);
    }
}

impl State {
    fn end_connections(&mut self) {
        for pair in self.open.drain(..).filter_map(|pair| pair.upgrade()) {
            pair.end();
        }
    }
}

impl Pair {
    fn end(&self) {
        shut(&self.node);
        shut(&self.server);
    }
}

/// Ends a socket for whoever reads, writes or accepts on it.
fn shut(socket: &impl AsRawFd) {
    // SAFETY: plain integers; the descriptor is open, since its owner is borrowed.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Dropped where the link is cut or the server away, which ends the node's end.
    fn connect(self: &Arc<Self>, node: File) {
        if self.lock().mode == Mode::Cut {
            return;
        }
        let server = match &self.server {
            Address::Unix(path) => UnixStream::connect(path).map(OwnedFd::from),
            Address::Tcp(address) => TcpStream::connect(address).and_then(|stream| {
                stream.set_nodelay(true)?;
                Ok(OwnedFd::from(stream))
            }),
        };
        let Ok(server) = server else { return };
        let pair = Arc::new(Pair { node, server: server.into() });
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        state.open.retain(|pair| pair.strong_count() > 0);
        state.open.push(Arc::downgrade(&pair));
        drop(state);
        for way in [Way::ToServer, Way::ToNode] {
            let (shared, pair) = (Arc::clone(self), Arc::clone(&pair));
            thread::spawn(move || {
                // Either end's end is the other's too.
                let _ = shared.pass(&pair, way, number);
                pair.end();
            });
        }
    }

    fn pass(&self, pair: &Pair, way: Way, number: u64) -> io::Result<()> {
        let (mut from, mut to) = match way {
            Way::ToServer => (&pair.node, &pair.server),
            Way::ToNode => (&pair.server, &pair.node),
        };
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 || !self.wait_until_open() {
                return Ok(());
            }
            if way == Way::ToNode {
                thread::sleep(Duration::from_millis(self.delay_ms.load(Ordering::Relaxed)));
            }
            if let Some(tap) = &self.tap {
                tap(way, number, &buffer[..read]);
            }
            to.write_all(&buffer[..read])?;
        }
    }

    /// Waits while it is muted; whether it is open then.
    fn wait_until_open(&self) -> bool {
        let mut state = self.lock();
        while state.mode == Mode::Mute && !state.has_ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.mode == Mode::Open && !state.has_ended
    }
}
