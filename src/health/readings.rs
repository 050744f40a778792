//! What the scheduler last saw, as plain values for metrics and probes.
//!
//! Made on the thread `warm` once a second, together with the health report; any thread reads the
//! last one without waiting. That it is renewed is the scheduler's heartbeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use jiff::Timestamp;

use crate::base::Source;
use crate::base::limiter::SharedTally;
use crate::brokers::broker_a::ticker::TickerReading;
use crate::market::indices::MarketView;
use crate::market::{Age, Phase, Snapshot};
use crate::nodes::lead::Role;
use crate::store::BackupRecord;
use crate::views::health::FeedWord;

/// One warmer's runs since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    pub runs: u64,
    /// Of these, how many came to nothing.
    pub failures: u64,
    /// End of the last one that did not, in milliseconds since the Unix epoch by the machine's own
    /// clock, whatever the service's reads; `None` before the first.
    pub succeeded_ms: Option<i64>,
}

/// Every state that a warmer can be in.
pub const WARMER_STATES: [&str; 5] = ["ok", "starting", "stale", "failing", "paused"];

/// One reading.
#[derive(Clone, Debug)]
pub struct Readings {
    /// When it was made, by the monotonic clock.
    pub seen_mono_ms: u64,
    /// `ok`, `degraded` or `down`, as health says.
    pub status: &'static str,
    pub phase: Phase,
    pub calendar_known: bool,
    /// When the years end of which the calendar lists the holidays; `None` if today is in none.
    pub calendar_ends: Option<Timestamp>,
    /// `None` where none was ever tried.
    pub backup: Option<BackupRecord>,
    /// Whether the last reload was refused.
    pub reload_refused: bool,
    /// What is published; `None` before the first.
    pub snapshot: Option<SnapshotReadings>,
    pub feeds: [FeedReadings; 2],
    /// Broker A's WebSocket.
    pub ticker: TickerReading,
    pub node: NodeReadings,
    /// How often a tick and a call of the same second differed.
    pub ticker_disagreements: u64,
    pub warmers: [WarmerReadings; 6],
}

/// This node among several.
#[derive(Clone, Copy, Debug)]
pub struct NodeReadings {
    pub role: Role,
    /// Of the leadership; `None` while this node follows.
    pub epoch: Option<u64>,
    pub relay: RelayReadings,
    /// Since this node last read what changed of accounts; `None` where it is alone.
    pub changes_age_ms: Option<u64>,
    /// How often something was refused because this node did not lead any more, by what it was.
    pub fenced: [(&'static str, u64); 4],
    /// What became of words about brokers' tokens.
    pub tokens: [(&'static str, u64); 10],
    /// What became of attempts that all nodes count together.
    pub limits: SharedTally,
}

/// The relay, as this node hears it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelayReadings {
    /// Since the leader was last heard, or since the start; `None` where there are no others.
    pub age_ms: Option<u64>,
    pub gaps: u64,
}

/// One warmer.
#[derive(Clone, Copy, Debug)]
pub struct WarmerReadings {
    /// As in health.
    pub name: &'static str,
    /// One of [`WARMER_STATES`].
    pub state: &'static str,
    pub runs: Runs,
}

/// The published snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotReadings {
    /// How old the primary index's price is.
    pub age: Age,
    pub simulated: bool,
}

/// One feed.
#[derive(Clone, Copy, Debug)]
pub struct FeedReadings {
    pub source: Source,
    pub state: FeedWord,
    /// Since the call went out that it last answered as it should, when the reading was made;
    /// `None` before the first.
    pub age_ms: Option<u64>,
    /// How far it runs behind by its nature.
    pub delay_s: Option<u32>,
    pub rounds: u64,
    pub failures: u64,
}

// ---- Heartbeat
//
// The scheduler's heartbeat: when it last finished a tick, and what is being served.
//
// Written by the scheduler after each tick, read from any thread. No locks.

/// What the published snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serving {
    /// How old the primary index's price is.
    pub age: Age,
    pub phase: Phase,
}

impl Serving {
    /// What an operator wants to know of a snapshot.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let MarketView { age, phase, .. } = snapshot.market;
        Self { age, phase }
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

    /// What has been served since; `None` before there is a snapshot.
    pub(crate) fn serving(&self) -> Option<Serving> {
        self.serving.load().as_deref().copied()
    }
}
