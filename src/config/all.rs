//! (what this file is)

use crate::config::admin::AdminSettings;
use crate::config::auth::AuthSettings;
use crate::config::brokers::BrokerASettings;
use crate::config::brokers::BrokerBSettings;
use crate::config::brokers::PublicSettings;
use crate::config::brokers::UpstreamSettings;
use crate::config::cache::CacheSettings;
use crate::config::close::CloseSettings;
use crate::config::http::HttpSettings;
use crate::config::log::LogSettings;
use crate::config::market::MarketSettings;
use crate::config::sim::SimSettings;
use crate::config::store::StoreSettings;
use jiff::Timestamp;
use std::path::PathBuf;

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
