//! What handlers work with: one value, made at the start and shared by all workers.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;

use crate::api::activation::Administration;
use crate::api::cors::Cors;
use crate::api::errors;
use crate::api::openapi::Document;
use crate::api::portfolio::PortfolioState;
use crate::auth::{Auth, Caller};
use crate::base::{Clock, MarketDay};
use crate::brokers::{BrokerA, BrokerB, SharedToken};
use crate::cache::{L1, Misses, Probes};
use crate::http::PublishedJson;
use crate::http::{Prepared, Problem};
use crate::limits::throttle::{Key, Throttle};
use crate::market::{InstrumentList, MarketCalendar};
use crate::ops::RefusalLines;
use crate::rt::Lane;
use crate::signals::SignalList;
use crate::store::Store;

/// What handlers work with: cheap handles, built by the composition root.
pub struct State {
    pub clock: Clock,
    pub calendar: ArcSwap<MarketCalendar>,
    pub auth: Arc<Auth>,
    pub store: Arc<dyn Store>,
    pub snapshot: Arc<PublishedJson>,
    /// The list and the record of signals, complete; and the list to filter.
    pub signals: Arc<PublishedJson>,
    pub signals_record: Arc<PublishedJson>,
    pub signal_list: Arc<ArcSwapOption<SignalList>>,
    pub l1: Arc<L1>,
    /// Requests that wait for listed symbols, and for well-formed ones that the embedded list
    /// lacks.
    pub misses: Misses,
    pub probes: Probes,
    /// Symbols that users hold, fetched in passing; nobody waits for them.
    pub held: Misses,
    pub instruments: Arc<ArcSwap<InstrumentList>>,
    pub health: Arc<ArcSwapOption<Prepared>>,
    pub broker_a: Arc<BrokerA>,
    /// Users' syncs and activations; the shared feed has threads of its own.
    pub broker_a_lane: Arc<Lane>,
    /// Ends the sessions that syncs opened, apart from the syncs.
    pub broker_a_sessions_lane: Arc<Lane>,
    pub broker_a_token: Arc<SharedToken>,
    pub broker_b: Arc<BrokerB>,
    pub broker_b_lane: Arc<Lane>,
    pub administration: Administration,
    /// Changes that each user makes to what is stored of theirs.
    pub writes: Throttle,
    /// 0 while some feed may answer a request that misses within its wait; else the milliseconds
    /// until one may be asked again. Kept by the scheduler.
    pub answer_in_ms: Arc<AtomicU64>,
    pub miss_wait_ms: u64,
    pub cors: ArcSwap<Cors>,
    pub portfolio: PortfolioState,
    /// What the log gets to see of refusals.
    pub refusal_lines: RefusalLines,
    /// The description of all this.
    pub document: Document,
}

impl State {
    /// Where prices stand at `now`.
    #[inline(never)]
    pub(super) fn market_day(&self, now: Timestamp) -> MarketDay {
        self.calendar.load().market_day(now)
    }

    /// The allowed origins of this moment.
    #[inline(never)]
    pub(super) fn cors(&self) -> Arc<Cors> {
        self.cors.load_full()
    }

    /// Apart from the caller, which may park: the load takes a thread-local's address.
    #[inline(never)]
    pub(super) fn cors_lines(&self, origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        self.cors.load().lines(origin)
    }
}

impl State {
    /// Counts one change by `caller`, which is about to be written.
    ///
    /// # Errors
    /// Too many of late.
    pub(super) fn admit_write(&self, caller: &Caller) -> Result<(), Problem> {
        self.writes.admit(&[Key::User(caller.id.0)]).map_err(errors::too_many_writes)
    }
}
