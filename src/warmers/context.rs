//! What the tasks of the scheduler work with; all of it is shared with others.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;

use crate::auth::Auth;
use crate::base::{Clock, Source, settings};
use crate::brokers::broker_a::ticker::Ticker;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerA, Public, SharedToken};
use crate::cache::freshness::CacheSettings;
use crate::cache::{L1, Pending, Responses, SecondLevel};
use crate::http::PublishedJson;
use crate::market::{Age, IndexList, InstrumentList, MarketCalendar, Phase, Snapshot, Universe};
use crate::nodes::valkey::Refusals;
use crate::nodes::{Lead, Nodes};
use crate::rt::Lane;
use crate::store::Store;
use crate::views::health::HealthExposed;
use crate::warmers::signals::look::Publication;

/// A lane job's deadline beyond its call's own: connecting to a lane takes no time unless it is
/// stuck.
const LANE_SLACK_MS: u64 = 5_000;

/// What the scheduler works with.
pub struct WarmerContext {
    pub clock: Clock,
    /// Whether this node asks and writes for all nodes.
    pub lead: Lead,
    /// `None` for a node that is alone, or hears no others.
    pub nodes: Option<Nodes>,
    pub calendar: Arc<MarketCalendar>,
    pub indices: Arc<IndexList>,
    pub broker_a: Arc<BrokerA>,
    /// Broker A's WebSocket, which the settings may switch off.
    pub(crate) ticker: Ticker,
    /// The shared feed's own; users' syncs have another.
    pub broker_a_lane: Arc<Lane>,
    pub token: Arc<SharedToken>,
    /// `None` when switched off.
    pub public: Option<Arc<Public>>,
    pub public_lane: Arc<Lane>,
    pub cache_lane: Arc<Lane>,
    /// The evening's revaluation asks the store here.
    pub close_lane: Arc<Lane>,
    /// Candles are checked and searched for signals here.
    pub signals_lane: Arc<Lane>,
    pub universe: Universe,
    /// Candles of a session under way are looked at for signals too.
    pub provisional_signals: bool,
    /// Where signals and their record are published.
    pub publication: Publication,
    /// Finished responses for users. New points make some of them old.
    pub responses: Arc<Responses>,
    pub l1: Arc<L1>,
    pub l2: Arc<dyn SecondLevel>,
    /// A file of this node alone, where `l2` is a server that nodes share.
    pub own_l2: Option<Arc<dyn SecondLevel>>,
    /// What the shared server refuses to this node; nothing where there is none.
    pub refusals: Arc<Refusals>,
    pub store: Arc<Store>,
    /// Applies what an operator's command changed in the store.
    pub auth: Arc<Auth>,
    /// Hashes passwords; here for its counters.
    pub crypto_lane: Arc<Lane>,
    /// For the store's check alone, which may hang with the disk.
    pub store_lane: Arc<Lane>,
    pub pending: Pending,
    pub instruments: Arc<ArcSwap<InstrumentList>>,
    pub snapshot: Arc<PublishedJson>,
    pub heartbeat: Arc<Heartbeat>,
    pub reloads: Arc<Reloads>,
    /// Why metrics and probes are not served where they were to be.
    pub admin_failure: Option<String>,
    /// Where commands record the result of the last backup.
    pub state_dir: PathBuf,
    /// 0 while some feed may answer a request that misses within its wait; else the milliseconds
    /// until one may be asked again.
    pub answer_in_ms: Arc<AtomicU64>,
    pub cache_settings: CacheSettings,
    pub close: CloseSettings,
    pub upstream: UpstreamSettings,
    pub public_interval_ms: u64,
    pub broker_a_interval_ms: u64,
}

impl WarmerContext {
    /// Least time between two calls of a feed.
    pub(super) fn interval_ms(&self, source: Source) -> u64 {
        match source {
            Source::BrokerA => self.broker_a_interval_ms,
            Source::Public => self.public_interval_ms,
        }
    }

    /// Deadline of a lane's job that makes one upstream call.
    pub(super) fn call_deadline_ms(&self) -> u64 {
        self.upstream.total_timeout_ms + LANE_SLACK_MS
    }
}

// ---- Settings
//
// Settings of the evening's close.

settings! {
    /// The evening's revaluation of stored portfolios.
    pub struct CloseSettings {
        /// Users valued and written in one transaction.
        pub page_users: usize = 200,
        /// Held symbols whose closing price one evening asks for. All shares of both exchanges are
        /// fewer than half as many.
        pub symbols_max: usize = 20_000,
    }
}

// ---- Heartbeat
//
// When the scheduler last finished a tick, and what is served since. Written by the scheduler, read
// from any thread. No locks.

/// What the published snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serving {
    /// How old the primary index's price is.
    pub age: Age,
    pub phase: Phase,
}

impl Serving {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self { age: snapshot.market.age, phase: snapshot.market.phase }
    }
}

/// When the scheduler last finished a tick, and what it serves.
#[derive(Debug, Default)]
pub struct Heartbeat {
    beat_mono_ms: AtomicU64,
    serving: ArcSwapOption<Serving>,
}

impl Heartbeat {
    /// The scheduler has finished a tick.
    pub(crate) fn beat(&self, now_mono_ms: u64, serving: Option<Serving>) {
        if serving != self.serving() {
            self.serving.store(serving.map(Arc::new));
        }
        self.beat_mono_ms.store(now_mono_ms, Ordering::Release);
    }

    /// Monotonic time of its last tick.
    pub(crate) fn beat_mono_ms(&self) -> u64 {
        self.beat_mono_ms.load(Ordering::Acquire)
    }

    /// `None` before there is a snapshot.
    pub(crate) fn serving(&self) -> Option<Serving> {
        self.serving.load().as_deref().copied()
    }
}

// ---- Reloads
//
// What health says of the settings in force, and of the last reload. Written by the main thread,
// read by the scheduler.

/// Whether what an operator changed last is in force.
#[derive(Debug, Default)]
pub struct Reloads {
    /// Unix milliseconds; 0 while the last reload, if any, was good.
    refused_ms: AtomicI64,
    /// Connections that the settings leave unprotected.
    exposed: ArcSwap<Vec<HealthExposed>>,
}

impl Reloads {
    /// A reload was refused at `now`, and the settings before it stay in force.
    pub(crate) fn refused(&self, now: Timestamp) {
        self.refused_ms.store(now.as_millisecond(), Ordering::Relaxed);
    }

    /// A reload was taken into use.
    pub(crate) fn taken(&self) {
        self.refused_ms.store(0, Ordering::Relaxed);
    }

    /// What the settings in force leave unprotected.
    pub(crate) fn set_exposed(&self, exposed: Vec<HealthExposed>) {
        self.exposed.store(Arc::new(exposed));
    }

    pub(crate) fn exposed(&self) -> Arc<Vec<HealthExposed>> {
        self.exposed.load_full()
    }

    /// When the last one was refused; `None` where it was taken or there was none.
    pub(crate) fn refused_at(&self) -> Option<Timestamp> {
        let refused_ms = self.refused_ms.load(Ordering::Relaxed);
        (refused_ms != 0).then(|| Timestamp::from_millisecond(refused_ms).ok()).flatten()
    }
}
