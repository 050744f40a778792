//! What is written to the second level, and what is read back at start.
//!
//! Writes go to the cache lane, one at a time, a few seconds apart; what changed meanwhile waits
//! here.

use std::collections::HashMap;
use std::sync::Arc;

use super::context::WarmerContext;
use super::job::{LOST, Outcomes};
use super::lead::Fence;
use crate::base::{Quote, Symbol};
use crate::cache::{Kind, L2Error, SecondLevel, l2::codec};
use crate::market::InstrumentList;

/// Between two writes. After a crash prices are at most this much older than those that were shown
/// before it; a stop writes all.
pub const WRITE_INTERVAL_MS: u64 = 1_000;

/// A write that takes longer is given up; the lane's thread goes on with it.
const WRITE_DEADLINE_MS: u64 = 30_000;

const INSTRUMENTS_KEY: &str = "list";

/// How a write ended.
pub type Written = Result<(), String>;

/// Owner of the changes that are not stored yet. Bounded by the symbols of L1.
pub struct PersistTask {
    outcomes: Outcomes<Written>,
    on: bool,
    quotes: HashMap<Symbol, Quote>,
    instruments: Option<Vec<u8>>,
    in_flight: bool,
    /// Why the last write failed; cleared by a success.
    failure: Option<String>,
    /// `None` before the first write, which is not held back: a process may be killed young.
    written_mono_ms: Option<u64>,
}

impl PersistTask {
    /// Nothing is to be stored.
    pub fn new(outcomes: Outcomes<Written>) -> Self {
        Self {
            outcomes,
            on: true,
            quotes: HashMap::new(),
            instruments: None,
            in_flight: false,
            failure: None,
            written_mono_ms: None,
        }
    }

    /// Whether this node stores what changes. A follower of a level that all nodes share does not.
    pub fn set_on(&mut self, on: bool) {
        if self.on && !on {
            drop(self.take());
            self.failure = None;
        }
        self.on = on;
    }

    /// A quote that L1 took.
    pub fn add_quote(&mut self, quote: &Quote) {
        if !self.on {
            return;
        }
        self.quotes.insert(quote.symbol.clone(), quote.clone());
    }

    /// A new instrument list.
    pub fn add_instruments(&mut self, list: &InstrumentList) {
        self.instruments = self.on.then(|| list.to_bytes());
    }

    /// Sends what has changed to the cache lane, if it is time.
    pub fn poll(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        let since = self.written_mono_ms.map(|at| now_mono_ms.saturating_sub(at));
        let early = since.is_some_and(|since_ms| since_ms < WRITE_INTERVAL_MS);
        if self.in_flight || early || self.is_empty() {
            return;
        }
        self.written_mono_ms = Some(now_mono_ms);
        let work = self.take();
        let (l2, now_ms) = (Arc::clone(&context.l2), context.clock.now_ms());
        let lead = context.lead.clone();
        self.in_flight = true;
        let submitted = self.outcomes.submit(&context.cache_lane, WRITE_DEADLINE_MS, move || {
            work.store(&*l2, now_ms).map_err(|error| {
                if matches!(error, L2Error::Deposed) {
                    lead.fenced(Fence::Cache);
                }
                error.to_string()
            })
        });
        if let Err(refused) = submitted {
            tracing::warn!(%refused, "second cache level not written");
        }
    }

    /// Notes how a write ended.
    pub fn ended(&mut self, written: Option<Written>) {
        self.in_flight = false;
        self.failure = written.unwrap_or_else(|| Err(LOST.to_owned())).err();
    }

    /// Whether the last write failed.
    pub fn is_failing(&self) -> bool {
        self.failure.is_some()
    }

    /// Stores everything now, on the calling thread; for the end of the process.
    pub fn store_now(&mut self, l2: &dyn SecondLevel, now_ms: i64) {
        if let Err(error) = self.take().store(l2, now_ms) {
            tracing::warn!(%error, "second cache level not written at the end");
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
    fn store(self, l2: &dyn SecondLevel, now_ms: i64) -> Result<(), L2Error> {
        if !self.quotes.is_empty() {
            codec::store_quotes(l2, &self.quotes, now_ms)?;
        }
        if let Some(bytes) = self.instruments {
            l2.store(Kind::Instruments, &[(INSTRUMENTS_KEY.to_owned(), bytes)], now_ms)?;
        }
        Ok(())
    }
}

/// The instrument list of the last run.
pub fn stored_instruments(l2: &dyn SecondLevel) -> Option<InstrumentList> {
    let record = l2.load(Kind::Instruments, INSTRUMENTS_KEY).ok()??;
    match InstrumentList::from_bytes(&record.bytes) {
        Ok(list) => Some(list),
        Err(error) => {
            tracing::warn!(%error, "stored instrument list not used");
            None
        }
    }
}
