//! Symbols that are not cached and will be requested from a feed.
//!
//! A request registers its missing symbols and parks. The feed scheduler takes pending symbols into
//! its next call, and the answer wakes the requests that wait. Each symbol is fetched once, for any
//! number of requests. Each class of symbols has bounds of its own, so that invented symbols do not
//! delay existing ones.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::base::{BoundedMap, Clock, Symbol, words};
use crate::cache::pending::single_flight::{Flight, Limits, SingleFlight};

mod single_flight;

pub(crate) use self::single_flight::{Kick, PendingStats, Wait};
pub(crate) use crate::cache::pending::single_flight::Busy;

/// Listed symbols that may be pending or in flight at once: four of broker A's batches. At one
/// batch a second no request waits long enough for more.
const LISTED_MAX: usize = 2_000;

/// Held symbols that may be pending at once: one of broker A's batches. When it is full, the oldest
/// are dropped.
const HELD_MAX: usize = 500;

words! {
    /// Why a symbol is asked for.
    pub enum Class {
        /// A request waits for it, and the instrument list contains it.
        Listed = "listed",
        /// A request waits for it, and it may not exist. Only a few of these are tried, and client
        /// networks share them fairly.
        Unlisted = "unlisted",
        /// A user holds it. It is fetched if a call has room, and no request waits for it.
        Held = "held",
    }
}

/// Room in one call to a feed, in symbols.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Room for all classes together. Unlisted symbols are taken first, then listed ones, then held
    /// ones.
    pub symbols: usize,
    pub unlisted: usize,
    pub held: usize,
}

/// The pending symbols of all classes. A cheap handle.
#[derive(Clone)]
pub struct Pending {
    listed: SingleFlight,
    unlisted: Unlisted,
    held: SingleFlight,
}

impl Pending {
    /// At most `waiters_max` requests wait for listed symbols.
    pub(crate) fn new(waiters_max: usize, clock: &Clock, kick: &Kick) -> Self {
        let class = |symbols_max| {
            let limits = Limits { waiters_max, symbols_max };
            SingleFlight::new(limits, clock.clone(), Arc::clone(kick))
        };
        let unlisted = Unlisted::new(clock.clone(), Arc::clone(kick));
        Self { listed: class(LISTED_MAX), unlisted, held: class(HELD_MAX) }
    }

    /// Registers the listed symbols that a request lacks. Dropping the [`Wait`] ends the request's
    /// wait; the symbols stay pending.
    ///
    /// # Errors
    /// [`Busy`] if a bound is reached. Then nothing is registered.
    pub(crate) fn join_listed(&self, symbols: &[Symbol]) -> Result<Wait, Busy> {
        self.listed.join(symbols)
    }

    /// Registers the unlisted symbols that a request from the network `client` lacks, as far as
    /// that network has places left. `None` if the request need not or may not wait. Symbols
    /// without a place are registered when the client asks again.
    pub(crate) fn join_unlisted(&self, client: Option<IpAddr>, symbols: &[Symbol]) -> Option<Wait> {
        self.unlisted.join(client, symbols)
    }

    /// Registers held symbols. No request waits for them.
    ///
    /// # Errors
    /// [`Busy`] if there are more than fit.
    pub fn note_held(&self, symbols: &[Symbol]) -> Result<(), Busy> {
        self.held.join(symbols).map(drop)
    }

    /// Takes the symbols for one call to a feed. They are in flight, and are not taken again, until
    /// they are settled or put back.
    pub(crate) fn take(&self, room: Room) -> Taken {
        let unlisted = self.unlisted.take_pending(room.unlisted.min(room.symbols));
        let left = room.symbols - unlisted.symbols().len();
        let listed = self.listed.take_pending(left);
        let held = self.held.take_pending(room.held.min(left - listed.symbols().len()));
        Taken([unlisted, listed, held])
    }

    /// Ends the wait for these symbols, whether pending or in flight: their quotes or negative
    /// entries are in L1, or could not be fetched.
    pub(crate) fn settle(&self, symbols: &[Symbol]) {
        self.classes().for_each(|class| class.settle(symbols));
    }

    /// Wakes every waiting request, because no feed can answer it in time. The symbols stay
    /// pending, so that the next call may have brought them when the clients ask again.
    pub(crate) fn dismiss(&self) {
        self.classes().for_each(SingleFlight::dismiss);
    }

    /// To be called about every second. Drops pending symbols that nobody waits for and nobody
    /// asked for within `ttl_ms`, and wakes requests whose own timer was lost.
    pub(crate) fn expire(&self, ttl_ms: u64) {
        self.classes().for_each(|class| class.expire(ttl_ms));
    }

    /// Whether a pending symbol was registered by a request, even if that request has stopped
    /// waiting: its client will ask again.
    pub fn is_waited_for(&self) -> bool {
        self.stats(Class::Listed).symbols + self.stats(Class::Unlisted).symbols > 0
    }

    /// Symbols of these classes that are pending or in flight, at most `max`, in the order of
    /// `classes`.
    pub(crate) fn symbols(&self, classes: &[Class], max: usize) -> Vec<Symbol> {
        let held = classes.iter().flat_map(|class| self.flights(*class).held().into_keys());
        held.take(max).collect()
    }

    /// Symbols that are pending or in flight, of all classes.
    pub(crate) fn len(&self) -> usize {
        Class::ALL.iter().map(|class| self.stats(*class).symbols).sum()
    }

    /// Whether no symbol is pending or in flight, of any class.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sizes now and counters since the start.
    pub fn stats(&self, class: Class) -> PendingStats {
        match class {
            Class::Unlisted => self.unlisted.stats(),
            Class::Listed | Class::Held => self.flights(class).stats(),
        }
    }

    fn flights(&self, class: Class) -> &SingleFlight {
        match class {
            Class::Listed => &self.listed,
            Class::Unlisted => &self.unlisted.0.flights,
            Class::Held => &self.held,
        }
    }

    fn classes(&self) -> impl Iterator<Item = &SingleFlight> {
        Class::ALL.into_iter().map(|class| self.flights(class))
    }
}

/// Symbols in flight with one call. Dropping it settles them, so that no request waits for an
/// answer that cannot come after a panic or a lost job.
#[must_use = "dropping it settles the symbols"]
pub struct Taken([Flight; 3]);

impl Taken {
    /// The symbols to ask for.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.0.iter().flat_map(Flight::symbols)
    }

    /// Makes unsettled symbols pending again, before all others, for the next feed to take.
    pub(crate) fn put_back(self) {
        self.0.into_iter().for_each(Flight::put_back);
    }
}

// ---- Unlisted
//
// Symbols that clients ask for although the instrument list lacks them. Only a few can be tried,
// and anybody can invent symbols, so this decides which.
//
// Each client network has a few places, and a request adds a few symbols. Networks are served in
// turn. A symbol that a client asks for again is tried before symbols asked for once. Requests and
// the scheduler call this. The lock is held for a walk over some tens of entries. [`SingleFlight`]
// does the waiting; its lock is never taken under this one.

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
pub struct Unlisted(Arc<Shared>);

struct Shared {
    clock: Clock,
    /// Settles, dismisses and expires the symbols.
    flights: SingleFlight,
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
        let chosen = self.0.places.lock().choose(max, |symbol| held.get(symbol) == Some(&false));
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
        self.entries.iter().filter(|entry| entry.client == client).count()
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
        if let Some(at) = self.entries.iter().position(|entry| entry.symbol == *symbol) {
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
            let shares = self.entries.iter().map(|entry| (self.share(entry.client), entry.client));
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
            let once = self.entries.iter().position(|entry| loses_place(entry, false));
            let of_others = fullest != client;
            let repeated = || {
                self.entries.iter().position(|entry| loses_place(entry, true)).filter(|_| of_others)
            };
            let Some(at) = once.or_else(repeated) else { return false };
            crowded.push(self.entries.remove(at).symbol);
        }
        self.entries.push(Entry { symbol: symbol.clone(), client, again });
        true
    }

    /// The next symbols to try, among those that are `pending`.
    fn choose(&mut self, max: usize, pending: impl Fn(&Symbol) -> bool) -> Vec<Symbol> {
        let with_entries: Vec<Option<IpAddr>> = self.entries.iter().map(|e| e.client).collect();
        self.served.retain(|client, _| with_entries.contains(client));
        let mut waiting: Vec<&Entry> =
            self.entries.iter().filter(|entry| pending(&entry.symbol)).collect();
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
mod tests {
    use super::*;

    fn symbols(names: &[&str]) -> Vec<Symbol> {
        names.iter().filter_map(|name| Symbol::parse(&format!("NSE:{name}"))).collect()
    }

    #[test]
    fn a_call_takes_unlisted_then_listed_then_held_symbols_as_far_as_there_is_room() {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let kick: Kick = Arc::new(|| {});
        let pending = Pending::new(10, &clock, &kick);
        pending.note_held(&symbols(&["H1", "H2", "H3"])).unwrap();
        assert!(!pending.is_waited_for() && !pending.is_empty());
        let listed = pending.join_listed(&symbols(&["L1", "L2"])).unwrap();
        let unlisted = pending.join_unlisted(None, &symbols(&["U1", "U2"])).unwrap();
        assert!(pending.is_waited_for());
        let named = |taken: &Taken| taken.symbols().cloned().collect::<Vec<_>>();
        let first = pending.take(Room { symbols: 4, unlisted: 1, held: 9 });
        assert_eq!(named(&first), symbols(&["U1", "L1", "L2", "H1"]));
        let second = pending.take(Room { symbols: 9, unlisted: 9, held: 1 });
        assert_eq!(named(&second), symbols(&["U2", "H2"]));
        first.put_back();
        let third = pending.take(Room { symbols: 2, unlisted: 0, held: 9 });
        assert_eq!(named(&third), symbols(&["L1", "L2"]));
        drop((second, third));
        assert!(listed.is_settled() && !unlisted.is_settled());
        pending.settle(&symbols(&["U1", "H1", "H3"]));
        assert!(unlisted.is_settled() && pending.is_empty());
    }
}

#[cfg(test)]
#[path = "pending/unlisted_tests.rs"]
mod unlisted_tests;
