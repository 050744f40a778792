//! The thread `relay`: subscribes, and again after a failure.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use parking_lot::Mutex;

use super::board::Board;
use super::reading::{Counters, RelayReading, State};
use super::session::{self, Ended};
use super::traits::Listener;
use crate::base::{Clock, Symbol};
use crate::cache::valkey::{BackOff, Client, Deadlines, Installation, Server};
use crate::rt::threads;

/// How often a waiting thread looks whether it may go on.
const LOOK: Duration = Duration::from_millis(100);
/// Longest that the end of the service waits for the thread.
const STOP_WAIT: Duration = Duration::from_millis(250);
/// Of the connection that reads what the server keeps.
const READ: Deadlines = Deadlines { connect_ms: 500, call_ms: 2_000 };

/// What the thread works with.
pub struct FollowerParts {
    pub server: Arc<Server>,
    pub installation: Arc<Installation>,
    pub listener: Box<dyn Listener>,
}

/// What the thread and its owner share.
pub(super) struct Shared {
    pub(super) counters: Counters,
    pub(super) board: Mutex<Board>,
    pub(super) timer: Clock,
}

/// State of the thread.
pub(super) struct Worker {
    pub(super) server: Arc<Server>,
    pub(super) installation: Arc<Installation>,
    pub(super) reads: Client,
    pub(super) listener: Box<dyn Listener>,
    pub(super) shared: Arc<Shared>,
    stop: Receiver<()>,
    /// Dropped with the thread, whatever ends it.
    _done: Sender<()>,
}

/// The running thread. Dropping it ends it.
pub struct Follower {
    shared: Arc<Shared>,
    running: Option<Sender<()>>,
    ended: Receiver<()>,
}

impl Follower {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(parts: FollowerParts) -> io::Result<Self> {
        let timer = parts.server.timer().clone();
        let board = Mutex::new(Board::new());
        let shared = Arc::new(Shared { counters: Counters::default(), board, timer });
        let (running, stop) = bounded(0);
        let (done, ended) = bounded(0);
        let worker = Worker {
            reads: Client::new(&parts.server, READ),
            installation: parts.installation,
            server: parts.server,
            listener: parts.listener,
            shared: Arc::clone(&shared),
            stop,
            _done: done,
        };
        threads::spawn("relay", move || worker.run())?;
        Ok(Self { shared, running: Some(running), ended })
    }

    /// What the nodes want now, each symbol once.
    pub fn wanted(&self) -> Vec<Symbol> {
        self.shared.board.lock().wanted(self.shared.timer.monotonic_ms())
    }

    /// For health and metrics.
    pub fn reading(&self) -> RelayReading {
        self.shared.counters.read(self.shared.timer.monotonic_ms())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.running.take());
        let _ = self.ended.recv_timeout(STOP_WAIT);
    }
}

impl Worker {
    fn run(self) {
        let mut back_off = BackOff::new();
        let mut sequence = session::Following::default();
        while !self.is_stopping() {
            self.shared.counters.set_state(State::Connecting);
            let (ended, spoke) = session::run(&self, &mut sequence);
            if ended == Ended::Stopped {
                return;
            }
            self.shared.counters.failures.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if spoke {
                back_off.succeeded();
            }
            back_off.failed(self.now_mono_ms());
            self.shared.counters.set_state(State::Waiting);
            while back_off.wait_ms(self.now_mono_ms()) > 0 {
                if self.stop.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
            }
        }
    }

    pub(super) fn now_mono_ms(&self) -> u64 {
        self.shared.timer.monotonic_ms()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.try_recv() == Err(TryRecvError::Disconnected)
    }
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod tests;
