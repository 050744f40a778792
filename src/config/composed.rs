//! All settings of the service, composed of the settings structs of its modules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use secrecy::SecretString;

use crate::admin::listener::AdminSettings;
use crate::auth::keys::AuthSettings;
use crate::base::{Broker, Clock, settings};
use crate::brokers::settings::{PublicSettings, UpstreamSettings};
use crate::brokers::{BrokerASettings, BrokerBSettings};
use crate::cache::freshness::CacheSettings;
use crate::config::fault::{Fault, Origin};
use crate::http::settings::HttpSettings;
use crate::market::indices::MarketSettings;
use crate::nodes::cluster::NodeSettings;
use crate::nodes::valkey::ValkeySettings;
use crate::ops::log::LogSettings;
use crate::store::settings::StoreSettings;
use crate::warmers::context::CloseSettings;
use crate::web::site::WebSettings;

/// State directory of the package's systemd unit.
pub(crate) const PACKAGE_STATE_DIR: &str = "/var/lib/bhav";

settings! {
    /// All settings. `Config::default()` equals the result of an empty environment.
    pub struct Config {
        pub http: HttpSettings = Default::default(),
        pub admin: AdminSettings = Default::default(),
        pub broker_a: BrokerASettings = Default::default(),
        pub broker_b: BrokerBSettings = Default::default(),
        pub public: PublicSettings = Default::default(),
        pub upstream: UpstreamSettings = Default::default(),
        pub cache: CacheSettings = Default::default(),
        pub valkey: ValkeySettings = Default::default(),
        pub store: StoreSettings = Default::default(),
        pub market: MarketSettings = Default::default(),
        pub close: CloseSettings = Default::default(),
        pub nodes: NodeSettings = Default::default(),
        pub auth: AuthSettings = Default::default(),
        pub web: WebSettings = Default::default(),
        pub sim: SimSettings = Default::default(),
        pub log: LogSettings = Default::default(),
        /// Directory of the databases and the signing key (`BHAV_STATE_DIR`).
        pub state_dir: PathBuf = PathBuf::from("./bhav-state"),
        /// Allow core files and debuggers (`BHAV_DEBUGGABLE`).
        pub debuggable: bool = false,
        /// Instant at which the service's clock starts, instead of now (`BHAV_NOW`).
        pub now: Option<Timestamp> = None,
    }
}

/// The server's own app at a broker, as far as the settings of all brokers have it.
pub(crate) struct OwnApp<'a> {
    pub url: &'a str,
    pub api_key: &'a Option<SecretString>,
    pub api_secret: &'a Option<SecretString>,
    pub admin_secret: &'a Option<SecretString>,
    /// A token of the day, where the settings can have one.
    pub access_token: Option<&'a SecretString>,
}

impl Config {
    /// Changes the server's own app at this broker.
    pub(crate) fn set_own_app(
        &mut self,
        broker: Broker,
        url: String,
        api_key: SecretString,
        api_secret: SecretString,
    ) {
        match broker {
            Broker::A => {
                self.broker_a.url = url;
                self.broker_a.api_key = Some(api_key);
                self.broker_a.api_secret = Some(api_secret);
            }
            Broker::B => {
                self.broker_b.url = url;
                self.broker_b.api_key = Some(api_key);
                self.broker_b.api_secret = Some(api_secret);
            }
        }
    }

    /// The file that turns a broker's short codes into tickers.
    pub(crate) fn security_master(&self) -> Option<&Path> {
        self.broker_b.master_file.as_deref()
    }

    /// The server's own app at this broker.
    pub(crate) fn own_app(&self, broker: Broker) -> OwnApp<'_> {
        match broker {
            Broker::A => OwnApp {
                url: &self.broker_a.url,
                api_key: &self.broker_a.api_key,
                api_secret: &self.broker_a.api_secret,
                admin_secret: &self.broker_a.admin_secret,
                access_token: self.broker_a.access_token.as_ref(),
            },
            Broker::B => OwnApp {
                url: &self.broker_b.url,
                api_key: &self.broker_b.api_key,
                api_secret: &self.broker_b.api_secret,
                admin_secret: &self.broker_b.admin_secret,
                access_token: None,
            },
        }
    }
}

/// The clock of the settings.
pub(crate) fn clock_of(config: &Config) -> Clock {
    config.now.map_or_else(Clock::system, Clock::starting_at)
}

// ---- Sim
//
// Settings of the simulator that `bhav demo` and `bhav sim` start.

/// A free port of another loopback address than the service's. A browser sends a cookie to every
/// port of its host name, and the simulator must not receive the login.
pub(crate) const LISTEN_APART: &str = "127.0.0.2:0";
/// The fallback on a machine without that address.
pub(crate) const LISTEN_BESIDE: &str = "127.0.0.1:0";

settings! {
    /// The simulator, used by `bhav demo` and `bhav sim` only.
    pub struct SimSettings {
        /// `IP:PORT`; port 0 takes a free port.
        pub listen: String = LISTEN_APART.into(),
        /// The same seed gives the same exchange day.
        pub seed: u64 = 1,
        /// Delay of the simulated public provider behind the exchange. The real one's is a quarter
        /// of an hour.
        pub public_delay_s: u64 = 900,
        /// Made-up shares in addition to the instruments that are always listed.
        pub more_shares: usize = 0,
        /// Price moves per second, of each instrument.
        pub prices_per_s: u64 = 1,
    }
}

// ---- Loaded
//
// The result of reading all settings.

/// Valid settings, the origin of each, and warnings for the operator.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// Origins by variable name, including secrets; a missing name has its default.
    pub origins: BTreeMap<&'static str, Origin>,
    pub warnings: Vec<String>,
}

impl Loaded {
    /// Settings without a word of where they come from.
    pub fn of(config: Config) -> Self {
        Self {
            config,
            origins: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }
}

/// Reads all settings again, as at the start.
pub type Reread<'a> = dyn Fn() -> Result<Loaded, Vec<Fault>> + 'a;
