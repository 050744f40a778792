//! Settings of broker A.

use secrecy::SecretString;

use crate::base::{Broker, settings};
use crate::brokers::login::login_at;

settings! {
    /// The server's own broker A app and shared token.
    pub struct BrokerASettings {
        pub url: String = login_at(Broker::A).usual_api.into(),
        pub api_key: Option<SecretString> = None,
        pub api_secret: Option<SecretString> = None,
        pub access_token: Option<SecretString> = None,
        pub admin_secret: Option<SecretString> = None,
        /// Least time between two quote calls. The broker allows one a second; the default leaves
        /// room for jitter on the way.
        pub quote_interval_ms: u64 = 1_050,
        /// Whether prices are also taken from the WebSocket.
        pub ticker: bool = true,
        pub ticker_url: String = "wss://ws.kite.trade".into(),
        /// The broker allows 3,000 on one connection.
        pub ticker_symbols_max: usize = 3_000,
        pub lane_threads: usize = 8,
    }
}

impl BrokerASettings {
    /// The URL of the ticker; `None` if it is switched off. Also `None` if the broker's URL is
    /// changed, as for the simulator, and the ticker's is not: no token may go to another host.
    pub(crate) fn ticker_endpoint(&self) -> Option<&str> {
        let usual = Self::default();
        let apart = self.url != usual.url && self.ticker_url == usual.ticker_url;
        (self.ticker && !apart).then_some(&self.ticker_url)
    }
}
