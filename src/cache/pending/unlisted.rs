//! Symbols that clients ask for although the instrument list lacks them. Only a few can be tried,
//! and anybody can invent symbols, so this decides which.
//!
//! Each client network has a few places, and a request adds a few symbols. Networks are served in
//! turn. A symbol that a client asks for again is tried before symbols asked for once. Requests and
//! the scheduler call this. The lock is held for a walk over some tens of entries. [`SingleFlight`]
//! does the waiting; its lock is never taken under this one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::base::{BoundedMap, Clock, Symbol};
use crate::cache::pending::board::Limits;
use crate::cache::pending::single_flight::{Flight, Kick, PendingStats, SingleFlight, Wait};

/// Symbols that are in flight or wait to be tried, and requests that wait for them, at once.
pub(crate) const UNLISTED_MAX: usize = 64;

/// Places of one client network. A batch of the public provider tries two, so more would only grow
/// old.
pub const PER_CLIENT_MAX: usize = 8;

/// Symbols that one request may add. The next request adds others once these are known or known not
/// to exist.
pub(crate) const PER_REQUEST_MAX: usize = 5;

/// Symbols remembered as asked for, so that one without a place is recognised when it comes again.
/// About 200 KiB.
const REMEMBERED_MAX: usize = 4_096;

/// Two requests at least this far apart count as asking again, not as one page that asks twice.
const SECOND_LOOK_MS: u64 = 500;

/// The unlisted symbols and the requests that wait for them. A cheap handle.
#[derive(Clone)]
pub struct Unlisted(pub(super) Arc<Shared>);

pub(super) struct Shared {
    clock: Clock,
    /// Settles, dismisses and expires the symbols.
    pub(crate) flights: SingleFlight,
    places: Mutex<Places>,
    crowded_out: AtomicU64,
}

struct Places {
    /// The symbols in [`SingleFlight`], oldest first, and briefly some that it has just settled.
    entries: Vec<Entry>,
    /// Number of the try in which each client with entries was last served.
    served: HashMap<Option<IpAddr>, u64>,
    tries: u64,
    /// When each symbol was first asked for. If there are too many, the earliest are forgotten.
    asked_mono_ms: BoundedMap<Symbol, u64>,
}

struct Entry {
    symbol: Symbol,
    client: Option<IpAddr>,
    /// Whether a client asked for it again.
    again: bool,
}

impl Unlisted {
    pub(crate) fn new(clock: Clock, kick: Kick) -> Self {
        // Twice as many, because a symbol in flight may have lost its place already.
        let limits = Limits {
            waiters_max: UNLISTED_MAX,
            symbols_max: 2 * UNLISTED_MAX,
        };
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

    /// Registers the symbols that a request from the network `client` lacks, as far as that network
    /// has places left. `None` if the request need not or may not wait. Symbols without a place are
    /// registered when the client asks again.
    pub(crate) fn join(&self, client: Option<IpAddr>, symbols: &[Symbol]) -> Option<Wait> {
        let now_mono_ms = self.0.clock.monotonic_ms();
        let symbols = &symbols[..symbols.len().min(PER_REQUEST_MAX)];
        let held = self.0.flights.held();
        let mut crowded = Vec::new();
        let admitted: Vec<Symbol> = {
            let mut places = self.0.places.lock();
            places
                .entries
                .retain(|entry| held.contains_key(&entry.symbol));
            let in_flight = |symbol: &Symbol| held.get(symbol) == Some(&true);
            let mut admitted = symbols.to_vec();
            admitted.retain(|symbol| {
                let again = places.look(symbol, now_mono_ms);
                places.admit(symbol, client, again, in_flight, &mut crowded)
            });
            admitted
        };
        self.0
            .crowded_out
            .fetch_add(crowded.len() as u64, Ordering::Relaxed);
        // Requests that waited for these are answered without them.
        self.0.flights.settle(&crowded);
        self.0.flights.note(&admitted);
        if admitted.is_empty() {
            return None;
        }
        self.0.flights.join(&admitted).ok()
    }

    /// Takes at most `max` symbols for one upstream call, one of each client in turn. Symbols that
    /// were asked for again are taken first.
    pub(crate) fn take_pending(&self, max: usize) -> Flight {
        let held = self.0.flights.held();
        let chosen = self
            .0
            .places
            .lock()
            .choose(max, |symbol| held.get(symbol) == Some(&false));
        self.0.flights.take_these(&chosen)
    }

    /// Sizes now and counters since the start. `refused` includes symbols that were crowded out.
    pub(crate) fn stats(&self) -> PendingStats {
        let mut stats = self.0.flights.stats();
        stats.refused += self.0.crowded_out.load(Ordering::Relaxed);
        stats
    }
}

impl Places {
    /// Notes a request for the symbol. Returns whether it is asked for again, at least
    /// [`SECOND_LOOK_MS`] after the first time.
    fn look(&mut self, symbol: &Symbol, now_mono_ms: u64) -> bool {
        let first_ms = self.asked_mono_ms.or_insert_with(
            symbol.clone(),
            |first_ms| Some(*first_ms),
            || now_mono_ms,
        );
        now_mono_ms.saturating_sub(*first_ms) >= SECOND_LOOK_MS
    }

    fn share(&self, client: Option<IpAddr>) -> usize {
        self.entries
            .iter()
            .filter(|entry| entry.client == client)
            .count()
    }

    /// Gives the symbol a place if there is one. An entry that loses its place to it is moved to
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
        if let Some(at) = self
            .entries
            .iter()
            .position(|entry| entry.symbol == *symbol)
        {
            self.entries[at].again |= again;
            // The symbol goes to the client with fewer symbols before it.
            if own_share < self.share(self.entries[at].client) {
                self.entries[at].client = client;
            }
            return true;
        }
        let fullest = if own_share >= PER_CLIENT_MAX {
            Some(client)
        } else if self.entries.len() >= UNLISTED_MAX {
            let shares = self
                .entries
                .iter()
                .map(|entry| (self.share(entry.client), entry.client));
            let (share, fullest) = shares.max_by_key(|(share, _)| *share).unwrap_or_default();
            // A client must not push out a symbol of one that has as few.
            if share <= own_share + 1 && !again {
                return false;
            }
            Some(fullest)
        } else {
            None
        };
        if let Some(fullest) = fullest {
            // The oldest symbol asked for once loses its place. One that was asked for again loses
            // it only to another such symbol.
            let loses_place = |entry: &Entry, repeated: bool| {
                entry.client == fullest && entry.again == repeated && !in_flight(&entry.symbol)
            };
            let once = self
                .entries
                .iter()
                .position(|entry| loses_place(entry, false));
            let of_others = fullest != client;
            let repeated = || {
                self.entries
                    .iter()
                    .position(|entry| loses_place(entry, true))
                    .filter(|_| of_others)
            };
            let Some(at) = once.or_else(repeated) else {
                return false;
            };
            crowded.push(self.entries.remove(at).symbol);
        }
        self.entries.push(Entry {
            symbol: symbol.clone(),
            client,
            again,
        });
        true
    }

    /// The next symbols to try, among those that are `pending`.
    fn choose(&mut self, max: usize, pending: impl Fn(&Symbol) -> bool) -> Vec<Symbol> {
        let with_entries: Vec<Option<IpAddr>> = self.entries.iter().map(|e| e.client).collect();
        self.served
            .retain(|client, _| with_entries.contains(client));
        let mut waiting: Vec<&Entry> = self
            .entries
            .iter()
            .filter(|entry| pending(&entry.symbol))
            .collect();
        let mut chosen = Vec::new();
        while chosen.len() < max && !waiting.is_empty() {
            let last_served = |entry: &Entry| self.served.get(&entry.client).copied().unwrap_or(0);
            // The first of equals is the oldest.
            let next = (0..waiting.len())
                .min_by_key(|at| (!waiting[*at].again, last_served(waiting[*at])))
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
