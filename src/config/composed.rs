//! All settings of the service, composed of the settings structs of its modules.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::admin::listener::AdminSettings;
use crate::auth::keys::AuthSettings;
use crate::brokers::settings::{
    BrokerASettings, BrokerBSettings, PublicSettings, UpstreamSettings,
};
use crate::cache::freshness::CacheSettings;
use crate::cache::valkey::ValkeySettings;
use crate::config::load::{Fault, Origin};
use crate::http::serve::HttpSettings;
use crate::market::indices::MarketSettings;
use crate::ops::log::LogSettings;
use crate::store::settings::StoreSettings;
use crate::warmers::context::{CloseSettings, NodeSettings};
use crate::web::site::WebSettings;

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
    pub valkey: ValkeySettings,
    pub store: StoreSettings,
    pub market: MarketSettings,
    pub close: CloseSettings,
    pub nodes: NodeSettings,
    pub auth: AuthSettings,
    pub web: WebSettings,
    pub sim: SimSettings,
    pub log: LogSettings,
    /// Directory of the databases and the signing key (`BHAV_STATE_DIR`).
    pub state_dir: PathBuf,
    /// Allow core files and debuggers (`BHAV_DEBUGGABLE`).
    pub debuggable: bool,
    /// Instant at which the service's clock starts, instead of now (`BHAV_NOW`).
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
            valkey: ValkeySettings::default(),
            store: StoreSettings::default(),
            market: MarketSettings::default(),
            close: CloseSettings::default(),
            nodes: NodeSettings::default(),
            auth: AuthSettings::default(),
            web: WebSettings::default(),
            sim: SimSettings::default(),
            log: LogSettings::default(),
            state_dir: PathBuf::from("./bhav-state"),
            debuggable: false,
            now: None,
        }
    }
}

// ---- Sim
//
// Settings of the simulator that `bhav demo` and `bhav sim` start.

/// A free port of another loopback address than the service's. A browser sends a cookie to every
/// port of its host name, and the login is none of the simulator's business.
pub(crate) const LISTEN_APART: &str = "127.0.0.2:0";
/// Where the machine has that address alone.
pub(crate) const LISTEN_BESIDE: &str = "127.0.0.1:0";

/// The simulator, used by `bhav demo` and `bhav sim` only.
#[derive(Debug, Clone)]
pub struct SimSettings {
    /// `IP:PORT`; port 0 takes a free port.
    pub listen: String,
    /// The same seed gives the same exchange day.
    pub seed: u64,
    /// Delay of the simulated public provider behind the exchange.
    pub public_delay_s: u64,
    /// Made-up shares beside the instruments that are always listed.
    pub more_shares: usize,
    /// How often a second each price moves.
    pub prices_per_s: u64,
}

impl Default for SimSettings {
    fn default() -> Self {
        // The real provider's observed delay is a quarter of an hour.
        Self {
            listen: LISTEN_APART.into(),
            seed: 1,
            public_delay_s: 900,
            more_shares: 0,
            prices_per_s: 1,
        }
    }
}

// ---- Loaded
//
// The result of reading all settings.

/// Valid settings, the origin of each, and warnings for the operator.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// By variable name, including secrets; a name that is absent has its default.
    pub origins: BTreeMap<&'static str, Origin>,
    pub warnings: Vec<String>,
}

/// Reads all settings again, as at the start.
pub(crate) type Reread<'a> = dyn Fn() -> Result<Loaded, Vec<Fault>> + 'a;
