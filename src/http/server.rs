//! Accepting connections, capping them, and ending without losing a request.
//!
//! One coroutine accepts; one OS thread sweeps deadlines (see `slots`). `Server` is held by the
//! main thread, which drains it.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use may::io::{CoIo, WaitIo, WaitIoWaker};
use parking_lot::Mutex;
use std::os::fd::AsRawFd;

use super::Serve;
use super::conn::Connection;
use super::listen::{Descriptor, Listener, Socket};
use super::request::Peer;
use super::slots::Slots;
use super::stats::HttpStats;
use crate::base::Clock;
use crate::config::HttpSettings;
use crate::rt::{edge, threads};

/// Output waiting for slow readers, all connections together: past it the slowest lose.
pub const UNREAD_OUTPUT_TOTAL_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Pause of the accept loop when the process or the machine has no descriptors or memory left;
/// going on at once would burn a core.
const ACCEPT_PAUSE_MS: u64 = 100;

/// What all connections of a server share.
pub struct Shared<S> {
    pub service: S,
    pub settings: HttpSettings,
    pub slots: Arc<Slots>,
    pub stats: HttpStats,
    pub unread_output_bytes: AtomicUsize,
    per_address: Mutex<HashMap<IpAddr, usize>>,
    draining: AtomicBool,
    /// The drain is over; whoever still waits for a slot gets none.
    ended: AtomicBool,
    accepting: AtomicBool,
}

impl<S> Shared<S> {
    pub(super) fn new(service: S, settings: &HttpSettings, slots: Arc<Slots>) -> Self {
        Self {
            service,
            settings: settings.clone(),
            slots,
            stats: HttpStats::default(),
            unread_output_bytes: AtomicUsize::new(0),
            per_address: Mutex::new(HashMap::new()),
            draining: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            accepting: AtomicBool::new(true),
        }
    }

    /// Whether connections are to end after their next answer.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(super) fn draining(&self) -> &AtomicBool {
        &self.draining
    }
}

/// A running server.
pub struct Server<S> {
    shared: Arc<Shared<S>>,
    address: String,
    acceptor: WaitIoWaker,
    sweeper: Option<JoinHandle<()>>,
}

impl<S: Serve> Server<S> {
    /// Starts to serve on `listener`.
    ///
    /// # Errors
    /// When a thread, a coroutine or the poll registration cannot be had.
    pub fn start(
        listener: Listener,
        settings: &HttpSettings,
        clock: &Clock,
        service: S,
    ) -> io::Result<Self> {
        let slots = Arc::new(Slots::new(settings.connections_max, clock));
        let shared = Arc::new(Shared::new(service, settings, Arc::clone(&slots)));
        let address = listener.address();
        let sweeper = threads::spawn("http-sweep", move || slots.sweep())?;
        let descriptor = listener.as_raw_fd();
        let poll = CoIo::new(Descriptor::of(&listener)).map_err(io::Error::from)?;
        let acceptor = poll.waker();
        let accepted = Arc::clone(&shared);
        edge::spawn_for(descriptor, move || {
            accept_loop(&poll, &listener, &accepted);
            drop(poll); // before the listener: see Descriptor
            drop(listener);
            accepted.accepting.store(false, Ordering::SeqCst);
        })?;
        Ok(Self { shared, address, acceptor, sweeper: Some(sweeper) })
    }

    /// Where it listens, `127.0.0.1:8080` or `unix:/path`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What the connections share: counters, the service.
    pub fn shared(&self) -> &Arc<Shared<S>> {
        &self.shared
    }

    /// Stops accepting, lets every request that has reached us be answered, and returns when the
    /// last connection has ended or `drain_timeout_ms` have passed. Gives how many were cut off.
    pub fn drain(mut self) -> usize {
        self.shared.draining.store(true, Ordering::SeqCst);
        self.acceptor.wakeup();
        let slots = &self.shared.slots;
        slots.wake_all();
        let parker = edge::Parker::current();
        let deadline_ms = slots.now_ms() + self.shared.settings.drain_timeout_ms;
        let busy = || slots.open() > 0 || self.shared.accepting.load(Ordering::SeqCst);
        while busy() && slots.now_ms() < deadline_ms {
            parker.park(20);
        }
        self.shared.ended.store(true, Ordering::SeqCst);
        let left = slots.open();
        slots.stop();
        if let Some(sweeper) = self.sweeper.take() {
            // It only loops and wakes; if it ever panicked there is nothing left to do here.
            let _ = sweeper.join();
        }
        left
    }
}

/// Connections taken in a row before the worker polls its other descriptors again.
const ACCEPTS_MAX: u32 = 32;

fn accept_loop<S: Serve>(poll: &CoIo<Descriptor>, listener: &Listener, shared: &Arc<Shared<S>>) {
    let mut in_a_row = 0;
    loop {
        in_a_row += 1;
        if in_a_row >= ACCEPTS_MAX && shared.slots.breathe(poll.waker()) {
            in_a_row = 0;
            poll.wait_io();
        }
        match listener.accept() {
            // At the cap this one waits in `admit`, and with it the loop.
            Ok((socket, peer)) => admit(socket, peer, shared),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // What was in the backlog when draining began has been taken; it is answered too.
                if shared.is_draining() {
                    break;
                }
                in_a_row = 0;
                poll.wait_io();
            }
            Err(error) if is_per_connection(&error) => shared.stats.accept_errors.add(1),
            Err(error) => {
                shared.stats.accept_errors.add(1);
                tracing::warn!(%error, "accept fails; pausing");
                edge::Parker::current().park(ACCEPT_PAUSE_MS);
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
    matches!(error.kind(), Kind::ConnectionAborted | Kind::Interrupted | Kind::ConnectionReset)
}

fn admit<S: Serve>(socket: Socket, peer: Peer, shared: &Arc<Shared<S>>) {
    let slot = loop {
        match shared.slots.acquire() {
            Some(slot) => break slot,
            None if shared.ended.load(Ordering::SeqCst) => return,
            None => {
                // Accepting pauses here: further clients wait in the kernel's backlog.
                shared.stats.accept_pauses.add(1);
                shared.slots.wait_for_room(ACCEPT_PAUSE_MS);
            }
        }
    };
    let Some(place) = AddressPlace::take(shared, peer) else {
        shared.stats.address_refusals.add(1);
        return;
    };
    shared.stats.accepted.add(1);
    let descriptor = socket.as_raw_fd();
    let started = Connection::new(socket, peer, Arc::clone(shared), slot).and_then(|connection| {
        edge::spawn_for(descriptor, move || {
            connection.run();
            drop(place);
        })
    });
    if let Err(error) = started {
        shared.stats.accept_errors.add(1);
        tracing::warn!(%error, "connection dropped");
    }
}

/// One connection's share of what its address may have open.
struct AddressPlace<S> {
    shared: Arc<Shared<S>>,
    address: Option<IpAddr>,
}

impl<S> AddressPlace<S> {
    fn take(shared: &Arc<Shared<S>>, peer: Peer) -> Option<Self> {
        let max = shared.settings.connections_per_address_max;
        let address = match peer {
            Peer::Ip(address) if max > 0 && !shared.settings.trusted_proxies.contains(&address) => {
                let mut open = shared.per_address.lock();
                let count = open.entry(address).or_insert(0);
                if *count >= max {
                    return None;
                }
                *count += 1;
                Some(address)
            }
            _ => None,
        };
        Some(Self { shared: Arc::clone(shared), address })
    }
}

impl<S> Drop for AddressPlace<S> {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut open = self.shared.per_address.lock();
        if let Some(count) = open.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&address);
            }
        }
    }
}
