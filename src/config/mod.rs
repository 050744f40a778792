//! Every setting, as one typed value.
//!
//! Read on the main thread before anything starts, and again at each reload; modules receive their
//! own part by reference. The defaults stand here and nowhere else. `table` names each setting and
//! its range, `load` reads flags and environment, `secrets` the credentials, `check` judges the
//! whole, `cli` makes the flags. Must never log: the log is started from what is read here.

pub mod check;
pub mod cli;
pub mod env_file;
pub mod load;
pub mod secrets;
pub mod settings;
pub mod template;
pub mod value;
mod words;

pub use words::{AdminListen, LogFormat, Registration};

use std::net::IpAddr;
use std::path::PathBuf;

use jiff::Timestamp;
use secrecy::SecretString;

/// All settings. `Config::default()` is what an empty environment gives.
#[derive(Debug, Clone)]
pub struct Config {
    pub http: HttpSettings,
    pub admin: AdminSettings,
    pub broker_a: BrokerASettings,
    pub broker_b: BrokerBSettings,
    pub public: PublicSettings,
    pub upstream: UpstreamSettings,
    pub cache: CacheSettings,
    pub store: StoreSettings,
    pub market: MarketSettings,
    pub close: CloseSettings,
    pub auth: AuthSettings,
    pub sim: SimSettings,
    pub log: LogSettings,
    /// Databases and keys live here (`BHAV_STATE_DIR`).
    pub state_dir: PathBuf,
    /// Leave core files and debuggers on (`BHAV_DEBUGGABLE`).
    pub debuggable: bool,
    /// Start the clock here instead of now (`BHAV_NOW`).
    pub now: Option<Timestamp>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            http: HttpSettings::default(),
            admin: AdminSettings::default(),
            broker_a: BrokerASettings::default(),
            broker_b: BrokerBSettings::default(),
            public: PublicSettings::default(),
            upstream: UpstreamSettings::default(),
            cache: CacheSettings::default(),
            store: StoreSettings::default(),
            market: MarketSettings::default(),
            close: CloseSettings::default(),
            auth: AuthSettings::default(),
            sim: SimSettings::default(),
            log: LogSettings::default(),
            state_dir: PathBuf::from("./bhav-state"),
            debuggable: false,
            now: None,
        }
    }
}

/// The edge: sockets and HTTP/1.1.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// `127.0.0.1:8080`, `[::1]:8080` or `unix:PATH`; a socket from systemd wins.
    pub listen: String,
    /// may workers; 0 means one per core.
    pub edge_threads: usize,
    pub connections_max: usize,
    /// A tenth of the above, so that it takes ten to fill it; 0 switches the limit off.
    pub connections_per_address_max: usize,
    pub head_bytes_max: usize,
    pub headers_max: usize,
    pub body_bytes_max: usize,
    pub head_timeout_ms: u64,
    pub body_timeout_ms: u64,
    pub idle_timeout_ms: u64,
    pub unread_output_bytes_max: usize,
    pub unread_output_timeout_ms: u64,
    pub drain_timeout_ms: u64,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    pub allowed_origins: Vec<String>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".into(),
            edge_threads: 0,
            connections_max: 10_000,
            connections_per_address_max: 1_000,
            head_bytes_max: 16 * 1024,
            headers_max: 100,
            body_bytes_max: 64 * 1024,
            head_timeout_ms: 10_000,
            body_timeout_ms: 20_000,
            idle_timeout_ms: 75_000,
            unread_output_bytes_max: 256 * 1024,
            unread_output_timeout_ms: 30_000,
            drain_timeout_ms: 20_000,
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

/// The operator's own listener: metrics and probes.
#[derive(Debug, Clone)]
pub struct AdminSettings {
    pub listen: AdminListen,
}

impl Default for AdminSettings {
    fn default() -> Self {
        Self { listen: AdminListen::Default }
    }
}

/// The server's own broker A app and shared token.
#[derive(Debug, Clone)]
pub struct BrokerASettings {
    pub url: String,
    pub api_key: Option<SecretString>,
    pub api_secret: Option<SecretString>,
    pub access_token: Option<SecretString>,
    pub admin_secret: Option<SecretString>,
    /// Least time between two quote calls. The broker allows one a second; the default leaves room
    /// for jitter on the way.
    pub quote_interval_ms: u64,
    pub lane_threads: usize,
}

impl Default for BrokerASettings {
    fn default() -> Self {
        Self {
            url: "https://api.kite.trade".into(),
            api_key: None,
            api_secret: None,
            access_token: None,
            admin_secret: None,
            quote_interval_ms: 1_050,
            lane_threads: 8,
        }
    }
}

/// The server's own broker B app.
#[derive(Debug, Clone)]
pub struct BrokerBSettings {
    pub url: String,
    pub api_key: Option<SecretString>,
    pub api_secret: Option<SecretString>,
    pub admin_secret: Option<SecretString>,
    /// The broker's security master, which turns its short codes into tickers
    /// (`BHAV_BROKERB_MASTER_FILE`).
    pub master_file: Option<PathBuf>,
    pub lane_threads: usize,
}

impl Default for BrokerBSettings {
    fn default() -> Self {
        Self {
            url: "https://api.icicidirect.com/breezeapi/api/v1".into(),
            api_key: None,
            api_secret: None,
            admin_secret: None,
            master_file: None,
            lane_threads: 8,
        }
    }
}

/// The public secondary quote provider.
#[derive(Debug, Clone)]
pub struct PublicSettings {
    pub enabled: bool,
    pub url: String,
    /// A library's default user-agent is refused; the accepted ones change
    /// (`wire/public-quotes.md`).
    pub user_agent: String,
    /// Least time between two batches of 20.
    pub batch_interval_ms: u64,
    pub lane_threads: usize,
}

impl Default for PublicSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            url: "https://query1.finance.yahoo.com".into(),
            user_agent: "Mozilla/5.0".into(),
            batch_interval_ms: 15_000,
            lane_threads: 2,
        }
    }
}

/// Limits of every upstream call.
#[derive(Debug, Clone)]
pub struct UpstreamSettings {
    pub connect_timeout_ms: u64,
    /// From the end of the request to the head of the answer, and for the body.
    pub read_timeout_ms: u64,
    pub total_timeout_ms: u64,
    /// All calls of one user's sync together.
    pub sync_timeout_ms: u64,
    /// Of one user, at both brokers together; 0 switches the limit off.
    pub sync_attempts_per_minute: u32,
    pub response_bytes_max: u64,
    /// The daily instruments file is larger than any other answer.
    pub instruments_bytes_max: u64,
    /// Of the public provider; a broker's are never followed.
    pub redirects_max: u32,
    /// Failures in a row that open a circuit.
    pub breaker_failures: u32,
    /// First time a circuit stays open; doubles up to the maximum, which is also how long a feed
    /// that works again may go unnoticed in market hours.
    pub breaker_open_ms: u64,
    pub breaker_open_max_ms: u64,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 2_000,
            read_timeout_ms: 5_000,
            total_timeout_ms: 7_000,
            sync_timeout_ms: 15_000,
            sync_attempts_per_minute: 30,
            response_bytes_max: 4 * 1024 * 1024,
            instruments_bytes_max: 32 * 1024 * 1024,
            redirects_max: 2,
            breaker_failures: 3,
            breaker_open_ms: 2_000,
            breaker_open_max_ms: 10_000,
        }
    }
}

/// The two cache levels.
#[derive(Debug, Clone)]
pub struct CacheSettings {
    /// Quotes and negative entries held in memory.
    pub l1_entries_max: usize,
    /// How long a symbol that no source knows is remembered as such.
    pub negative_ttl_ms: u64,
    /// How long a live-prices request may wait for symbols that are not cached.
    pub miss_wait_ms: u64,
    /// Requests that may wait at once.
    pub waiters_max: usize,
    /// Symbols that clients asked for within this time are kept fresh.
    pub demand_ttl_ms: u64,
    /// Records of one kind that the second level keeps on disk.
    pub l2_records_max: usize,
    /// Users' finished answers held in memory.
    pub answers_bytes_max: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            l1_entries_max: 10_000,
            negative_ttl_ms: 15 * 60_000,
            miss_wait_ms: 2_500,
            waiters_max: 2_000,
            demand_ttl_ms: 60_000,
            l2_records_max: 10_000,
            answers_bytes_max: 64 * 1024 * 1024,
        }
    }
}

/// Accounts, portfolios and the journal on disk.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// Threads that read, beside the one that writes.
    pub readers: usize,
    /// Waiting writes that one commit carries at most.
    pub writes_per_commit_max: usize,
    /// Of one user, to the journal or to delete; 0 switches the limit off.
    pub writes_per_user_per_minute: u32,
}

impl Default for StoreSettings {
    fn default() -> Self {
        // As many at once, for a page of a ledger that is taken over, and ten a second after that.
        Self { readers: 2, writes_per_commit_max: 256, writes_per_user_per_minute: 600 }
    }
}

/// Files that replace or add to the embedded market data, and what is made of it.
#[derive(Debug, Clone, Default)]
pub struct MarketSettings {
    /// Operator's calendar entries, which win over the embedded ones (`BHAV_CALENDAR_FILE`).
    pub calendar_file: Option<PathBuf>,
    /// Replaces the embedded index and sector list (`BHAV_INDICES_FILE`).
    pub indices_file: Option<PathBuf>,
    /// Replaces the embedded list of shares that signals are made of (`BHAV_UNIVERSE_FILE`).
    pub universe_file: Option<PathBuf>,
    /// Candles that are not finished give signals too, marked as such.
    pub signals_provisional: bool,
}

/// The evening's revaluation of stored portfolios.
#[derive(Debug, Clone)]
pub struct CloseSettings {
    /// Users valued and written in one transaction.
    pub page_users: usize,
    /// Held symbols whose closing price one evening asks for.
    pub symbols_max: usize,
}

impl Default for CloseSettings {
    fn default() -> Self {
        // All shares of both exchanges are fewer than half as many.
        Self { page_users: 200, symbols_max: 20_000 }
    }
}

/// Logging in.
#[derive(Debug, Clone)]
pub struct AuthSettings {
    /// Current signing key; without it one is made once and kept in the state directory.
    pub jwt_secret: Option<SecretString>,
    /// Keys that verify but sign no more, separated by commas.
    pub jwt_previous_secrets: Option<SecretString>,
    /// Who may make an account.
    pub registration: Registration,
    /// Per account and per client address; 0 switches the limit off.
    pub login_attempts_per_minute: u32,
    /// Per client address; 0 switches the limit off.
    pub registration_attempts_per_minute: u32,
    /// Memory of one password hash. The default is the floor that OWASP gives for two passes.
    pub argon2_memory_kib: u32,
    pub argon2_passes: u32,
    /// Threads that hash passwords; 0 is half of the cores, at least one.
    pub crypto_threads: usize,
    /// Hashes that may wait for a thread.
    pub crypto_queue_max: usize,
}

impl Default for AuthSettings {
    fn default() -> Self {
        Self {
            jwt_secret: None,
            jwt_previous_secrets: None,
            registration: Registration::Open,
            login_attempts_per_minute: 10,
            registration_attempts_per_minute: 10,
            argon2_memory_kib: 19_456,
            argon2_passes: 2,
            crypto_threads: 0,
            crypto_queue_max: 64,
        }
    }
}

/// The simulator, used by `bhav demo` and `bhav sim` only.
#[derive(Debug, Clone)]
pub struct SimSettings {
    /// `IP:PORT`; port 0 takes a free one.
    pub listen: String,
    /// The same seed gives the same exchange day.
    pub seed: u64,
    /// How far its public provider is behind the exchange.
    pub public_delay_s: u64,
}

impl Default for SimSettings {
    fn default() -> Self {
        // Observed delay of the real one: a quarter of an hour.
        Self { listen: "127.0.0.1:0".into(), seed: 1, public_delay_s: 900 }
    }
}

/// The log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// tracing filter.
    pub filter: String,
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { filter: "info".into(), format: LogFormat::Logfmt }
    }
}
