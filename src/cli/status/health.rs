//! The documents that `bhav status` reads, as far as it shows them. A missing field (from another
//! version of the service) has its default; an unknown field is ignored.

use serde::{Deserialize, Serialize};

/// `GET /api/health`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Health {
    pub status: String,
    pub version: String,
    pub uptime_s: u64,
    pub node: Option<String>,
    pub role: String,
    pub epoch: Option<u64>,
    pub leader: Option<String>,
    pub relay: Option<Relay>,
    pub database: String,
    pub signing_key: String,
    pub store: Store,
    pub cache_l1: CacheL1,
    pub cache_answers: CacheAnswers,
    pub cache_l2: CacheL2,
    pub warmers: Warmers,
    pub feeds: Feeds,
    pub market: Market,
    pub lanes: Vec<Lane>,
    pub log: Log,
    pub clock: Clock,
    pub backup: Option<Backup>,
    pub reload: Option<Reload>,
    pub admin_listener: Option<AdminListener>,
    pub exposed: Vec<Exposed>,
    pub shared_server: Option<SharedServer>,
}

/// A connection that is not protected.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Exposed {
    pub setting: String,
    pub reason: String,
}

/// What the server that nodes share refuses.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SharedServer {
    pub refused: Vec<String>,
}

/// What this node hears of the others.
#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub struct Relay {
    pub state: String,
    pub age_ms: Option<u64>,
    pub gaps: u64,
    #[serde(skip_serializing)]
    pub tokens: Option<RelayTokens>,
}

/// Who gave the brokers' tokens.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct RelayTokens {
    pub broker_a: String,
    pub broker_b: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Store {
    pub writes: u64,
    pub refused: u64,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub struct CacheL1 {
    pub size: u64,
    pub hits: u64,
    pub misses: u64,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub struct CacheAnswers {
    pub users: u64,
    pub hits: u64,
    pub misses: u64,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub struct CacheL2 {
    pub backend: String,
    pub errors: u64,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub struct Warmers {
    pub index: String,
    pub quotes: String,
    pub instruments: String,
    pub persist: String,
    pub close: String,
    pub signals: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Feeds {
    pub broker_a: Feed,
    pub public: Feed,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub struct Feed {
    pub state: String,
    pub age_ms: Option<u64>,
    pub delay_s: Option<u64>,
    pub failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticker: Option<Ticker>,
}

/// Broker A's WebSocket.
#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub struct Ticker {
    pub state: String,
    pub live: bool,
    pub failure: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Market {
    pub phase: String,
    pub calendar_known: bool,
    pub calendar_until: Option<String>,
    pub as_of_ist: Option<String>,
    pub delay_s: Option<u64>,
    pub stale: Option<bool>,
    pub source: Option<String>,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub struct Lane {
    pub name: String,
    pub depth: u64,
    pub refused: u64,
    pub expired: u64,
    pub panicked: u64,
}

impl Lane {
    /// Whether jobs wait now, or were not done since the start.
    pub fn has_trouble(&self) -> bool {
        self.depth + self.refused + self.expired + self.panicked > 0
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Log {
    pub lines_dropped: u64,
    pub writes_failed: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Clock {
    pub ahead_of_exchange_ms: Option<i64>,
    pub set: bool,
}

/// The last backup that a command made or tried.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct Backup {
    pub succeeded_ist: Option<String>,
    pub failed: bool,
}

/// The last reload, where it was refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reload {
    pub refused_ist: String,
}

/// The listener of metrics and probes, where it could not be had.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AdminListener {
    pub failure: String,
}

/// `GET /brokera/status`, `GET /brokerb/status`.
#[derive(Debug, Default, Deserialize)]
pub struct Token {
    pub initialized: bool,
    pub valid: bool,
    #[serde(default)]
    pub expires_at: Option<String>,
}
