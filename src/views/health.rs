//! `GET /api/health`: the state of each part of the service.

use std::sync::Arc;

use serde::Serialize;

use super::values::{Day, Delay, Instant, Mark};
use crate::base::Source;
use crate::market::Phase;

/// State as last probed, at most a few seconds ago.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Health {
    /// `down` comes with status 503.
    #[cfg_attr(test, schemars(extend("enum" = ["ok", "degraded", "down"])))]
    pub status: &'static str,
    pub version: &'static str,
    pub uptime_s: u64,
    /// What this node is called among several; absent where it is alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `leader`: it asks the brokers for all nodes. `follower`: it is told what another asked.
    #[cfg_attr(test, schemars(extend("enum" = ["alone", "leader", "follower"])))]
    pub role: &'static str,
    /// The number of the leadership: this node's, or of the leader that a follower last heard.
    /// Absent where it is alone, or has heard none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The node that leads in this epoch, as `node` names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay: Option<HealthRelay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<HealthChanges>,
    /// The store of accounts and portfolios.
    #[cfg_attr(
        test,
        schemars(extend("enum" = [
            "ok", "read_only", "full", "corrupt", "busy", "stuck", "unavailable"
        ]))
    )]
    pub database: &'static str,
    /// The key that signs access tokens: kept in its file, or given by a setting. Where the file is
    /// missing or has been changed, the next start ends every login.
    #[cfg_attr(test, schemars(extend("enum" = ["kept", "given", "missing", "changed"])))]
    pub signing_key: &'static str,
    pub store: HealthStore,
    pub cache_l1: HealthCacheL1,
    pub cache_answers: HealthCacheAnswers,
    pub cache_l2: HealthCacheL2,
    pub warmers: HealthWarmers,
    pub feeds: HealthFeeds,
    pub market: HealthMarket,
    pub close: HealthClose,
    pub signals: HealthSignals,
    pub lanes: Vec<LaneReport>,
    pub log: HealthLog,
    pub clock: HealthClock,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<HealthBackup>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload: Option<HealthReload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_listener: Option<HealthAdminListener>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_server: Option<HealthSharedServer>,
    /// Settings by which others on the network can read what is sent, or use the shared server;
    /// absent where there is none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub exposed: Arc<Vec<HealthExposed>>,
    pub disclaimer: &'static str,
}

/// What the leader tells the other nodes, as this node hears it.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthRelay {
    #[cfg_attr(
        test,
        schemars(extend("enum" = ["connecting", "following", "silent", "waiting", "off"]))
    )]
    pub state: &'static str,
    /// Milliseconds since the leader was last heard; absent before the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Messages that were missed since the start.
    pub gaps: u64,
    /// The brokers' tokens of the day; absent where nodes have no way to tell each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<HealthTokens>,
}

/// Who gave the brokers' tokens, and what was told of them since the start.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthTokens {
    /// `login` is one that this node, or the process before it, was given. `none` has also one that
    /// expired or was refused.
    #[cfg_attr(test, schemars(extend("enum" = ["none", "settings", "login", "other_node"])))]
    pub broker_a: &'static str,
    #[cfg_attr(test, schemars(extend("enum" = ["none", "settings", "login", "other_node"])))]
    pub broker_b: &'static str,
    /// Told to the other nodes: tokens, and that one was refused.
    pub told: u64,
    /// Told by another node and put in force here.
    pub taken: u64,
    /// Sealed with another `JWT_SECRET`.
    pub foreign: u64,
}

/// What this node knows of accounts and tokens that other nodes changed; absent where it is alone.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthChanges {
    /// Number of the last change that this node has applied.
    pub applied: i64,
    /// Milliseconds since it last read them. Above 30,000 it accepts no token.
    pub age_ms: u64,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthStore {
    pub writes: u64,
    pub commits: u64,
    pub refused: u64,
}

/// Quotes in memory.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthCacheL1 {
    /// Entries.
    pub size: usize,
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    /// Requests that wait for a quote.
    pub waiting: usize,
}

/// Responses kept for users.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthCacheAnswers {
    pub users: usize,
    pub bytes: usize,
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    pub refused: u64,
}

/// The second level, on disk or on a server that nodes share.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthCacheL2 {
    #[cfg_attr(test, schemars(extend("enum" = ["sqlite", "valkey", "redis", "none"])))]
    pub backend: &'static str,
    pub hits: u64,
    pub misses: u64,
    pub errors: u64,
}

/// State of a warmer (background task): `ok`, or the name of its fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WarmerState(pub &'static str);

/// Background tasks that keep data fresh.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthWarmers {
    pub index: WarmerState,
    pub quotes: WarmerState,
    pub instruments: WarmerState,
    pub persist: WarmerState,
    pub close: WarmerState,
    pub signals: WarmerState,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthFeeds {
    pub broker_a: Feed,
    pub public: Feed,
}

/// State of a feed: one word each, in health and as a label in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedWord {
    Off,
    NoPermission,
    TokenDead,
    NoToken,
    Open,
    Hanging,
    Ok,
    Failing,
    Standby,
    Mute,
    Starting,
    Stale,
    Relayed,
}

impl FeedWord {
    /// The cause first, where one is known: what an operator would mend.
    pub const ALL: [Self; 13] = [
        Self::Off,
        Self::NoPermission,
        Self::TokenDead,
        Self::NoToken,
        Self::Open,
        Self::Hanging,
        Self::Ok,
        Self::Failing,
        Self::Standby,
        Self::Mute,
        Self::Starting,
        Self::Stale,
        Self::Relayed,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NoPermission => "no_permission",
            Self::TokenDead => "token_dead",
            Self::NoToken => "no_token",
            Self::Open => "open",
            Self::Hanging => "hanging",
            Self::Ok => "ok",
            Self::Failing => "failing",
            Self::Standby => "standby",
            Self::Mute => "mute",
            Self::Starting => "starting",
            Self::Stale => "stale",
            Self::Relayed => "relayed",
        }
    }
}

// A variant that `ALL` lacks would have no line in metrics.
const _: () = {
    let mut at = 0;
    while at < FeedWord::ALL.len() {
        assert!(FeedWord::ALL[at] as usize == at);
        at += 1;
    }
    assert!(FeedWord::Relayed as usize + 1 == FeedWord::ALL.len());
};

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Feed {
    pub state: FeedWord,
    /// Milliseconds since the last successful call was sent; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Delay>,
    pub rounds: u64,
    pub failures: u64,
    /// Cause of the last failure; absent once a call succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Broker A's WebSocket; absent at the public provider and when switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticker: Option<HealthTicker>,
}

/// Prices that are pushed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthTicker {
    #[cfg_attr(
        test,
        schemars(extend("enum" = [
            "off", "connecting", "subscribing", "speaking", "waiting", "refused"
        ]))
    )]
    pub state: &'static str,
    /// Whether every leading index has ticked within seconds and is believed, so that calls only
    /// confirm prices.
    pub live: bool,
    /// Milliseconds since the last tick; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Instruments subscribed now.
    pub subscribed: usize,
    pub ticks: u64,
    /// Connections that ended or could not be opened.
    pub reconnects: u64,
    /// Why the last one ended or could not be opened; absent once prices flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthMarket {
    pub phase: Phase,
    /// Whether the calendar covers today.
    pub calendar_known: bool,
    /// Last date that the calendar covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar_until: Option<Day>,
    /// As in the snapshot, like the three that follow.
    pub as_of_ist: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Delay>,
    pub stale: Option<bool>,
    pub source: Option<Source>,
    pub instruments: usize,
    #[cfg_attr(test, schemars(extend("enum" = ["embedded", "broker_a"])))]
    pub instruments_origin: &'static str,
}

/// The last revaluation at the close in which this process took part.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthClose {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<Day>,
    pub priced: usize,
    /// Symbols without a closing price.
    pub missing: usize,
    /// How many of these had none on the trading date before either. The revaluation does not wait
    /// for them.
    pub suspended: usize,
    /// Whether more symbols are held than `BHAV_CLOSE_SYMBOLS_MAX`.
    pub cut_off: bool,
    pub pages: u64,
    /// Portfolios with their final point of the date.
    pub points: u64,
    /// Holdings in these points that had no closing price.
    pub carried: u64,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthSignals {
    pub as_of: Option<Day>,
    pub symbols: usize,
    /// Symbols whose candles are suspect and fetched again.
    pub silenced: usize,
    /// Symbols whose latest candle is not available.
    pub failed: usize,
    pub signals: usize,
    /// Only where provisional signals are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisional: Option<usize>,
    /// When unfinished candles were last evaluated; absent before the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisional_at: Option<Instant>,
}

/// Threads for work that may block, behind a bounded queue.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LaneReport {
    pub name: &'static str,
    /// Jobs in the queue.
    pub depth: usize,
    pub running: u64,
    pub completed: u64,
    /// Jobs refused because the queue was full.
    pub refused: u64,
    /// Jobs whose deadline passed before they ran.
    pub expired: u64,
    pub panicked: u64,
    /// Longest wait in the queue.
    pub wait_ms_max: u64,
}

/// What the log has lost since the start.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthLog {
    pub lines_dropped: u64,
    pub writes_failed: u64,
}

/// This machine's clock compared with the exchange's.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthClock {
    /// Present if the difference is too large for delays to be correct; negative: behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead_of_exchange_ms: Option<i64>,
    /// Present, and true, if the clock was set to another time on purpose.
    #[serde(skip_serializing_if = "Mark::is_absent")]
    pub set: Mark,
}

/// The last backup made by a command; absent before the first.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthBackup {
    /// When the last good backup was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded_ist: Option<Instant>,
    /// Whether the last attempt failed.
    pub failed: bool,
}

/// The last reload of the settings; present only if it was refused.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthReload {
    pub refused_ist: Instant,
}

/// The listener of metrics and probes; present only if its default address was not available.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthAdminListener {
    pub failure: String,
}

/// A connection to another machine that is not protected.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthExposed {
    pub setting: &'static str,
    /// `clear_text`: others can read it. `no_password`: others can use the server.
    #[cfg_attr(test, schemars(extend("enum" = ["clear_text", "no_password"])))]
    pub reason: &'static str,
}

/// The server that nodes share; present only while it refuses something.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthSharedServer {
    /// Each cause, with the setting to look at.
    pub refused: Vec<Arc<str>>,
}
