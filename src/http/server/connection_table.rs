//! The connection table: all open connections with their deadlines, and the sweeper that enforces
//! the deadlines.
//!
//! Setting a deadline costs one relaxed store; may's own timeouts would cost a timer for each read.
//! Every quarter second the sweeper, an OS thread, scans the table and wakes those whose deadline
//! has passed: the connection's coroutine, or the thread that writes its stream. They then end the
//! connection themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};
use may::io::WaitIoWaker;
use parking_lot::Mutex;

use crate::base::Clock;
use crate::http::message::date::DateCell;
use crate::ops::Counter;
use crate::rt::moving::Parker;
use crate::rt::poll::Bell;

/// No deadline, as in a free slot.
pub(crate) const NEVER: u64 = u64::MAX;

/// The deadline of a connection that has to make room for another one.
const EVICTED: u64 = 0;

/// Granularity of [`ConnectionTable::now_ms`] and of the `Date` header.
const TICK_MS: u64 = 50;

/// Ticks between two scans of the table. A deadline is noticed at most this late (250 ms).
const SWEEP_TICKS: u64 = 5;

/// Maximum number of coroutines that wait in [`ConnectionTable::wake_after_poll`].
const YIELDED_MAX: usize = 1024;

struct Slot {
    deadline_ms: AtomicU64,
    /// Requests answered. Only the connection itself writes this.
    requests: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

/// What runs a connection, for those who wake it.
pub(crate) enum Waker {
    /// Its coroutine.
    Coroutine(WaitIoWaker),
    /// The thread that writes its stream, which then looks at all of its streams.
    Thread(Arc<Bell>),
}

impl Waker {
    /// Wakes it, from any thread.
    pub(crate) fn wake(&self) {
        match self {
            Self::Coroutine(waker) => waker.wakeup(),
            Self::Thread(bell) => bell.ring(),
        }
    }
}

/// All connections of a server.
pub struct ConnectionTable {
    slots: Box<[Slot]>,
    free: Mutex<Vec<u32>>,
    open: AtomicUsize,
    /// Limit of open connections; at most the table's size.
    cap: AtomicUsize,
    /// For those who need the time to the millisecond.
    pub(crate) clock: Clock,
    now_ms: AtomicU64,
    /// The `Date` line of the current second.
    pub(crate) date: DateCell,
    /// Requests answered by connections that have ended.
    requests_ended: AtomicU64,
    /// The accept loops that wait for a free slot, each with a number of its wait.
    waiting: Mutex<Vec<(u64, Parker)>>,
    /// Number of waits so far.
    waits: AtomicU64,
    /// Accept loops that wait.
    waiting_count: AtomicUsize,
    yield_sender: Sender<WaitIoWaker>,
    yielded: Receiver<WaitIoWaker>,
    yields: Counter,
    /// The accept loops that pause after an error.
    paused: Mutex<Vec<WaitIoWaker>>,
    stop: AtomicBool,
}

impl ConnectionTable {
    /// A table for `connections_max` connections.
    pub(crate) fn new(connections_max: usize, clock: &Clock) -> Self {
        let slot = || Slot {
            deadline_ms: AtomicU64::new(NEVER),
            requests: AtomicU64::new(0),
            waker: Mutex::new(None),
        };
        let (yield_sender, yielded) = bounded(YIELDED_MAX);
        Self {
            slots: (0..connections_max).map(|_| slot()).collect(),
            free: Mutex::new((0..connections_max as u32).rev().collect()),
            open: AtomicUsize::new(0),
            cap: AtomicUsize::new(connections_max),
            now_ms: AtomicU64::new(clock.monotonic_ms()),
            date: DateCell::new(clock.now_ms()),
            clock: clock.clone(),
            requests_ended: AtomicU64::new(0),
            waiting: Mutex::default(),
            waits: AtomicU64::new(0),
            waiting_count: AtomicUsize::new(0),
            yield_sender,
            yielded,
            yields: Counter::new(),
            paused: Mutex::default(),
            stop: AtomicBool::new(false),
        }
    }

    /// Monotonic milliseconds, at most a tick old. Costs one load.
    pub fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// Open connections.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Limit of open connections.
    pub(crate) fn cap(&self) -> usize {
        self.cap.load(Ordering::Relaxed)
    }

    /// Changes the limit, at most to the table's size. Open connections stay open.
    pub(crate) fn set_cap(&self, connections_max: usize) {
        self.cap
            .store(connections_max.clamp(1, self.slots.len()), Ordering::Relaxed);
    }

    /// Size of the table.
    pub(crate) fn room(&self) -> usize {
        self.slots.len()
    }

    /// Requests answered since start.
    pub fn requests(&self) -> u64 {
        let live = self
            .slots
            .iter()
            .map(|slot| slot.requests.load(Ordering::Relaxed));
        self.requests_ended.load(Ordering::Relaxed) + live.sum::<u64>()
    }

    /// A free slot; `None` at the limit of open connections.
    pub(crate) fn acquire(self: &Arc<Self>) -> Option<SlotGuard> {
        if self.open() >= self.cap() {
            return None;
        }
        let index = self.free.lock().pop()?;
        self.open.fetch_add(1, Ordering::Relaxed);
        Some(SlotGuard {
            slots: Arc::clone(self),
            index,
        })
    }

    /// Parks an accept loop until a connection ends, at most for `limit_ms`.
    pub(crate) fn wait_for_room(&self, limit_ms: u64) {
        let parker = Parker::current();
        let number = self.waits.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().push((number, parker.clone()));
        self.waiting_count.fetch_add(1, Ordering::SeqCst);
        if self.open() >= self.cap() {
            parker.park(limit_ms);
        }
        self.waiting_count.fetch_sub(1, Ordering::SeqCst);
        self.waiting.lock().retain(|(other, _)| *other != number);
    }

    /// Makes the connection whose deadline is the next end at once: the one that has been silent
    /// for longest, where all have the same time. One whose request is being answered does not
    /// notice.
    pub(crate) fn evict_most_silent(&self) {
        let deadline_of = |slot: &&Slot| slot.deadline_ms.load(Ordering::Relaxed);
        let ending = self
            .slots
            .iter()
            .filter(|slot| !matches!(deadline_of(slot), EVICTED | NEVER));
        if let Some(slot) = ending.min_by_key(deadline_of) {
            slot.deadline_ms.store(EVICTED, Ordering::Relaxed);
            if let Some(waker) = &*slot.waker.lock() {
                waker.wake();
            }
        }
    }

    /// Wakes every connection, so that it notices that the server drains.
    pub(crate) fn wake_all(&self) {
        for slot in &self.slots {
            if let Some(waker) = &*slot.waker.lock() {
                waker.wake();
            }
        }
    }

    /// Asks the sweeper to wake this coroutine at once. As the wake-up comes from another thread,
    /// the coroutine's worker polls its other descriptors first. False if too many coroutines wait.
    pub(crate) fn wake_after_poll(&self, waker: WaitIoWaker) -> bool {
        self.yields.increment();
        self.yield_sender.try_send(waker).is_ok()
    }

    /// Number of calls of [`Self::wake_after_poll`].
    pub fn yields(&self) -> u64 {
        self.yields.value()
    }

    /// Wakes `waker` once, at the next scan of the table.
    pub(crate) fn wake_at_next_sweep(&self, waker: WaitIoWaker) {
        self.paused.lock().push(waker);
    }

    /// Ends [`sweep`](Self::sweep).
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// The sweeper's loop, which runs on its own OS thread until [`Self::stop`].
    pub(crate) fn sweep(&self) {
        let mut ticks = 0u64;
        let mut second = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let asked = |limit| self.yielded.recv_timeout(limit).ok();
            if let Some(waker) = self.clock.wait_ms(TICK_MS, asked) {
                waker.wakeup();
                // Bounded, because a woken coroutine may ask again at once, and the clock below
                // must advance.
                let others = self.yielded.try_iter().take(YIELDED_MAX);
                others.for_each(|waker| waker.wakeup());
            }
            let now_ms = self.clock.monotonic_ms();
            if now_ms < self.now_ms() + TICK_MS {
                continue;
            }
            self.now_ms.store(now_ms, Ordering::Relaxed);
            let wall_ms = self.clock.now_ms();
            if wall_ms / 1000 != second {
                second = wall_ms / 1000;
                self.date.set(wall_ms);
            }
            ticks += 1;
            if ticks.is_multiple_of(SWEEP_TICKS) {
                self.wake_expired(now_ms);
            }
        }
    }

    fn wake_expired(&self, now_ms: u64) {
        self.paused
            .lock()
            .drain(..)
            .for_each(|waker| waker.wakeup());
        for slot in &self.slots {
            if slot.deadline_ms.load(Ordering::Relaxed) <= now_ms
                && let Some(waker) = &*slot.waker.lock()
            {
                waker.wake();
            }
        }
    }

    fn release(&self, index: u32) {
        let slot = &self.slots[index as usize];
        slot.deadline_ms.store(NEVER, Ordering::Relaxed);
        slot.waker.lock().take();
        let requests = slot.requests.swap(0, Ordering::Relaxed);
        self.requests_ended.fetch_add(requests, Ordering::Relaxed);
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.free.lock().push(index);
        if self.waiting_count.load(Ordering::SeqCst) > 0 {
            self.waiting
                .lock()
                .iter()
                .for_each(|(_, parker)| parker.unpark());
        }
    }
}

/// A connection's slot in the table, freed on drop.
pub(crate) struct SlotGuard {
    slots: Arc<ConnectionTable>,
    /// Its place in the table.
    pub(crate) index: u32,
}

impl SlotGuard {
    /// Registers the waker by which the sweeper wakes this connection.
    pub(crate) fn register(&self, waker: Waker) {
        *self.slot().waker.lock() = Some(waker);
    }

    /// Sets the connection's deadline to `timeout_ms` from now.
    pub(crate) fn set_deadline_in(&self, timeout_ms: u64) {
        self.slot()
            .deadline_ms
            .store(self.slots.now_ms() + timeout_ms, Ordering::Relaxed);
    }

    /// Sets the connection's deadline.
    pub(crate) fn set_deadline_at(&self, at_ms: u64) {
        self.slot().deadline_ms.store(at_ms, Ordering::Relaxed);
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_expired(&self) -> bool {
        self.slot().deadline_ms.load(Ordering::Relaxed) <= self.slots.now_ms()
    }

    /// Whether the connection has to make room for another one.
    pub(crate) fn is_evicted(&self) -> bool {
        self.slot().deadline_ms.load(Ordering::Relaxed) == EVICTED
    }

    /// Counts answered requests.
    pub(crate) fn count_requests(&self, answered: u64) {
        let requests = &self.slot().requests;
        requests.store(requests.load(Ordering::Relaxed) + answered, Ordering::Relaxed);
    }

    fn slot(&self) -> &Slot {
        &self.slots.slots[self.index as usize]
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.slots.release(self.index);
    }
}
