//! What the tasks of the scheduler work with; all of it is shared with others.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::{ArcSwap, ArcSwapOption};

use super::settings::CloseSettings;
use crate::auth::Auth;
use crate::base::{Clock, Source};
use crate::brokers::broker_a::ticker::Ticker;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerA, Public, SharedToken};
use crate::cache::settings::CacheSettings;
use crate::cache::valkey::Refusals;
use crate::cache::{L1, Pending, Responses, SecondLevel};
use crate::health::heartbeat::Heartbeat;
use crate::health::readings::Readings;
use crate::http::Prepared;
use crate::http::PublishedJson;
use crate::market::{IndexList, InstrumentList, MarketCalendar, Universe};
use crate::rt::Lane;
use crate::store::{SignalStore, Store};
use crate::warmers::cluster::Cluster;
use crate::warmers::lead::Lead;
use crate::warmers::reloads::Reloads;
use crate::warmers::signals::publication::Publication;

/// A lane job's deadline beyond its call's own: connecting to a lane takes no time unless it is
/// stuck.
const LANE_SLACK_MS: u64 = 5_000;

/// What the scheduler works with.
pub struct WarmerContext {
    pub clock: Clock,
    /// Whether this node asks and writes for all nodes.
    pub lead: Lead,
    /// `None` for a node that is alone, or hears no others.
    pub cluster: Option<Cluster>,
    pub calendar: Arc<MarketCalendar>,
    pub indices: Arc<IndexList>,
    pub broker_a: Arc<BrokerA>,
    /// Broker A's WebSocket, which the settings may switch off.
    pub ticker: Ticker,
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
    pub signal_store: Arc<dyn SignalStore>,
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
    pub store: Arc<dyn Store>,
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
    pub health: Arc<ArcSwapOption<Prepared>>,
    pub readings: Arc<ArcSwapOption<Readings>>,
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
