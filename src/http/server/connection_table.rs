//! The connection table: who is connected, until when each may stay as it is, and the sweeper that
//! says so.
//!
//! A deadline costs a connection one relaxed store. Every quarter second the sweeper, an OS thread,
//! walks the table and wakes the coroutines whose deadline has passed; each then decides for
//! itself. may's own timeouts would cost a timer per read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use may::io::WaitIoWaker;
use parking_lot::Mutex;

use crate::base::Clock;
use crate::http::message::date::{DateCell, DateLine};
use crate::ops::Counter;
use crate::rt::coroutines::Parker;

/// No deadline: a handler is at work, or the slot is free.
pub const NEVER: u64 = u64::MAX;

/// Granularity of [`ConnectionTable::now_ms`] and of the `Date` header.
const TICK_MS: u64 = 50;

/// Ticks between two walks over the table. A deadline is noticed at most this late (250 ms).
const SWEEP_TICKS: u64 = 5;

/// Coroutines that may wait to be put behind the next poll of their worker.
const BREATHERS_MAX: usize = 1024;

struct Slot {
    deadline_ms: AtomicU64,
    /// Requests answered; written by the connection alone.
    requests: AtomicU64,
    waker: Mutex<Option<WaitIoWaker>>,
}

/// All connections of a server.
pub struct ConnectionTable {
    slots: Box<[Slot]>,
    free: Mutex<Vec<u32>>,
    open: AtomicUsize,
    /// Connections that may be open; at most the table's size.
    cap: AtomicUsize,
    clock: Clock,
    now_ms: AtomicU64,
    date: DateCell,
    /// Requests of connections that have ended.
    requests_ended: AtomicU64,
    /// The accept loop, while it waits for a slot.
    waiting: Mutex<Option<Parker>>,
    is_waiting: AtomicBool,
    breathe: Sender<WaitIoWaker>,
    breathers: Receiver<WaitIoWaker>,
    breaths: Counter,
    /// The accept loop, while accepting fails.
    paused: Mutex<Option<WaitIoWaker>>,
    stop: AtomicBool,
}

impl ConnectionTable {
    /// A table for `connections_max` connections.
    pub fn new(connections_max: usize, clock: &Clock) -> Self {
        let slot = || Slot {
            deadline_ms: AtomicU64::new(NEVER),
            requests: AtomicU64::new(0),
            waker: Mutex::new(None),
        };
        let (breathe, breathers) = bounded(BREATHERS_MAX);
        Self {
            slots: (0..connections_max).map(|_| slot()).collect(),
            free: Mutex::new((0..connections_max as u32).rev().collect()),
            open: AtomicUsize::new(0),
            cap: AtomicUsize::new(connections_max),
            now_ms: AtomicU64::new(clock.monotonic_ms()),
            date: DateCell::new(clock.now_ms()),
            clock: clock.clone(),
            requests_ended: AtomicU64::new(0),
            waiting: Mutex::new(None),
            is_waiting: AtomicBool::new(false),
            breathe,
            breathers,
            breaths: Counter::new(),
            paused: Mutex::new(None),
            stop: AtomicBool::new(false),
        }
    }

    /// Monotonic milliseconds, at most a tick old; one load.
    pub fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// Monotonic nanoseconds, exact.
    pub fn now_ns(&self) -> u64 {
        self.clock.monotonic_ns()
    }

    /// The `Date` line of the present second.
    pub fn date_line(&self) -> DateLine {
        self.date.line()
    }

    /// Open connections.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections that may be open.
    pub fn cap(&self) -> usize {
        self.cap.load(Ordering::Relaxed)
    }

    /// Changes that, as far as the table reaches. Those that are open stay.
    pub fn set_cap(&self, connections_max: usize) {
        self.cap.store(connections_max.clamp(1, self.slots.len()), Ordering::Relaxed);
    }

    /// Connections that the table has room for.
    pub fn room(&self) -> usize {
        self.slots.len()
    }

    /// Requests answered since start.
    pub fn requests(&self) -> u64 {
        let live = self.slots.iter().map(|slot| slot.requests.load(Ordering::Relaxed));
        self.requests_ended.load(Ordering::Relaxed) + live.sum::<u64>()
    }

    /// A free slot, if the cap allows one more connection.
    pub fn acquire(self: &Arc<Self>) -> Option<SlotGuard> {
        if self.open() >= self.cap() {
            return None;
        }
        let index = self.free.lock().pop()?;
        self.open.fetch_add(1, Ordering::Relaxed);
        Some(SlotGuard { slots: Arc::clone(self), index })
    }

    /// Parks the accept loop until a connection ends, or for `limit_ms`.
    pub fn wait_for_room(&self, limit_ms: u64) {
        let parker = Parker::current();
        *self.waiting.lock() = Some(parker.clone());
        self.is_waiting.store(true, Ordering::SeqCst);
        if self.open() >= self.cap() {
            parker.park(limit_ms);
        }
        self.is_waiting.store(false, Ordering::SeqCst);
        self.waiting.lock().take();
    }

    /// Wakes every connection, so that it sees that the server drains.
    pub fn wake_all(&self) {
        for slot in &self.slots {
            if let Some(waker) = &*slot.waker.lock() {
                waker.wakeup();
            }
        }
    }

    /// Asks the sweeper to wake this coroutine from outside, which puts it behind the next poll of
    /// its worker's descriptors. False when too many ask.
    pub fn breathe(&self, waker: WaitIoWaker) -> bool {
        self.breaths.increment();
        self.breathe.try_send(waker).is_ok()
    }

    /// How often coroutines asked for that.
    pub fn breaths(&self) -> u64 {
        self.breaths.value()
    }

    /// Wakes `waker` at the next walk over the table, once.
    pub fn wake_at_next_sweep(&self, waker: WaitIoWaker) {
        *self.paused.lock() = Some(waker);
    }

    /// Ends [`sweep`](Self::sweep).
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// The sweeper's loop; the body of an OS thread.
    pub fn sweep(&self) {
        let mut ticks = 0u64;
        let mut second = 0;
        while !self.stop.load(Ordering::SeqCst) {
            match self.breathers.recv_timeout(Duration::from_millis(TICK_MS)) {
                Ok(waker) => {
                    waker.wakeup();
                    // Bounded: whoever is woken may ask again at once, and time must go on.
                    let others = self.breathers.try_iter().take(BREATHERS_MAX);
                    others.for_each(|waker| waker.wakeup());
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
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
        if let Some(waker) = self.paused.lock().take() {
            waker.wakeup();
        }
        for slot in &self.slots {
            if slot.deadline_ms.load(Ordering::Relaxed) <= now_ms
                && let Some(waker) = &*slot.waker.lock()
            {
                waker.wakeup();
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
        if self.is_waiting.load(Ordering::SeqCst)
            && let Some(parker) = &*self.waiting.lock()
        {
            parker.unpark();
        }
    }
}

/// A connection's place in the table, given back on drop.
pub struct SlotGuard {
    slots: Arc<ConnectionTable>,
    index: u32,
}

impl SlotGuard {
    /// Lets the sweeper wake this connection.
    pub fn register(&self, waker: WaitIoWaker) {
        *self.slot().waker.lock() = Some(waker);
    }

    /// Until when the connection may stay as it is.
    pub fn set_deadline_in(&self, timeout_ms: u64) {
        self.slot().deadline_ms.store(self.slots.now_ms() + timeout_ms, Ordering::Relaxed);
    }

    /// Whether that has passed.
    pub fn is_expired(&self) -> bool {
        self.slot().deadline_ms.load(Ordering::Relaxed) <= self.slots.now_ms()
    }

    /// Counts answered requests.
    pub fn count_requests(&self, answered: u64) {
        let requests = &self.slot().requests;
        requests.store(requests.load(Ordering::Relaxed) + answered, Ordering::Relaxed);
    }

    /// Its number in the table.
    pub fn index(&self) -> u32 {
        self.index
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
