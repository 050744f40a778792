//! Writes to the second level, and restores from it at start.
//!
//! Writes run on the cache lane, one at a time and at least a second apart. Changes collect here
//! meanwhile. A node whose second level is shared also keeps a file of its own, so that its prices
//! do not go back over a restart even if the shared server has lost them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::base::{Quote, Symbol};
use crate::cache::l2::codec;
use crate::cache::{Kind, L2Error, SecondLevel};
use crate::market::InstrumentList;
use crate::nodes::lead::Fence;
use crate::rt::lanes::{LOST, Outcomes};
use crate::warmers::context::WarmerContext;

/// Minimum interval between two writes. After a crash the restored prices are at most this much
/// older than those shown before it. A normal stop writes everything.
pub(crate) const WRITE_INTERVAL_MS: u64 = 1_000;

/// Deadline for a write. The lane's thread may still finish a late one.
const WRITE_DEADLINE_MS: u64 = 30_000;

const INSTRUMENTS_KEY: &str = "list";

/// Result of a write.
pub(crate) type Written = Result<(), String>;

/// Owner of the changes that are not stored yet. Bounded by the symbols of L1.
pub(crate) struct PersistTask {
    outcomes: Outcomes<Written>,
    /// The node's own file, used if the second level is shared.
    own: Option<Arc<dyn SecondLevel>>,
    /// Whether this node writes the second level. A follower does not write a shared one.
    writes_l2: bool,
    quotes: HashMap<Symbol, Quote>,
    instruments: Option<Vec<u8>>,
    in_flight: bool,
    /// Why the last write failed; cleared by a success.
    pub failure: Option<String>,
    /// `None` before the first write, which goes out at once because a young process may be killed.
    written_mono_ms: Option<u64>,
}

impl PersistTask {
    pub(super) fn new(outcomes: Outcomes<Written>, own: Option<Arc<dyn SecondLevel>>) -> Self {
        Self {
            outcomes,
            own,
            writes_l2: true,
            quotes: HashMap::new(),
            instruments: None,
            in_flight: false,
            failure: None,
            written_mono_ms: None,
        }
    }

    /// Sets whether this node writes the second level.
    pub(crate) fn set_writes_l2(&mut self, writes_l2: bool) {
        if self.writes_l2 && !writes_l2 {
            self.failure = None;
        }
        self.writes_l2 = writes_l2;
        if !self.keeps() {
            drop(self.take());
        }
    }

    fn keeps(&self) -> bool {
        self.writes_l2 || self.own.is_some()
    }

    /// Notes a quote that L1 accepted.
    pub(crate) fn add_quote(&mut self, quote: &Quote) {
        if self.keeps() {
            self.quotes.insert(quote.symbol.clone(), quote.clone());
        }
    }

    pub(crate) fn add_instruments(&mut self, list: &InstrumentList) {
        self.instruments = self.keeps().then(|| list.to_bytes());
    }

    /// Sends the changes to the cache lane, if a write is due.
    pub(super) fn poll(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        let since = self
            .written_mono_ms
            .map(|at| now_mono_ms.saturating_sub(at));
        let early = since.is_some_and(|since_ms| since_ms < WRITE_INTERVAL_MS);
        if self.in_flight || early || self.is_empty() {
            return;
        }
        self.written_mono_ms = Some(now_mono_ms);
        let work = self.take();
        let own = self.own.clone();
        let now_ms = context.clock.now_ms();
        let l2 = self.writes_l2.then(|| Arc::clone(&context.l2));
        let lead = context.lead.clone();
        self.in_flight = true;
        let submitted = self
            .outcomes
            .submit(&context.cache_lane, WRITE_DEADLINE_MS, move || {
                // Write the own file first: a shared server may take seconds to fail.
                work.store(own.as_deref(), l2.as_deref(), now_ms)
                    .map_err(|error| {
                        if matches!(error, L2Error::Deposed) {
                            lead.fenced(Fence::Cache);
                        }
                        error.to_string()
                    })
            });
        if let Err(refused) = submitted {
            tracing::warn!(%refused, "the last prices were not kept for a restart; trying again");
        }
    }

    /// Takes the result of a write.
    pub(super) fn ended(&mut self, written: Option<Written>) {
        self.in_flight = false;
        self.failure = written.unwrap_or_else(|| Err(LOST.to_owned())).err();
    }

    /// Stores everything now, on the calling thread. Used when the process ends.
    pub(crate) fn store_now(&mut self, l2: &dyn SecondLevel, now_ms: i64) {
        let work = self.take();
        if let Err(error) = work.store(self.own.as_deref(), self.writes_l2.then_some(l2), now_ms) {
            tracing::warn!(%error, "the last prices were not kept for the next start");
        }
    }

    fn is_empty(&self) -> bool {
        self.quotes.is_empty() && self.instruments.is_none()
    }

    fn take(&mut self) -> Work {
        Work {
            quotes: self.quotes.drain().map(|(_, quote)| quote).collect(),
            instruments: self.instruments.take(),
        }
    }
}

struct Work {
    quotes: Vec<Quote>,
    instruments: Option<Vec<u8>>,
}

impl Work {
    /// Writes everything to both levels, even if one fails. The failure of the second level takes
    /// precedence.
    fn store(
        self,
        own: Option<&dyn SecondLevel>,
        l2: Option<&dyn SecondLevel>,
        now_ms: i64,
    ) -> Result<(), L2Error> {
        let quotes = codec::records(&self.quotes);
        let list = self
            .instruments
            .map(|bytes| (INSTRUMENTS_KEY.to_owned(), bytes));
        let kinds = [
            (Kind::Quote, &*quotes),
            (Kind::Instruments, list.as_slice()),
        ];
        let to = |level: &dyn SecondLevel| {
            let mut some = kinds.iter().filter(|(_, items)| !items.is_empty());
            some.try_for_each(|(kind, items)| level.store(*kind, items, now_ms))
        };
        let [own, l2] = [own, l2].map(|level| level.map_or(Ok(()), &to));
        l2.and(own)
    }
}

/// Restores from the second level and the node's own file. The newer value of each wins.
pub(super) fn restore(context: &WarmerContext) {
    let now = context.clock.now();
    let now_mono_ms = context.clock.monotonic_ms();
    let mut lists = Vec::new();
    for level in context.own_l2.iter().chain([&context.l2]) {
        match codec::restore_quotes(&context.l1, &**level, now, now_mono_ms) {
            Ok(codec::Restored {
                quotes,
                of_the_future,
            }) => {
                let backend = level.stats().backend.as_str();
                tracing::info!(backend, quotes, of_the_future, "last prices read");
            }
            Err(error @ L2Error::Refused { .. }) => tracing::debug!(%error, "no last prices read"),
            Err(error) => tracing::warn!(%error, "no last prices read"),
        }
        lists.extend(stored_instruments(&**level));
    }
    if let Some(list) = lists.into_iter().max_by_key(InstrumentList::as_of) {
        context.instruments.store(Arc::new(list));
    }
}

/// The instrument list that `level` has stored.
pub(crate) fn stored_instruments(level: &dyn SecondLevel) -> Option<InstrumentList> {
    let record = level.load(Kind::Instruments, INSTRUMENTS_KEY).ok()??;
    match InstrumentList::from_bytes(&record.bytes) {
        Ok(list) => Some(list),
        Err(error) => {
            tracing::warn!(%error, "stored instrument list not used");
            None
        }
    }
}
