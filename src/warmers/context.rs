//! What the warmers work with, and the mailbox through which requests reach them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::settings::CloseSettings;
use crate::auth::Auth;
use crate::base::{Clock, Source};
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerA, Public, SharedToken};
use crate::cache::settings::CacheSettings;
use crate::cache::{L1, Misses, Probes, Responses, SecondLevel};
use crate::health::heartbeat::Heartbeat;
use crate::health::readings::Readings;
use crate::http::Prepared;
use crate::http::PublishedJson;
use crate::market::{IndexList, InstrumentList, MarketCalendar, Universe};
use crate::rt::Lane;
use crate::store::{SignalStore, Store};
use crate::warmers::event::EVENTS_MAX;
use crate::warmers::event::Event;
use crate::warmers::event::Kicked;
use crate::warmers::reloads::Reloads;
use crate::warmers::signals::Publication;

/// What the scheduler works with; all of it shared with others.
pub struct WarmerContext {
    pub clock: Clock,
    pub calendar: Arc<MarketCalendar>,
    pub indices: Arc<IndexList>,
    pub broker_a: Arc<BrokerA>,
    /// The shared feed's own; users' syncs have another.
    pub broker_a_lane: Arc<Lane>,
    pub token: Arc<SharedToken>,
    /// `None` when switched off.
    pub public: Option<Arc<Public>>,
    pub public_lane: Arc<Lane>,
    pub cache_lane: Arc<Lane>,
    /// The evening's revaluation asks the store here.
    pub close_lane: Arc<Lane>,
    /// Candles are judged and searched for signals here.
    pub signals_lane: Arc<Lane>,
    pub signal_store: Arc<dyn SignalStore>,
    pub universe: Universe,
    /// Candles of a session under way are looked at for signals too.
    pub provisional_signals: bool,
    /// Where signals and their record are shown.
    pub shelf: Publication,
    /// Users' finished answers, of which new points make some old.
    pub answers: Arc<Responses>,
    pub l1: Arc<L1>,
    pub l2: Arc<dyn SecondLevel>,
    pub store: Arc<dyn Store>,
    /// Takes up what operators change beside the service.
    pub auth: Arc<Auth>,
    /// Hashes passwords; here for its counters.
    pub crypto_lane: Arc<Lane>,
    /// For the store's probe alone, which may hang with the disk.
    pub store_lane: Arc<Lane>,
    pub misses: Misses,
    pub probes: Probes,
    pub held: Misses,
    pub instruments: Arc<ArcSwap<InstrumentList>>,
    pub snapshot: Arc<PublishedJson>,
    pub pulse: Arc<Heartbeat>,
    pub reloads: Arc<Reloads>,
    /// Why metrics and probes are not served where they were to be.
    pub admin_failure: Option<String>,
    /// Where commands note what became of the last backup.
    pub state_dir: PathBuf,
    pub health: Arc<ArcSwapOption<Prepared>>,
    pub vitals: Arc<ArcSwapOption<Readings>>,
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
}

/// The way to reach the scheduler before it runs: misses need it to kick.
pub struct Mailbox {
    pub(super) send: Sender<Event>,
    pub(super) receive: Receiver<Event>,
    kicked: Arc<AtomicBool>,
}

impl Mailbox {
    /// An empty mailbox.
    pub fn new() -> Self {
        let (send, receive) = bounded(EVENTS_MAX);
        Self { send, receive, kicked: Arc::default() }
    }

    /// What a request calls on the edge when it starts to wait. Never blocks; while a kick waits to
    /// be heard another is not needed.
    pub fn kick(&self) -> Box<dyn Fn() + Send + Sync> {
        let (send, kicked) = (self.send.clone(), Arc::clone(&self.kicked));
        Box::new(move || {
            if kicked.swap(true, Ordering::SeqCst) {
                return;
            }
            match send.try_send(Event::Kick(Kicked(Arc::clone(&kicked)))) {
                Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
            }
        })
    }
}

impl Default for Mailbox {
    fn default() -> Self {
        Self::new()
    }
}
