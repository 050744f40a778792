//! The state behind [`SingleFlight`](super::single_flight::SingleFlight): which symbols somebody
//! lacks, who waits for them, in which order they are taken.
//!
//! Plain data, only touched under its lock, by the edge and by lane threads alike. Never wakes or
//! drops a waiter: a dropped parker may yield, which no coroutine may do under a lock. What is to
//! be woken or dropped is handed out.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use foldhash::quality::RandomState;

use crate::base::Symbol;
use crate::rt::coroutines::Parker;

/// Bounds of one class.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
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
    /// Pending symbols, oldest first. An item whose ticket its slot no longer has is a leftover.
    pub(super) queue: VecDeque<(u64, Symbol)>,
    pub(super) waiters: HashMap<u64, Arc<Waiter>, RandomState>,
    /// The last ticket, batch or waiter number given out.
    last_number: u64,
}

/// A symbol that somebody missed.
pub(super) struct Slot {
    pub(super) ticket: u64,
    /// The batch it is in flight with; `None` while pending.
    pub(super) batch: Option<u64>,
    pub(super) asked_mono_ms: u64,
    pub(super) waiters: Vec<Arc<Waiter>>,
    /// How many of `waiters` gave up.
    pub(super) gone: usize,
}

pub(super) struct Waiter {
    pub(super) number: u64,
    /// Symbols not settled yet; counted down under the lock.
    pub(super) left: AtomicUsize,
    pub(super) gone: AtomicBool,
    pub(super) deadline_mono_ms: AtomicU64,
    pub(super) parker: Parker,
}

/// What [`Board::join`] made.
pub(super) struct Joined {
    pub(super) waiter: Arc<Waiter>,
    pub(super) slots: Vec<(Symbol, u64)>,
    /// Something became pending that was not.
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
        let fresh = symbols.iter().filter(|&symbol| !self.slots.contains_key(symbol)).count();
        self.make_room(fresh, symbols, limits.symbols_max, removed)?;
        let number = self.number();
        let waiter = Arc::new(Waiter {
            number,
            left: AtomicUsize::new(0),
            gone: AtomicBool::new(false),
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
            let Some(slot) = self.slots.get_mut(symbol) else { continue };
            slot.asked_mono_ms = now_mono_ms;
            if slot.waiters.last().is_some_and(|last| last.number == number) {
                continue; // named twice
            }
            slot.waiters.push(Arc::clone(&waiter));
            slots.push((symbol.clone(), slot.ticket));
        }
        waiter.left.store(slots.len(), Ordering::Release);
        if !slots.is_empty() {
            self.waiters.insert(number, Arc::clone(&waiter));
        }
        Ok(Joined { waiter, slots, fresh: fresh > 0 })
    }

    /// Makes symbols pending outside the queue; true if one was not.
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

    /// Makes room for `fresh` more symbols, dropping the oldest pending ones that nobody waits for
    /// and that are not among those being `asked` for.
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
            self.queue.retain(|(ticket, symbol)| match slots.get(symbol) {
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
        if excess > 0 { Err(Busy::Symbols) } else { Ok(()) }
    }

    /// Counts every request of a settled slot down and moves those that are done to `awake`.
    pub(super) fn count_down(&mut self, slot: &Slot, awake: &mut Vec<Arc<Waiter>>) {
        for waiter in &slot.waiters {
            if waiter.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                awake.extend(self.waiters.remove(&waiter.number));
            }
        }
    }
}

impl Slot {
    fn new(ticket: u64) -> Self {
        Self { ticket, batch: None, asked_mono_ms: 0, waiters: Vec::new(), gone: 0 }
    }

    pub(super) fn is_pending(&self, ticket: u64) -> bool {
        self.batch.is_none() && self.ticket == ticket
    }

    /// Pending, and everybody who waited gave up.
    pub(super) fn is_unwanted(&self) -> bool {
        self.batch.is_none() && self.gone == self.waiters.len()
    }
}
