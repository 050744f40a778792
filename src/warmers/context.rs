//! Everything that the scheduler's tasks share with the rest of the service.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;
use jiff::civil::Date;

use crate::auth::Auth;
use crate::base::{BySource, Clock, Symbol, settings};
use crate::brokers::broker_a::ticker::Ticker;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerA, DailyCandles, Public, SharedToken};
use crate::cache::freshness::CacheSettings;
use crate::cache::{L1, Movers, Pending, Responses, SecondLevel};
use crate::http::PublishedJson;
use crate::market::{
    Age, IndexList, InstrumentList, MarketCalendar, Phase, Sectors, Snapshot, Universe,
};
use crate::nodes::valkey::Refusals;
use crate::nodes::{Lead, Nodes};
use crate::rt::Lane;
use crate::store::Store;
use crate::views::health::HealthExposed;
use crate::warmers::quotes::known_closes::KnownCloses;
use crate::warmers::signals::publication::Publication;

/// A lane job's deadline is this much longer than its call's. Starting a job takes no time unless
/// the lane is stuck.
const LANE_SLACK_MS: u64 = 5_000;

/// Reads the candles of a symbol from one date to another without a call; `None` if there is no
/// such symbol.
pub(crate) type CandlesAtHand =
    Arc<dyn Fn(&Symbol, Date, Date) -> Option<DailyCandles> + Send + Sync>;

/// The shared parts that the scheduler's tasks use.
pub struct WarmerContext {
    pub clock: Clock,
    /// Whether this node polls feeds and writes for all nodes.
    pub lead: Lead,
    /// `None` for a single-node installation.
    pub nodes: Option<Nodes>,
    pub calendar: Arc<MarketCalendar>,
    pub indices: Arc<IndexList>,
    pub broker_a: Arc<BrokerA>,
    /// Broker A's WebSocket, which the settings may switch off.
    pub(crate) ticker: Ticker,
    /// Used for the shared feed only; users' syncs have another lane.
    pub broker_a_lane: Arc<Lane>,
    pub token: Arc<SharedToken>,
    /// `None` when switched off.
    pub public: Option<Arc<Public>>,
    pub public_lane: Arc<Lane>,
    pub cache_lane: Arc<Lane>,
    /// Store jobs of the revaluation at the close.
    pub close_lane: Arc<Lane>,
    /// Jobs that check candles and search them for signals.
    pub signals_lane: Arc<Lane>,
    pub universe: Universe,
    pub(crate) sectors: Arc<ArcSwap<Sectors>>,
    /// Most symbols beyond the universe whose candles are stored, for charts.
    pub chart_only_max: usize,
    /// Candles of a simulated exchange in this process; `None` where feeds are asked.
    pub(crate) at_hand: Option<CandlesAtHand>,
    /// Publishes signals and their record.
    pub publication: Publication,
    /// Cached responses for users. New points invalidate some of them.
    pub responses: Arc<Responses>,
    pub l1: Arc<L1>,
    /// The newest closes that the store has, by which a quote's previous close is judged.
    pub(crate) known_closes: Arc<KnownCloses>,
    /// Renewed each second while clients ask for it.
    pub(crate) movers: Arc<Movers>,
    pub l2: Arc<dyn SecondLevel>,
    /// This node's own file, if `l2` is a server that nodes share.
    pub own_l2: Option<Arc<dyn SecondLevel>>,
    /// Operations that the shared server refuses this node; empty without one.
    pub refusals: Arc<Refusals>,
    pub store: Arc<Store>,
    /// Applies changes that an operator's command made in the store.
    pub auth: Arc<Auth>,
    /// Hashes passwords. Needed here for its counters.
    pub crypto_lane: Arc<Lane>,
    /// Used for the store check only, which may hang with the disk.
    pub store_lane: Arc<Lane>,
    pub pending: Pending,
    pub instruments: Arc<ArcSwap<InstrumentList>>,
    pub snapshot: Arc<PublishedJson>,
    pub heartbeat: Arc<Heartbeat>,
    pub reloads: Arc<Reloads>,
    /// Why metrics and probes are not served although they are configured.
    pub admin_failure: Option<String>,
    /// Directory in which commands record the result of the last backup.
    pub state_dir: PathBuf,
    /// 0 while some feed may answer a miss within the request's wait; otherwise the milliseconds
    /// until a feed may be asked again.
    pub answer_in_ms: Arc<AtomicU64>,
    pub cache_settings: CacheSettings,
    pub close: CloseSettings,
    pub upstream: UpstreamSettings,
    /// Minimum interval between two calls of a feed.
    pub(crate) interval_ms: BySource<u64>,
}

impl WarmerContext {
    /// Deadline of a lane job that makes one upstream call.
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
// The time of the scheduler's last finished tick, and a summary of the published snapshot. Written
// by the scheduler, read from any thread. No locks.

/// Summary of the published snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serving {
    /// Age of the primary index's price.
    pub age: Age,
    pub phase: Phase,
}

impl Serving {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self {
            age: snapshot.market.age,
            phase: snapshot.market.phase,
        }
    }
}

/// The time of the scheduler's last finished tick, and what it serves.
#[derive(Debug, Default)]
pub struct Heartbeat {
    beat_mono_ms: AtomicU64,
    serving: ArcSwapOption<Serving>,
}

impl Heartbeat {
    pub(crate) fn beat(&self, now_mono_ms: u64, serving: Option<Serving>) {
        if serving != self.serving() {
            self.serving.store(serving.map(Arc::new));
        }
        self.beat_mono_ms.store(now_mono_ms, Ordering::Release);
    }

    /// Monotonic time of the last finished tick.
    pub(crate) fn beat_mono_ms(&self) -> u64 {
        self.beat_mono_ms.load(Ordering::Acquire)
    }

    /// Summary of the published snapshot; `None` before the first.
    pub(crate) fn serving(&self) -> Option<Serving> {
        self.serving.load().as_deref().copied()
    }
}

// ---- Reloads
//
// The health document's view of the settings in force and of the last reload. Written by the main
// thread, read by the scheduler.

/// Whether the operator's last changes are in force.
#[derive(Debug, Default)]
pub struct Reloads {
    /// Unix milliseconds of the refused reload; 0 if the last one succeeded or there was none.
    refused_ms: AtomicI64,
    /// Connections that the settings leave unprotected.
    exposed: ArcSwap<Vec<HealthExposed>>,
}

impl Reloads {
    /// Notes that a reload was refused at `now`. The previous settings stay in force.
    pub(crate) fn refused(&self, now: Timestamp) {
        self.refused_ms
            .store(now.as_millisecond(), Ordering::Relaxed);
    }

    pub(crate) fn taken(&self) {
        self.refused_ms.store(0, Ordering::Relaxed);
    }

    /// Sets the connections that the settings in force leave unprotected.
    pub(crate) fn set_exposed(&self, exposed: Vec<HealthExposed>) {
        self.exposed.store(Arc::new(exposed));
    }

    pub(crate) fn exposed(&self) -> Arc<Vec<HealthExposed>> {
        self.exposed.load_full()
    }

    /// Time at which the last reload was refused; `None` if it succeeded or there was none.
    pub(crate) fn refused_at(&self) -> Option<Timestamp> {
        let refused_ms = self.refused_ms.load(Ordering::Relaxed);
        (refused_ms != 0)
            .then(|| Timestamp::from_millisecond(refused_ms).ok())
            .flatten()
    }
}
