//! Accepting connections, capping them, and ending without losing a request.
//!
//! One coroutine for each listening socket accepts, and one OS thread enforces deadlines (see
//! `connection_table`). The main thread holds the `Server` and drains it.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use may::io::WaitIoWaker;

use super::connection_table::ConnectionTable;
use super::fan_out::FanOut;
use super::listener::{Listener, Socket};
use super::shared::{Serve, Shared};
use super::stream_writer::StreamWriters;
use crate::base::Clock;
use crate::http::connection::dispatch::Connection;
use crate::http::message::request::Peer;
use crate::http::settings::HttpSettings;
use crate::rt::moving;
use crate::rt::readiness::{Readiness, WOKEN};
use crate::rt::{coroutines, threads};

/// At the connection limit the accept loop checks for a free slot at least this often.
const ROOM_POLL_MS: u64 = 100;

/// Interval at which a drain checks whether the last connection has ended.
const DRAIN_POLL_MS: u64 = 5;

/// A running server.
pub struct Server<S> {
    shared: Arc<Shared<S>>,
    addresses: Vec<String>,
    acceptors: Vec<WaitIoWaker>,
    sweeper: Option<JoinHandle<()>>,
    /// `None` if the service has no streams.
    streams: Option<(StreamWriters, FanOut)>,
}

impl<S: Serve> Server<S> {
    /// Starts to serve on all `listeners`, which share every limit.
    ///
    /// # Errors
    /// A thread or coroutine cannot be started, or a listener cannot be polled.
    pub fn start(
        listeners: Vec<Listener>,
        settings: &HttpSettings,
        clock: &Clock,
        service: S,
    ) -> io::Result<Self> {
        let slots = Arc::new(ConnectionTable::new(settings.connections_max, clock));
        let shared = Arc::new(Shared::new(service, settings, Arc::clone(&slots)));
        let addresses = listeners.iter().map(Listener::address).collect();
        let sweeper = threads::spawn("http-sweep", move || slots.sweep())?;
        let news = shared.service.news();
        let streams = match news {
            Some(news) => Some((StreamWriters::start(&shared)?, FanOut::start(&shared, news)?)),
            None => None,
        };
        let mut acceptors = Vec::new();
        for listener in listeners {
            let descriptor = listener.as_raw_fd();
            let end = AcceptingEnds::begin(&shared);
            let readiness = Readiness::of(Accepting {
                listener,
                _end: end,
            })?;
            acceptors.push(readiness.waker());
            let accepted = Arc::clone(&shared);
            coroutines::spawn_for(descriptor, move || accept_loop(&readiness, &accepted))?;
        }
        Ok(Self {
            shared,
            addresses,
            acceptors,
            sweeper: Some(sweeper),
            streams,
        })
    }

    /// The first listening address: `127.0.0.1:8080` or `unix:/path`.
    pub fn address(&self) -> &str {
        self.addresses.first().map_or("", String::as_str)
    }

    /// All listening addresses.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The state that the connections share: counters, the service.
    pub fn shared(&self) -> &Arc<Shared<S>> {
        &self.shared
    }

    /// Stops accepting, lets every request that has reached us be answered, and returns when the
    /// last connection has ended or `drain_timeout_ms` have passed. Returns how many were cut off.
    pub fn drain(mut self) -> usize {
        self.shared.draining.store(true, Ordering::SeqCst);
        self.acceptors.iter().for_each(WaitIoWaker::wakeup);
        let slots = &self.shared.slots;
        slots.wake_all();
        let parker = moving::Parker::current();
        let deadline_ms = slots.now_ms() + self.shared.settings().drain_timeout_ms;
        let busy = || slots.open() > 0 || self.shared.accepting.load(Ordering::SeqCst) > 0;
        while busy() && slots.now_ms() < deadline_ms {
            parker.park(DRAIN_POLL_MS);
        }
        self.shared.ended.store(true, Ordering::SeqCst);
        let left = slots.open();
        if let Some((writers, fan_out)) = self.streams.take() {
            fan_out.stop();
            writers.stop();
        }
        slots.stop();
        if let Some(sweeper) = self.sweeper.take() {
            // The sweeper only wakes coroutines. If it panicked, nothing is left to do here.
            let _ = sweeper.join();
        }
        left
    }
}

/// Connections taken in a row before the worker polls its other descriptors again.
const ACCEPTS_MAX: u32 = 32;

/// The listener, and after it the news that it is closed.
struct Accepting<S> {
    listener: Listener,
    _end: AcceptingEnds<S>,
}

struct AcceptingEnds<S>(Arc<Shared<S>>);

impl<S> AcceptingEnds<S> {
    fn begin(shared: &Arc<Shared<S>>) -> Self {
        shared.accepting.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared))
    }
}

impl<S> Drop for AcceptingEnds<S> {
    fn drop(&mut self) {
        self.0.accepting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<S> AsRawFd for Accepting<S> {
    fn as_raw_fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }
}

fn accept_loop<S: Serve>(readiness: &Readiness<Accepting<S>>, shared: &Arc<Shared<S>>) {
    let mut in_a_row = 0;
    loop {
        in_a_row += 1;
        if in_a_row >= ACCEPTS_MAX && shared.slots.wake_after_poll(readiness.waker()) {
            in_a_row = 0;
            // New connections do not end this wait: see `Connection::yield_to_poll`.
            while readiness.wait() & WOKEN == 0 {}
        }
        match readiness.owner().listener.accept() {
            // At the connection limit `admit` waits, and the loop with it.
            Ok((socket, peer)) => admit(socket, peer, shared),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // The backlog from before the drain is now empty. Its connections are answered too.
                if shared.is_draining() {
                    break;
                }
                in_a_row = 0;
                readiness.wait();
            }
            Err(error) if is_per_connection(&error) => shared.stats.accept_errors.increment(),
            Err(error) => {
                shared.stats.accept_errors.increment();
                // Retrying at once would burn a core. The sweeper wakes the loop at its next scan.
                tracing::warn!(%error, "cannot accept new connections; trying again in a moment");
                shared.slots.wake_at_next_sweep(readiness.waker());
                while readiness.wait() & WOKEN == 0 {}
                if shared.is_draining() {
                    break;
                }
            }
        }
    }
}

/// Errors of the connection that was about to be accepted, not of the listener (accept(2)).
fn is_per_connection(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::Interrupted
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::TimedOut
    )
}

fn admit<S: Serve>(socket: Socket, peer: Peer, shared: &Arc<Shared<S>>) {
    let slot = loop {
        match shared.slots.acquire() {
            Some(slot) => break slot,
            None if shared.ended.load(Ordering::SeqCst) => return,
            None => {
                // Accepting pauses here: further clients wait in the kernel's backlog.
                shared.stats.accept_pauses.increment();
                if shared.service.makes_room() {
                    shared.slots.evict_most_silent();
                }
                shared.slots.wait_for_room(ROOM_POLL_MS);
            }
        }
    };
    let Some(place) = shared.place(peer) else {
        shared.stats.address_refusals.increment();
        return;
    };
    shared.stats.accepted.increment();
    let descriptor = socket.as_raw_fd();
    let connection = Connection::new(socket, peer, Arc::clone(shared), place, slot);
    let started = connection
        .and_then(|connection| coroutines::spawn_for(descriptor, move || connection.run()));
    if let Err(error) = started {
        shared.stats.accept_errors.increment();
        tracing::warn!(%error, "a new connection could not be served and was closed");
    }
}
