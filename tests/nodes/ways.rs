//! A proxy between a node and a server, on a Unix socket. It forwards bytes until it is cut or
//! mute. Each connection has two threads.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::{Condvar, Mutex};
use socket2::SockRef;

/// The treatment of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Open,
    /// Open connections end, and new ones end at once.
    Cut,
    /// Nothing passes and nothing ends, as where a firewall drops packets.
    Mute,
}

/// The node's end of a connection and the server's.
type Pair = [UnixStream; 2];

struct State {
    mode: Mode,
    pairs: Vec<Weak<Pair>>,
}

struct Shared {
    server: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

/// The proxy. Dropping it ends it with all its connections.
pub struct Way {
    listener: UnixListener,
    shared: Arc<Shared>,
}

impl Way {
    /// Listens at `path` for the server that listens at `server`.
    pub fn open(path: &Path, server: PathBuf) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let state = Mutex::new(State {
            mode: Mode::Open,
            pairs: Vec::new(),
        });
        let shared = Arc::new(Shared {
            server,
            state,
            changed: Condvar::new(),
        });
        let (accepting, socket) = (Arc::clone(&shared), listener.try_clone().unwrap());
        start(move || {
            while let Ok((node, _)) = socket.accept() {
                accepting.connect(node);
            }
        });
        Self { listener, shared }
    }

    pub fn set(&self, mode: Mode) {
        let mut state = self.shared.state.lock();
        state.mode = mode;
        if mode == Mode::Cut {
            state
                .pairs
                .drain(..)
                .filter_map(|pair| pair.upgrade())
                .for_each(|pair| end(&pair));
        }
        self.shared.changed.notify_all();
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.set(Mode::Cut);
        let _ = SockRef::from(&self.listener).shutdown(Shutdown::Both);
    }
}

impl Shared {
    /// Drops the node's socket, which closes it, if the way is cut or the server unreachable.
    fn connect(self: &Arc<Self>, node: UnixStream) {
        let Ok(server) = UnixStream::connect(&self.server) else {
            return;
        };
        let pair = Arc::new([node, server]);
        let mut state = self.state.lock();
        if state.mode == Mode::Cut {
            return;
        }
        state.pairs.retain(|pair| pair.strong_count() > 0);
        state.pairs.push(Arc::downgrade(&pair));
        drop(state);
        for (from, to) in [(0, 1), (1, 0)] {
            let (shared, pair) = (Arc::clone(self), Arc::clone(&pair));
            start(move || {
                // When one direction ends, the whole connection ends.
                let _ = shared.pass(&pair[from], &pair[to]);
                end(&pair);
            });
        }
    }

    fn pass(&self, mut from: &UnixStream, mut to: &UnixStream) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 || !self.is_open() {
                return Ok(());
            }
            to.write_all(&buffer[..count])?;
        }
    }

    /// Waits while the way is mute.
    fn is_open(&self) -> bool {
        let mut state = self.state.lock();
        self.changed
            .wait_while(&mut state, |state| state.mode == Mode::Mute);
        state.mode == Mode::Open
    }
}

fn end(pair: &Pair) {
    for socket in pair {
        // The other side may have ended it before.
        let _ = socket.shutdown(Shutdown::Both);
    }
}

fn start(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().spawn(run).unwrap();
}
