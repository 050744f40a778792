//! The pending symbols by class, each with bounds of its own, so that invented symbols do not delay
//! existing ones. Any thread; a request parks in its [`Wait`].

use std::net::IpAddr;
use std::sync::Arc;

use crate::base::{Clock, Symbol, words};
use crate::cache::pending::board::{Busy, Limits};
use crate::cache::pending::single_flight::{Flight, Kick, PendingStats, SingleFlight, Wait};
use crate::cache::pending::unlisted::Unlisted;

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
pub struct CallCapacity {
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
            let limits = Limits {
                waiters_max,
                symbols_max,
            };
            SingleFlight::new(limits, clock.clone(), Arc::clone(kick))
        };
        let unlisted = Unlisted::new(clock.clone(), Arc::clone(kick));
        Self {
            listed: class(LISTED_MAX),
            unlisted,
            held: class(HELD_MAX),
        }
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
    pub(crate) fn take(&self, room: CallCapacity) -> Taken {
        let unlisted = self.unlisted.take_pending(room.unlisted.min(room.symbols));
        let left = room.symbols - unlisted.symbols().len();
        let listed = self.listed.take_pending(left);
        let held = self
            .held
            .take_pending(room.held.min(left - listed.symbols().len()));
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
        let held = classes
            .iter()
            .flat_map(|class| self.flights(*class).held().into_keys());
        held.take(max).collect()
    }

    /// Symbols that are pending or in flight, of all classes.
    pub(crate) fn len(&self) -> usize {
        Class::ALL
            .iter()
            .map(|class| self.stats(*class).symbols)
            .sum()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(names: &[&str]) -> Vec<Symbol> {
        names
            .iter()
            .filter_map(|name| Symbol::parse(&format!("NSE:{name}")))
            .collect()
    }

    #[test]
    fn a_call_takes_unlisted_then_listed_then_held_symbols_as_far_as_there_is_room() {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let kick: Kick = Arc::new(|| {});
        let pending = Pending::new(10, &clock, &kick);
        pending.note_held(&symbols(&["H1", "H2", "H3"])).unwrap();
        assert!(!pending.is_waited_for() && !pending.is_empty());
        let listed = pending.join_listed(&symbols(&["L1", "L2"])).unwrap();
        let unlisted = pending
            .join_unlisted(None, &symbols(&["U1", "U2"]))
            .unwrap();
        assert!(pending.is_waited_for());
        let named = |taken: &Taken| taken.symbols().cloned().collect::<Vec<_>>();
        let first = pending.take(CallCapacity {
            symbols: 4,
            unlisted: 1,
            held: 9,
        });
        assert_eq!(named(&first), symbols(&["U1", "L1", "L2", "H1"]));
        let second = pending.take(CallCapacity {
            symbols: 9,
            unlisted: 9,
            held: 1,
        });
        assert_eq!(named(&second), symbols(&["U2", "H2"]));
        first.put_back();
        let third = pending.take(CallCapacity {
            symbols: 2,
            unlisted: 0,
            held: 9,
        });
        assert_eq!(named(&third), symbols(&["L1", "L2"]));
        drop((second, third));
        assert!(listed.is_settled() && !unlisted.is_settled());
        pending.settle(&symbols(&["U1", "H1", "H3"]));
        assert!(unlisted.is_settled() && pending.is_empty());
    }
}
