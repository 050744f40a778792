//! Symbols that the instrument list lacks and that clients ask for all the same: which of them are
//! tried, since only a few can be and anybody can invent names.
//!
//! Each client network has a few places, a request adds a few names, and networks are served in
//! turn; a symbol that is asked for again goes before names that are asked for once. Requests and
//! the scheduler call in; the lock is held for a walk over some tens of entries. Waiting is left to
//! [`SingleFlight`]; its lock is not taken under this one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::board::Limits;
use super::single_flight::{Flight, Kick, PendingStats, SingleFlight, Wait};
use crate::base::{BoundedMap, Clock, Symbol};

/// Symbols being tried or waiting for it, and requests waiting for them, at once.
pub const UNLISTED_MAX: usize = 64;

/// Of one client network. Two are tried in a public batch: more would only age.
pub const PER_CLIENT_MAX: usize = 8;

/// Of one request; the next one brings the rest, once these are known or known not to exist.
pub const PER_REQUEST_MAX: usize = 5;

/// Symbols remembered as asked for, so that one that had no place is known again. About 200 KiB.
const REMEMBERED_MAX: usize = 4_096;

/// Two requests so far apart are two looks and not one page that asks twice.
const SECOND_LOOK_MS: u64 = 500;

/// A cheap handle.
#[derive(Clone)]
pub struct Unlisted(Arc<Shared>);

struct Shared {
    clock: Clock,
    flights: SingleFlight,
    places: Mutex<Places>,
    crowded_out: AtomicU64,
}

struct Places {
    /// Those that [`SingleFlight`] holds, and for a moment some that it has settled; oldest first.
    entries: Vec<Entry>,
    /// When a client that has entries last had one tried, counted in tries.
    served: HashMap<Option<IpAddr>, u64>,
    tries: u64,
    /// When each symbol was first asked for; of too many, the earliest are forgotten.
    asked_mono_ms: BoundedMap<Symbol, u64>,
}

struct Entry {
    symbol: Symbol,
    client: Option<IpAddr>,
    /// Asked for by a second look.
    again: bool,
}

impl Unlisted {
    pub fn new(clock: Clock, kick: Kick) -> Self {
        // Twice, for those in flight whose place is given away already.
        let limits = Limits { waiters_max: UNLISTED_MAX, symbols_max: 2 * UNLISTED_MAX };
        Self(Arc::new(Shared {
            flights: SingleFlight::new(limits, clock.clone(), kick),
            clock,
            places: Mutex::new(Places {
                entries: Vec::new(),
                served: HashMap::new(),
                tries: 0,
                asked_mono_ms: BoundedMap::evicting_in_batches(REMEMBERED_MAX),
            }),
            crowded_out: AtomicU64::new(0),
        }))
    }

    /// Notes what a request of `client`, a network, lacks, as far as it has places for it; `None`
    /// where it need not or may not wait. What finds no place is noted at a later look.
    pub fn join(&self, client: Option<IpAddr>, symbols: &[Symbol]) -> Option<Wait> {
        let now_mono_ms = self.0.clock.monotonic_ms();
        let symbols = &symbols[..symbols.len().min(PER_REQUEST_MAX)];
        let held = self.0.flights.held();
        let mut crowded = Vec::new();
        let admitted: Vec<Symbol> = {
            let mut places = self.0.places.lock();
            places.entries.retain(|entry| held.contains_key(&entry.symbol));
            let in_flight = |symbol: &Symbol| held.get(symbol) == Some(&true);
            let mut admitted = symbols.to_vec();
            admitted.retain(|symbol| {
                let again = places.look(symbol, now_mono_ms);
                places.admit(symbol, client, again, in_flight, &mut crowded)
            });
            admitted
        };
        self.0.crowded_out.fetch_add(crowded.len() as u64, Ordering::Relaxed);
        // Who waited for these is answered without them.
        self.0.flights.settle(&crowded);
        self.0.flights.note(&admitted);
        if admitted.is_empty() {
            return None;
        }
        self.0.flights.join(&admitted).ok()
    }

    /// Takes at most `max` symbols for one upstream call, one of each client in turn, those asked
    /// for again first.
    pub fn take_pending(&self, max: usize) -> Flight {
        let held = self.0.flights.held();
        let chosen = self.0.places.lock().choose(max, |symbol| held.get(symbol) == Some(&false));
        self.0.flights.take_these(&chosen)
    }

    /// What settles, dismisses and expires them.
    pub(super) fn flights(&self) -> &SingleFlight {
        &self.0.flights
    }

    /// Sizes now and counters since the start; `refused` has what was crowded out too.
    pub fn stats(&self) -> PendingStats {
        let mut stats = self.0.flights.stats();
        stats.refused += self.0.crowded_out.load(Ordering::Relaxed);
        stats
    }
}

impl Places {
    /// Whether the symbol was asked for before, at another look.
    fn look(&mut self, symbol: &Symbol, now_mono_ms: u64) -> bool {
        let first_ms = self.asked_mono_ms.or_insert_with(
            symbol.clone(),
            |first_ms| Some(*first_ms),
            || now_mono_ms,
        );
        now_mono_ms.saturating_sub(*first_ms) >= SECOND_LOOK_MS
    }

    fn share(&self, client: Option<IpAddr>) -> usize {
        self.entries.iter().filter(|entry| entry.client == client).count()
    }

    /// Gives the symbol a place if there is one; an entry that has to go for it is moved to
    /// `crowded`.
    fn admit(
        &mut self,
        symbol: &Symbol,
        client: Option<IpAddr>,
        again: bool,
        in_flight: impl Fn(&Symbol) -> bool,
        crowded: &mut Vec<Symbol>,
    ) -> bool {
        let own_share = self.share(client);
        if let Some(at) = self.entries.iter().position(|entry| entry.symbol == *symbol) {
            self.entries[at].again |= again;
            // It is served in the turn of whoever has fewer others before it.
            if own_share < self.share(self.entries[at].client) {
                self.entries[at].client = client;
            }
            return true;
        }
        let fullest = if own_share >= PER_CLIENT_MAX {
            Some(client)
        } else if self.entries.len() >= UNLISTED_MAX {
            let shares = self.entries.iter().map(|entry| (self.share(entry.client), entry.client));
            let (share, fullest) = shares.max_by_key(|(share, _)| *share).unwrap_or_default();
            // One more of ours must not push out one of somebody who has as few.
            if share <= own_share + 1 && !again {
                return false;
            }
            Some(fullest)
        } else {
            None
        };
        if let Some(fullest) = fullest {
            // The oldest that was asked for once; what is asked for again only goes for its like.
            let goes = |entry: &Entry, repeated: bool| {
                entry.client == fullest && entry.again == repeated && !in_flight(&entry.symbol)
            };
            let once = self.entries.iter().position(|entry| goes(entry, false));
            let of_others = fullest != client;
            let repeated =
                || self.entries.iter().position(|entry| goes(entry, true)).filter(|_| of_others);
            let Some(at) = once.or_else(repeated) else { return false };
            crowded.push(self.entries.remove(at).symbol);
        }
        self.entries.push(Entry { symbol: symbol.clone(), client, again });
        true
    }

    /// The next symbols to try, of those that are `pending`.
    fn choose(&mut self, max: usize, pending: impl Fn(&Symbol) -> bool) -> Vec<Symbol> {
        let with_entries: Vec<Option<IpAddr>> = self.entries.iter().map(|e| e.client).collect();
        self.served.retain(|client, _| with_entries.contains(client));
        let mut waiting: Vec<&Entry> =
            self.entries.iter().filter(|entry| pending(&entry.symbol)).collect();
        let mut chosen = Vec::new();
        while chosen.len() < max && !waiting.is_empty() {
            let turn = |entry: &Entry| self.served.get(&entry.client).copied().unwrap_or(0);
            // The first of equals is the oldest.
            let next = (0..waiting.len())
                .min_by_key(|at| (!waiting[*at].again, turn(waiting[*at])))
                .unwrap_or(0);
            let entry = waiting.remove(next);
            self.tries += 1;
            self.served.insert(entry.client, self.tries);
            chosen.push(entry.symbol.clone());
        }
        chosen
    }
}

#[cfg(test)]
#[path = "unlisted_tests.rs"]
mod tests;
