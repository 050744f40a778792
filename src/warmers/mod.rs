//! What keeps memory fresh while nobody waits.
//!
//! One OS thread, the *scheduler*, owns all warm state: it decides when each feed is asked, takes
//! the answers in, builds and publishes the snapshot, and keeps the second cache level. Blocking
//! work goes to the lanes; its outcome comes back as an [`Event`]. Because one thread changes
//! everything, there is no lock between the parts. It must never wait for an upstream or a disk
//! itself.

mod close;
mod files;
mod health;
mod instruments;
mod persist;
pub mod quotes;
mod reloads;
mod scheduler;
mod signals;
pub(crate) mod stats;
pub(crate) mod store_check;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::auth::Auth;
use crate::base::{Clock, Source};
use crate::brokers::broker_a::Tokens;
use crate::brokers::{Batch, BrokerA, FeedError, Public, SharedToken};
use crate::cache::{L1, Misses, Probes, Responses, SecondLevel};
use crate::config::{CacheSettings, CloseSettings, UpstreamSettings};
use crate::http::Prepared;
use crate::market::{IndexList, InstrumentList, MarketCalendar, PublishedJson, Universe};
use crate::ops::{Exit, log};
use crate::rt::{Lane, threads};
use crate::store::{SignalStore, Store};

pub use crate::health::readings::Runs;
pub use crate::health::readings::{
    FeedReadings, Readings, SnapshotReadings, WARMER_STATES, WarmerReadings,
};
use scheduler::Scheduler;
pub use signals::Publication;

pub use crate::health::heartbeat::{Heartbeat, Serving};
pub use reloads::Reloads;

/// Events that may wait for the scheduler. Each job under way sends one, kicks take one place
/// together, and the end one: there are never so many.
const EVENTS_MAX: usize = 64;

/// Longest wait for the last log line of a process that ends by a panic here.
const LOG_FLUSH_MAX: Duration = Duration::from_secs(1);

/// What the scheduler hears.
pub enum Event {
    /// Requests miss symbols; their fetch should not wait for the next round.
    Kick(Kicked),
    /// An upstream call ended.
    Round(Box<Round>),
    /// The day's instrument list arrived, or did not.
    Instruments(Result<Box<(InstrumentList, Tokens)>, String>),
    /// A write to the second level ended.
    Persisted(Result<(), String>),
    /// A call for closing prices ended.
    ClosePrices(Box<Round>),
    /// A job of the evening's revaluation ended; `None` when it was lost.
    Close(Box<close::Outcome>),
    /// A call for daily candles ended.
    Candles(Box<signals::Fetched>),
    /// A job of the warmer of signals ended; `None` when it was lost.
    Signals(Box<signals::Outcome>),
    /// A probe of the store ended; what it saw, the store knows.
    StoreProbed,
    /// The operator's market files were read again.
    Files(Box<MarketFiles>),
    Stop,
}

/// What an operator may change of the market while the service runs.
pub struct MarketFiles {
    pub calendar: Arc<MarketCalendar>,
    pub universe: Universe,
    /// Whether running candles are looked at.
    pub provisional_signals: bool,
}

/// The one kick in the mailbox. Dropped, heard or not, it makes room for the next: a burst of
/// requests must not fill the mailbox, or the outcome of a round would find no place.
pub struct Kicked(Arc<AtomicBool>);

impl Drop for Kicked {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// One upstream call and what it brought.
pub struct Round {
    pub source: Source,
    /// `None` when the job was lost: refused by its lane, late, or panicked.
    pub outcome: Option<Result<Batch, FeedError>>,
}

/// Tells the scheduler how a job ended, once, when dropped: also of one that panicked, was refused
/// or was never run, or its warmer would wait for it for ever.
struct JobReport<T> {
    events: Sender<Event>,
    outcome: Option<T>,
    as_event: fn(Option<T>) -> Event,
}

impl<T> Drop for JobReport<T> {
    fn drop(&mut self) {
        // Refused only when full, which the mailbox's bound rules out, or when the scheduler has
        // ended; then nobody waits for the outcome.
        let _ = self.events.try_send((self.as_event)(self.outcome.take()));
    }
}

/// What a job that gave no outcome is said to have failed with.
fn lost<T>() -> Result<T, String> {
    Err("the job was lost: its lane is full, it came too late or it panicked".to_owned())
}

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
    fn interval_ms(&self, source: Source) -> u64 {
        match source {
            Source::BrokerA => self.broker_a_interval_ms,
            Source::Public => self.public_interval_ms,
        }
    }
}

/// The way to reach the scheduler before it runs: misses need it to kick.
pub struct Mailbox {
    send: Sender<Event>,
    receive: Receiver<Event>,
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

/// The running scheduler.
pub struct Warmers {
    send: Sender<Event>,
    thread: Option<JoinHandle<()>>,
}

impl Warmers {
    /// Restores what the second level kept (quotes and the snapshot, both marked stale), then
    /// starts the scheduler. Blocks for the restore: call it before listening, so that the first
    /// client is served.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(parts: WarmerContext, mailbox: Mailbox) -> io::Result<Self> {
        let send = mailbox.send.clone();
        let mut scheduler = Scheduler::new(parts, mailbox.send);
        scheduler.restore();
        let receive = mailbox.receive;
        let thread = threads::spawn("warm", move || {
            if catch_unwind(AssertUnwindSafe(|| scheduler.run(&receive))).is_err() {
                // What is published would stand still and look fresh. A restart serves again at
                // once, from the second level and marked stale.
                tracing::error!("the warm scheduler panicked; ending the process");
                log::flush(LOG_FLUSH_MAX);
                std::process::exit(Exit::Internal as i32);
            }
        })?;
        Ok(Self { send, thread: Some(thread) })
    }

    /// Takes other market files into use, the universe as soon as no work on the old one is under
    /// way.
    pub fn take_files(&self, files: MarketFiles) {
        // As in `stop`; a scheduler that has ended has ended the process.
        let _ = self.send.send(Event::Files(Box::new(files)));
    }

    /// Ends the scheduler after it has stored what is not stored yet.
    pub fn stop(mut self) {
        // A full mailbox is drained by the scheduler, so this blocks for a moment at most.
        let _ = self.send.send(Event::Stop);
        if let Some(thread) = self.thread.take() {
            // Its panics were caught, and ended the process.
            let _ = thread.join();
        }
    }
}
