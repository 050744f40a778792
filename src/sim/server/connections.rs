//! The simulator's own HTTP/1.1 server: small, strict and blocking, one thread per connection and
//! no more than [`CONNECTIONS_MAX`] of them. It shares nothing with the product's edge, so that the
//! peer of our clients is independent of the code under test, and it can misbehave on the socket on
//! purpose. It must never be exposed: only the product's edge is built for hostile clients.

use std::collections::HashMap;
use std::io;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use socket2::SockRef;

use crate::base::Clock;
use crate::sim::server::message::{self, Delivery, Reply, Request};

/// Connections served at once; one more is closed at once. The service's lanes use about a dozen.
const CONNECTIONS_MAX: usize = 64;
/// Request line and headers. A thousand instruments in one URL need about 20 KiB.
const HEAD_BYTES_MAX: usize = 32 * 1024;
const HEADERS_MAX: usize = 64;
/// The largest documented request body is under 1 KiB.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Time-out from the first byte of a request to its last.
const REQUEST_TIMEOUT_MS: u64 = 10_000;
/// Time-out of a kept-alive connection without a request.
const IDLE_TIMEOUT_MS: u64 = 75_000;
const WRITE_TIMEOUT_MS: u64 = 10_000;
/// Longest that [`Server::stop`] waits for connection threads; all their waits end at once on stop.
const STOP_TIMEOUT_MS: u64 = 5_000;

/// Answers requests.
pub(crate) type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// A running server.
pub(crate) struct Server {
    addr: SocketAddr,
    listener: TcpListener,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// State shared by the acceptor and the connections.
struct Shared {
    handler: Box<Handler>,
    /// The value of the simulator's mark on every answer.
    mark: String,
    /// Real time, whatever clock the exchange runs on: deadlines on sockets are real.
    timer: Clock,
    stopping: AtomicBool,
    /// Number of connections refused over the cap.
    refused: Arc<AtomicU64>,
    next_id: AtomicU64,
    open: Mutex<HashMap<u64, TcpStream>>,
    /// Signalled when a connection ends and when stopping begins.
    changed: Condvar,
}

impl Server {
    /// Binds and serves until stopped or dropped.
    ///
    /// # Errors
    /// The address cannot be bound or a thread cannot be started.
    pub(crate) fn start(
        listen: &str,
        mark: String,
        refused: Arc<AtomicU64>,
        handler: Box<Handler>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            handler,
            mark,
            timer: Clock::system(),
            stopping: AtomicBool::new(false),
            refused,
            next_id: AtomicU64::new(0),
            open: Mutex::new(HashMap::new()),
            changed: Condvar::new(),
        });
        let accepting = listener.try_clone()?;
        let serving = shared.clone();
        let acceptor = start_thread("sim-accept", move || accept(&accepting, &serving))?;
        Ok(Self {
            addr,
            listener,
            shared,
            acceptor: Some(acceptor),
        })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Closes everything and waits for the threads. Doing it twice is harmless.
    pub(crate) fn stop(&mut self) {
        let Some(acceptor) = self.acceptor.take() else {
            return;
        };
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the blocked accept.
        let _ = SockRef::from(&self.listener).shutdown(Shutdown::Both);
        let _ = acceptor.join();
        let mut open = self.shared.open.lock();
        open.values()
            .for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        self.shared.changed.notify_all();
        while !open.is_empty() {
            let limit = Duration::from_millis(STOP_TIMEOUT_MS);
            if self.shared.changed.wait_for(&mut open, limit).timed_out() {
                tracing::warn!(connections = open.len(), "simulator connections did not end");
                return;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The only place of the simulator that starts threads.
fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(run)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.stopping.load(Ordering::SeqCst) {
        match listener.accept() {
            Ok((stream, _)) => admit(stream, shared),
            Err(error) if shared.stopping.load(Ordering::SeqCst) => {
                tracing::debug!(%error, "simulator stops accepting");
            }
            Err(error) => {
                tracing::warn!(%error, "simulator cannot accept");
                // Out of descriptors, most likely: give connections time to end.
                shared.pause(Duration::from_millis(50));
            }
        }
    }
}

fn admit(stream: TcpStream, shared: &Arc<Shared>) {
    let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
    {
        let mut open = shared.open.lock();
        let clone = stream.try_clone();
        let Ok(clone) = clone else {
            return reset(&stream);
        };
        if open.len() >= CONNECTIONS_MAX {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            return reset(&stream);
        }
        open.insert(id, clone);
    }
    let serving = shared.clone();
    let started = start_thread("sim-conn", move || {
        // Ends the registration however the connection ends, also by a panic.
        let _registered = Registered {
            id,
            shared: serving.clone(),
        };
        converse(&stream, &serving);
    });
    if let Err(error) = started {
        tracing::warn!(%error, "simulator cannot start a connection thread");
        shared.open.lock().remove(&id);
    }
}

struct Registered {
    id: u64,
    shared: Arc<Shared>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.shared.open.lock().remove(&self.id);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// Waits out `time` in real time; ends early when the server stops.
    fn pause(&self, time: Duration) {
        let until = self.timer.monotonic_ms() + time.as_millis() as u64;
        let mut open = self.open.lock();
        while !self.stopping.load(Ordering::SeqCst) {
            let left = until.saturating_sub(self.timer.monotonic_ms());
            if left == 0 {
                return;
            }
            self.changed
                .wait_for(&mut open, Duration::from_millis(left));
        }
    }
}

/// Makes the stream end with a reset when it is closed.
fn reset(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Serves requests until the connection ends.
fn converse(mut stream: &TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_write_timeout(Some(Duration::from_millis(WRITE_TIMEOUT_MS)));
    let mut buffer = Vec::new();
    loop {
        let (request, keep_alive) = match read_request(stream, &mut buffer, shared) {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(status) => {
                let reply = message::plain(status, "the request is not well-formed HTTP/1.1");
                let _ = stream.write_all(&message::head(
                    &reply,
                    &shared.mark,
                    false,
                    shared.timer.now(),
                ));
                let _ = stream.write_all(&reply.body);
                return;
            }
        };
        let mut reply = (shared.handler)(&request);
        if hold_back(stream, reply.delivery.delay_ms, shared) {
            return;
        }
        if reply.delivery.refuse {
            return reset(stream);
        }
        let keep_alive = keep_alive && !reply.delivery.truncate;
        if write_reply(stream, &reply, keep_alive, shared).is_err() || !keep_alive {
            return;
        }
        if let Some(upgrade) = reply.upgrade.take() {
            if upgrade.run(stream, &|| shared.stopping.load(Ordering::SeqCst)) {
                reset(stream);
            }
            return;
        }
    }
}

/// Waits before an answer. Returns true if the client left meanwhile, so that clients that give up
/// leave no threads behind.
fn hold_back(stream: &TcpStream, delay_ms: u64, shared: &Shared) -> bool {
    let until = shared.timer.monotonic_ms() + delay_ms;
    loop {
        let left = until.saturating_sub(shared.timer.monotonic_ms());
        if left == 0 {
            return false;
        }
        let _ = stream.set_read_timeout(Some(Duration::from_millis(left)));
        match stream.peek(&mut [0]) {
            Ok(0) => return true,
            // The next request has arrived already, so a peek would not wait.
            Ok(_) => shared.pause(Duration::from_millis(left)),
            Err(error) if timed_out(&error) => {}
            Err(_) => return true,
        }
    }
}

fn timed_out(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

fn write_reply(
    mut stream: &TcpStream,
    reply: &Reply,
    keep_alive: bool,
    shared: &Shared,
) -> io::Result<()> {
    let mut bytes = message::head(reply, &shared.mark, keep_alive, shared.timer.now());
    let head = bytes.len();
    bytes.extend_from_slice(&reply.body);
    let Delivery {
        truncate,
        bytes_per_s,
        ..
    } = reply.delivery;
    if truncate {
        // The head promises the whole body.
        bytes.truncate(head + reply.body.len() / 2);
    }
    let Some(rate) = bytes_per_s else {
        return stream.write_all(&bytes);
    };
    // Twenty pieces a second where the rate allows, else one byte at a time.
    let piece = (rate as usize / 20).max(1);
    let pause = Duration::from_millis(piece as u64 * 1000 / u64::from(rate.max(1)));
    for part in bytes.chunks(piece) {
        stream.write_all(part)?;
        shared.pause(pause);
        if shared.stopping.load(Ordering::SeqCst) {
            break;
        }
    }
    Ok(())
}

/// The next request and whether the connection stays; `None` at the end of the connection.
///
/// # Errors
/// The status to answer before closing.
fn read_request(
    mut stream: &TcpStream,
    buffer: &mut Vec<u8>,
    shared: &Shared,
) -> Result<Option<(Request, bool)>, u16> {
    let mut deadline: Option<u64> = None;
    let mut chunk = [0_u8; 8 * 1024];
    loop {
        if !buffer.is_empty() {
            if let Some((request, keep_alive, used)) =
                message::parse(buffer, HEAD_BYTES_MAX, HEADERS_MAX, BODY_BYTES_MAX)?
            {
                buffer.drain(..used);
                return Ok(Some((request, keep_alive)));
            }
            let by = deadline.get_or_insert(shared.timer.monotonic_ms() + REQUEST_TIMEOUT_MS);
            if shared.timer.monotonic_ms() >= *by {
                return Err(408);
            }
        }
        let wait = deadline
            .map_or(IDLE_TIMEOUT_MS, |by| by.saturating_sub(shared.timer.monotonic_ms()).max(1));
        let _ = stream.set_read_timeout(Some(Duration::from_millis(wait)));
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(read) => buffer.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if timed_out(&error) && deadline.is_some() => return Err(408),
            Err(_) => return Ok(None),
        }
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
