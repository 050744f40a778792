//! All settings of the service, composed of the settings structs of its modules.

use std::path::PathBuf;

use jiff::Timestamp;

use super::sim::SimSettings;
use crate::admin::settings::AdminSettings;
use crate::auth::settings::AuthSettings;
use crate::brokers::settings::BrokerASettings;
use crate::brokers::settings::BrokerBSettings;
use crate::brokers::settings::PublicSettings;
use crate::brokers::settings::UpstreamSettings;
use crate::cache::settings::CacheSettings;
use crate::cache::valkey::ValkeySettings;
use crate::http::settings::HttpSettings;
use crate::market::settings::MarketSettings;
use crate::ops::log_settings::LogSettings;
use crate::store::settings::StoreSettings;
use crate::warmers::settings::{CloseSettings, NodeSettings};
use crate::web::settings::WebSettings;

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
