//! Single-flight: each symbol is fetched once, however many requests lack it.
//!
//! A request joins with the symbols it lacks and parks its coroutine. The feed scheduler, woken
//! through `kick`, takes pending symbols as one flight. Settling the flight wakes every request
//! that has nothing left to wait for. Requests run on the edge, the scheduler on a lane thread. The
//! lock is held for short walks over memory only; no waiter is woken, parked or dropped under it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::base::{Clock, Symbol};
use crate::cache::pending::board::{Board, Busy, Limits, Slot, Waiter};
use crate::rt::moving::Parker;

/// Symbols settled before the lock is released for a moment. Each may have hundreds of waiting
/// requests, and the edge must not wait for a whole batch.
const SETTLE_CHUNK: usize = 32;

/// Time past its deadline after which [`SingleFlight::expire`] wakes a parked request.
const OVERDUE_MS: u64 = 100;

/// Wakes the feed scheduler when a symbol becomes pending. Called on the edge, outside the lock;
/// must return at once (a `try_send` into a bounded channel).
pub(crate) type Kick = Arc<dyn Fn() + Send + Sync>;

/// Counters that health and metrics show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingStats {
    /// Requests waiting now.
    pub waiters: usize,
    /// Symbols pending or in flight now.
    pub symbols: usize,
    /// Requests refused because a bound was reached.
    pub refused: u64,
    /// Requests whose wait timed out.
    pub timed_out: u64,
    /// Symbols dropped because nobody waited for them any longer.
    pub expired: u64,
}

/// The pending symbols of one class and the requests that wait for them. A cheap handle.
#[derive(Clone)]
pub(crate) struct SingleFlight(Arc<Shared>);

struct Shared {
    limits: Limits,
    clock: Clock,
    kick: Kick,
    board: Mutex<Board>,
    refused: AtomicU64,
    timed_out: AtomicU64,
    expired: AtomicU64,
}

impl SingleFlight {
    /// `kick` wakes the feed scheduler when a symbol becomes pending.
    pub(crate) fn new(limits: Limits, clock: Clock, kick: Kick) -> Self {
        Self(Arc::new(Shared {
            limits,
            clock,
            kick,
            board: Mutex::default(),
            refused: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }))
    }

    /// Registers the symbols that a request lacks. The [`Wait`] belongs to the calling coroutine or
    /// thread. Dropping it ends the request's wait; the symbols stay pending.
    ///
    /// # Errors
    /// [`Busy`] if a bound is reached. Then nothing is registered.
    pub(crate) fn join(&self, symbols: &[Symbol]) -> Result<Wait, Busy> {
        let parker = Parker::current();
        let now_mono_ms = self.0.clock.monotonic_ms();
        let mut removed = Vec::new();
        let joined =
            self.0
                .board
                .lock()
                .join(symbols, self.0.limits, parker, now_mono_ms, &mut removed);
        self.0
            .expired
            .fetch_add(removed.len() as u64, Ordering::Relaxed);
        let joined = joined.inspect_err(|_| {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
        })?;
        // Made before the kick, so that the request is taken out if the kick panics.
        let wait = Wait {
            of: self.clone(),
            waiter: joined.waiter,
            slots: joined.slots,
        };
        if joined.fresh {
            (self.0.kick)();
        }
        Ok(wait)
    }

    /// Takes at most `max` pending symbols for one upstream call, oldest first. They are in flight,
    /// and are not taken again, until they are settled or put back.
    pub(crate) fn take_pending(&self, max: usize) -> Flight {
        let mut board = self.0.board.lock();
        let batch = board.number();
        let mut symbols = Vec::new();
        while symbols.len() < max
            && let Some((ticket, symbol)) = board.queue.pop_front()
        {
            if let Some(slot) = board.slots.get_mut(&symbol)
                && slot.is_pending(ticket)
            {
                slot.batch = Some(batch);
                symbols.push(symbol);
            }
        }
        Flight {
            of: self.clone(),
            batch,
            symbols,
        }
    }

    /// The symbols that are pending or in flight; true means in flight.
    pub(super) fn held(&self) -> HashMap<Symbol, bool> {
        let board = self.0.board.lock();
        board
            .slots
            .iter()
            .map(|(symbol, slot)| (symbol.clone(), slot.batch.is_some()))
            .collect()
    }

    /// Makes symbols pending for which no request waits. The caller keeps the bounds. They are
    /// taken only by [`take_these`](Self::take_these).
    pub(super) fn note(&self, symbols: &[Symbol]) {
        let now_mono_ms = self.0.clock.monotonic_ms();
        if self.0.board.lock().note(symbols, now_mono_ms) {
            (self.0.kick)();
        }
    }

    /// Takes those of `symbols` that are pending, for one upstream call.
    pub(super) fn take_these(&self, symbols: &[Symbol]) -> Flight {
        let mut board = self.0.board.lock();
        let batch = board.number();
        let mut taken = symbols.to_vec();
        taken.retain(|symbol| {
            let slot = board
                .slots
                .get_mut(symbol)
                .filter(|slot| slot.batch.is_none());
            slot.map(|slot| slot.batch = Some(batch)).is_some()
        });
        Flight {
            of: self.clone(),
            batch,
            symbols: taken,
        }
    }

    /// Ends the wait for these symbols, whether pending or in flight: their quotes or negative
    /// entries are in L1, or could not be fetched.
    pub(crate) fn settle(&self, symbols: &[Symbol]) {
        self.settle_where(symbols, |_| true);
    }

    /// Wakes every waiting request, because no feed can answer it in time. The symbols stay
    /// pending, so that the next call may have brought them when the clients ask again.
    pub(crate) fn dismiss(&self) {
        let waiting: Vec<Arc<Waiter>> = self.0.board.lock().waiters.values().cloned().collect();
        for waiter in waiting {
            waiter.parker.unpark();
        }
    }

    /// To be called about every second. Drops pending symbols that nobody waits for and nobody
    /// asked for within `ttl_ms`, and wakes requests whose own timer was lost.
    pub(crate) fn expire(&self, ttl_ms: u64) {
        let now_mono_ms = self.0.clock.monotonic_ms();
        let mut removed = Vec::new();
        let overdue: Vec<Arc<Waiter>> = {
            let mut board = self.0.board.lock();
            removed.extend(board.slots.extract_if(|_, slot| {
                slot.is_unwanted() && now_mono_ms.saturating_sub(slot.asked_mono_ms) >= ttl_ms
            }));
            let is_overdue = |waiter: &&Arc<Waiter>| {
                let deadline_mono_ms = waiter.deadline_mono_ms.load(Ordering::Relaxed);
                now_mono_ms > deadline_mono_ms.saturating_add(OVERDUE_MS)
            };
            board.waiters.values().filter(is_overdue).cloned().collect()
        };
        self.0
            .expired
            .fetch_add(removed.len() as u64, Ordering::Relaxed);
        for waiter in overdue {
            waiter.parker.unpark();
        }
    }

    /// Sizes now and counters since the start.
    pub(crate) fn stats(&self) -> PendingStats {
        let (waiters, symbols) = {
            let board = self.0.board.lock();
            (board.waiters.len(), board.slots.len())
        };
        PendingStats {
            waiters,
            symbols,
            refused: self.0.refused.load(Ordering::Relaxed),
            timed_out: self.0.timed_out.load(Ordering::Relaxed),
            expired: self.0.expired.load(Ordering::Relaxed),
        }
    }

    fn settle_where(&self, symbols: &[Symbol], applies: impl Fn(&Slot) -> bool) {
        for chunk in symbols.chunks(SETTLE_CHUNK) {
            let mut finished = Vec::new();
            let mut removed = Vec::with_capacity(chunk.len());
            {
                let mut board = self.0.board.lock();
                for symbol in chunk {
                    if board.slots.get(symbol).is_some_and(&applies)
                        && let Some(slot) = board.slots.remove(symbol)
                    {
                        board.count_down(&slot, &mut finished);
                        removed.push(slot);
                    }
                }
            }
            for waiter in finished {
                waiter.parker.unpark();
            }
        }
    }
}

/// A request's registration. It waits in [`until`](Self::until).
#[must_use = "a request waits only in `until`"]
pub(crate) struct Wait {
    of: SingleFlight,
    waiter: Arc<Waiter>,
    slots: Vec<(Symbol, u64)>,
}

impl Wait {
    /// Whether all symbols are settled.
    pub(crate) fn is_settled(&self) -> bool {
        self.waiter.left.load(Ordering::Acquire) == 0
    }

    /// Parks until every symbol is settled, for at most `timeout_ms`. Returns whether they all are.
    /// Hold no L1 view across this call: the coroutine may wake on another thread.
    pub(crate) fn until(self, timeout_ms: u64) -> bool {
        if self.is_settled() {
            return true;
        }
        let deadline_mono_ms = self.of.0.clock.monotonic_ms().saturating_add(timeout_ms);
        self.waiter
            .deadline_mono_ms
            .store(deadline_mono_ms, Ordering::Relaxed);
        self.waiter.parker.park(timeout_ms);
        let settled = self.is_settled();
        if !settled {
            self.of.0.timed_out.fetch_add(1, Ordering::Relaxed);
        }
        settled
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.is_settled() {
            return; // Settling has taken it out already.
        }
        let mut given_up = Vec::new();
        let mut board = self.of.0.board.lock();
        self.waiter.gave_up.store(true, Ordering::Relaxed);
        board.waiters.remove(&self.waiter.number);
        for (symbol, ticket) in &self.slots {
            if let Some(slot) = board.slots.get_mut(symbol)
                && slot.ticket == *ticket
            {
                slot.gave_up += 1;
                // Cleaned up only when half have given up, so that a thousand time-outs do not walk
                // a list of a thousand each.
                if slot.gave_up * 2 > slot.waiters.len() {
                    let gave_up = |waiter: &mut Arc<Waiter>| waiter.gave_up.load(Ordering::Relaxed);
                    given_up.extend(slot.waiters.extract_if(.., gave_up));
                    slot.gave_up = 0;
                }
            }
        }
        drop(board);
    }
}

/// Symbols of one class in flight with one upstream call. Dropping it without putting it back
/// settles them, so that no request waits for an answer that cannot come after a panic or a lost
/// job.
#[must_use = "dropping it settles the symbols"]
pub(crate) struct Flight {
    of: SingleFlight,
    batch: u64,
    symbols: Vec<Symbol>,
}

impl Flight {
    /// The symbols to ask for.
    pub(crate) fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Makes unsettled symbols pending again, before all others, for the next feed to take.
    pub(crate) fn put_back(mut self) {
        let mut board = self.of.0.board.lock();
        for symbol in std::mem::take(&mut self.symbols).into_iter().rev() {
            if let Some(slot) = board.slots.get_mut(&symbol)
                && slot.batch == Some(self.batch)
            {
                slot.batch = None;
                let ticket = slot.ticket;
                board.queue.push_front((ticket, symbol));
            }
        }
        drop(board);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let batch = self.batch;
        self.of
            .settle_where(&self.symbols, |slot| slot.batch == Some(batch));
    }
}

#[cfg(test)]
#[path = "single_flight_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "single_flight_model.rs"]
mod model;
