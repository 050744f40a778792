//! What quotes are looked up in, and where missing ones are asked for.

use arc_swap::ArcSwap;

use crate::base::{Clock, Symbol};
use crate::cache::{L1, Pending};
use crate::market::InstrumentList;

/// The caches and queues in which a request for quotes looks.
#[derive(Clone, Copy)]
pub(super) struct QuoteSource<'a> {
    pub(super) l1: &'a L1,
    pub(super) pending: &'a Pending,
    pub(super) instruments: &'a ArcSwap<InstrumentList>,
    pub(super) clock: &'a Clock,
    /// Wait for missing symbols. It is 0 if no feed can answer in time; the symbols are still
    /// registered for the next poll.
    pub(super) wait_ms: u64,
}

/// Symbols that a feed may have.
pub(super) struct Fetchable {
    /// Symbols of the instrument list.
    pub(super) listed: Vec<Symbol>,
    /// Other symbols, of which a few are tried.
    pub(super) probed: Vec<Symbol>,
}

impl Fetchable {
    pub(super) fn among(instruments: &ArcSwap<InstrumentList>, missing: &[Symbol]) -> Self {
        let list = instruments.load_full();
        let (listed, unlisted): (Vec<Symbol>, Vec<Symbol>) = missing
            .iter()
            .cloned()
            .partition(|symbol| list.contains(symbol.as_str()));
        // No list is complete: the embedded one has large shares only, and of broker A's a row may
        // be broken. What it lacks is tried within a small budget.
        Self {
            listed,
            probed: unlisted,
        }
    }
}
