//! The state behind [`SingleFlight`](super::single_flight::SingleFlight): which symbols are
//! missing, which requests wait for them, and in which order they are fetched.
//!
//! Plain data, accessed only under its lock, by the edge and by lane threads. Never wakes or drops
//! a waiter: dropping a parker may yield, which no coroutine may do while it holds a lock. Waiters
//! to wake or drop are returned to the caller.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use foldhash::quality::RandomState;

use crate::base::Symbol;
use crate::rt::moving::Parker;

/// Bounds of one class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Requests that may wait at once (`waiters_max` of the cache settings).
    pub waiters_max: usize,
    /// Symbols pending or in flight at once.
    pub symbols_max: usize,
}

/// Why a request may not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    #[error("too many requests are waiting for quotes")]
    Waiters,
    #[error("too many symbols are waiting to be fetched")]
    Symbols,
}

#[derive(Default)]
pub(super) struct Board {
    pub(super) slots: HashMap<Symbol, Slot, RandomState>,
    /// Pending symbols, oldest first. An item is obsolete if its ticket is no longer that of its
    /// slot.
    pub(super) queue: VecDeque<(u64, Symbol)>,
    pub(super) waiters: HashMap<u64, Arc<Waiter>, RandomState>,
    /// The last ticket, batch or waiter number given out.
    last_number: u64,
}

/// A symbol that a request lacked.
pub(super) struct Slot {
    pub(super) ticket: u64,
    /// Number of the call it is in flight with; `None` while pending.
    pub(super) batch: Option<u64>,
    pub(super) asked_mono_ms: u64,
    pub(super) waiters: Vec<Arc<Waiter>>,
    /// Number of `waiters` that have given up.
    pub(super) gave_up: usize,
}

pub(super) struct Waiter {
    pub(super) number: u64,
    /// Symbols not settled yet. Counted down under the lock.
    pub(super) left: AtomicUsize,
    pub(super) gave_up: AtomicBool,
    pub(super) deadline_mono_ms: AtomicU64,
    pub(super) parker: Parker,
}

/// Result of [`Board::join`].
pub(super) struct Joined {
    pub(super) waiter: Arc<Waiter>,
    pub(super) slots: Vec<(Symbol, u64)>,
    /// Whether a symbol became pending that was not before.
    pub(super) fresh: bool,
}

impl Board {
    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn join(
        &mut self,
        symbols: &[Symbol],
        limits: Limits,
        parker: Parker,
        now_mono_ms: u64,
        removed: &mut Vec<(Symbol, Slot)>,
    ) -> Result<Joined, Busy> {
        if self.waiters.len() >= limits.waiters_max {
            return Err(Busy::Waiters);
        }
        let fresh = symbols
            .iter()
            .filter(|&symbol| !self.slots.contains_key(symbol))
            .count();
        self.make_room(fresh, symbols, limits.symbols_max, removed)?;
        let number = self.number();
        let waiter = Arc::new(Waiter {
            number,
            left: AtomicUsize::new(0),
            gave_up: AtomicBool::new(false),
            deadline_mono_ms: AtomicU64::new(u64::MAX),
            parker,
        });
        let mut slots = Vec::with_capacity(symbols.len());
        for symbol in symbols {
            if !self.slots.contains_key(symbol) {
                let ticket = self.number();
                self.queue.push_back((ticket, symbol.clone()));
                self.slots.insert(symbol.clone(), Slot::new(ticket));
            }
            let Some(slot) = self.slots.get_mut(symbol) else {
                continue;
            };
            slot.asked_mono_ms = now_mono_ms;
            if slot
                .waiters
                .last()
                .is_some_and(|last| last.number == number)
            {
                continue; // The request names it twice.
            }
            slot.waiters.push(Arc::clone(&waiter));
            slots.push((symbol.clone(), slot.ticket));
        }
        waiter.left.store(slots.len(), Ordering::Release);
        if !slots.is_empty() {
            self.waiters.insert(number, Arc::clone(&waiter));
        }
        Ok(Joined {
            waiter,
            slots,
            fresh: fresh > 0,
        })
    }

    /// Makes symbols pending outside the queue. Returns true if one was not pending before.
    pub(super) fn note(&mut self, symbols: &[Symbol], now_mono_ms: u64) -> bool {
        let mut fresh = false;
        for symbol in symbols {
            if !self.slots.contains_key(symbol) {
                let ticket = self.number();
                self.slots.insert(symbol.clone(), Slot::new(ticket));
                fresh = true;
            }
            if let Some(slot) = self.slots.get_mut(symbol) {
                slot.asked_mono_ms = now_mono_ms;
            }
        }
        fresh
    }

    /// Makes room for `fresh` more symbols. Drops the oldest pending ones that nobody waits for and
    /// that are not in `asked`.
    fn make_room(
        &mut self,
        fresh: usize,
        asked: &[Symbol],
        symbols_max: usize,
        removed: &mut Vec<(Symbol, Slot)>,
    ) -> Result<(), Busy> {
        let mut excess = (self.slots.len() + fresh).saturating_sub(symbols_max);
        let slots = &mut self.slots;
        if excess > 0 || self.queue.len() >= 2 * symbols_max.max(1) {
            self.queue
                .retain(|(ticket, symbol)| match slots.get(symbol) {
                    Some(slot) if !slot.is_pending(*ticket) => false,
                    None => false,
                    Some(slot) if excess > 0 && slot.is_unwanted() && !asked.contains(symbol) => {
                        excess -= 1;
                        removed.extend(slots.remove_entry(symbol));
                        false
                    }
                    Some(_) => true,
                });
        }
        if excess > 0 {
            Err(Busy::Symbols)
        } else {
            Ok(())
        }
    }

    /// Counts down every request of a settled slot, and moves those with nothing left to wait for
    /// to `finished`.
    pub(super) fn count_down(&mut self, slot: &Slot, finished: &mut Vec<Arc<Waiter>>) {
        for waiter in &slot.waiters {
            if waiter.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                finished.extend(self.waiters.remove(&waiter.number));
            }
        }
    }
}

impl Slot {
    fn new(ticket: u64) -> Self {
        Self {
            ticket,
            batch: None,
            asked_mono_ms: 0,
            waiters: Vec::new(),
            gave_up: 0,
        }
    }

    pub(super) fn is_pending(&self, ticket: u64) -> bool {
        self.batch.is_none() && self.ticket == ticket
    }

    /// Whether it is pending and all requests that waited for it have given up.
    pub(super) fn is_unwanted(&self) -> bool {
        self.batch.is_none() && self.gave_up == self.waiters.len()
    }
}
