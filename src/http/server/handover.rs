//! What connections and the thread `fan-out` hand to the threads that write streams.
//!
//! Any thread puts things in, and none of them waits for the writer; the writer takes them out.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::base::Stopwatch;
use crate::http::Group;
use crate::http::document::frames::{Frames, Framing};
use crate::http::server::connection_table::SlotGuard;
use crate::http::server::listener::Socket;
use crate::http::server::places::{Place, StreamStats};
use crate::rt::poll::Bell;

/// A socket and its slot, which limits how many sockets are open.
pub(crate) struct Accepted {
    pub socket: Socket,
    pub slot: SlotGuard,
}

impl AsRawFd for Accepted {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// A stream whose head has been written.
pub(crate) struct NewStream {
    /// Shared for a moment with the coroutine that has ended, if that had moved between workers.
    pub accepted: Arc<Accepted>,
    pub frames: Box<dyn Frames>,
    pub framing: Framing,
    /// Its place among the open streams.
    pub place: Place,
    /// Its place among the connections of its network.
    pub connection_place: Place,
    /// Input that came behind the request and was dropped.
    pub dropped_bytes: usize,
}

/// One walk over the streams, which all writers make together. Its end is that of the last of them.
pub(crate) struct Walk {
    stats: Arc<StreamStats>,
    begun: Stopwatch,
}

impl Walk {
    pub(crate) fn new(stats: &Arc<StreamStats>, begun: Stopwatch) -> Arc<Self> {
        Arc::new(Self {
            stats: Arc::clone(stats),
            begun,
        })
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.stats.fan_out.record(0, self.begun.elapsed_ns());
    }
}

/// The way to one writer.
pub(crate) struct Mailbox {
    /// Rung for all of the following.
    bell: Arc<Bell>,
    /// Rung when a stream may have to act without news: at its deadline, when it is cut off, when
    /// the server drains.
    pub(super) look_bell: Arc<Bell>,
    /// No more than there are connections, since each has its place in the connection table. `None`
    /// once the writer has ended.
    arrivals: Mutex<Option<Vec<NewStream>>>,
    /// Groups with something new, a bit each.
    due: AtomicU64,
    walk: Mutex<Option<Arc<Walk>>>,
    is_closed: AtomicBool,
}

impl Mailbox {
    pub(super) fn new(bell: Arc<Bell>, look_bell: Arc<Bell>) -> Self {
        Self {
            bell,
            look_bell,
            arrivals: Mutex::new(Some(Vec::new())),
            due: AtomicU64::new(0),
            walk: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Hands a stream over. One that comes when the writer has ended is closed.
    pub(crate) fn hand_over(&self, stream: NewStream) {
        if let Some(arrivals) = &mut *self.arrivals.lock() {
            arrivals.push(stream);
        }
        self.bell.ring();
    }

    /// Makes the streams of `group` send what is new, as a part of `walk`.
    pub(super) fn wake(&self, group: Group, walk: &Arc<Walk>) {
        *self.walk.lock() = Some(Arc::clone(walk));
        self.due.fetch_or(group.bit(), Ordering::SeqCst);
        self.bell.ring();
    }

    /// Makes the writer show that it is alive; see [`Self::is_behind`].
    pub(super) fn probe(&self) {
        self.bell.ring();
    }

    /// Whether the writer has not come to its bell yet.
    pub(super) fn is_behind(&self) -> bool {
        self.bell.is_rung()
    }

    /// Makes the writer end.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Takes what has come: streams, the groups that are due, and their walk.
    pub(super) fn take(&self) -> (Vec<NewStream>, u64, Option<Arc<Walk>>) {
        self.bell.hear();
        let arrived = self
            .arrivals
            .lock()
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        // The walk last: it is stored before its groups.
        let due = self.due.swap(0, Ordering::SeqCst);
        (arrived, due, self.walk.lock().take())
    }

    /// The writer hangs at its bell until the result is dropped.
    #[cfg(test)]
    pub(super) fn hold(&self) -> impl Sized {
        self.arrivals.lock()
    }

    /// Closes what arrives from now on.
    pub(super) fn end(&self) {
        drop(self.arrivals.lock().take());
    }
}

/// The mailboxes of all writers; empty while none runs.
#[derive(Default)]
pub(crate) struct Mailboxes(OnceLock<Box<[Arc<Mailbox>]>>);

impl Mailboxes {
    /// Only the first call counts: a server starts its writers once.
    pub(super) fn set(&self, all: Box<[Arc<Mailbox>]>) {
        let _ = self.0.set(all);
    }

    pub(super) fn all(&self) -> &[Arc<Mailbox>] {
        self.0.get().map_or(&[], |all| all)
    }

    /// The writer of the connection with this number in the connection table.
    pub(crate) fn of(&self, connection: u32) -> Option<&Arc<Mailbox>> {
        let all = self.all();
        all.get(connection as usize % all.len().max(1))
    }
}
