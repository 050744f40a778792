//! Settings of the brokers, of the public provider, and of every call to one.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use secrecy::SecretString;

use crate::base::Broker;

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
    /// Whether prices are also taken from the WebSocket.
    pub ticker: bool,
    pub ticker_url: String,
    /// The broker allows 3,000 on one connection.
    pub ticker_symbols_max: usize,
    pub lane_threads: usize,
}

impl BrokerASettings {
    /// Where the ticker is to be opened; `None` when it is switched off. A broker elsewhere than by
    /// default, such as the simulator, has its ticker elsewhere too: the token that is for one is
    /// never sent to the other.
    pub(crate) fn ticker_endpoint(&self) -> Option<&str> {
        let usual = Self::default();
        let apart = self.url != usual.url && self.ticker_url == usual.ticker_url;
        (self.ticker && !apart).then_some(&self.ticker_url)
    }
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
            ticker: true,
            ticker_url: "wss://ws.kite.trade".into(),
            ticker_symbols_max: 3_000,
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

// ---- App keys
//
// Key and secret of the server's own app at a broker. An operator may change them while the
// service runs; a call that has begun goes on with those it took.

/// Each may be missing: without both nothing can be activated.
#[derive(Debug)]
pub(crate) struct AppKeys {
    pub api_key: Option<SecretString>,
    pub api_secret: Option<SecretString>,
}

/// The slot for the present ones.
#[derive(Debug)]
pub(super) struct AppKeySlot(ArcSwap<AppKeys>);

impl AppKeySlot {
    pub(super) fn new(api_key: Option<&SecretString>, api_secret: Option<&SecretString>) -> Self {
        Self(ArcSwap::from_pointee(AppKeys {
            api_key: api_key.cloned(),
            api_secret: api_secret.cloned(),
        }))
    }

    pub(super) fn set(&self, keys: AppKeys) {
        self.0.store(Arc::new(keys));
    }

    pub(super) fn load(&self) -> Arc<AppKeys> {
        self.0.load_full()
    }
}

// ---- Login page
//
// Where a person logs in at a broker to get a one-time code.

/// The address of the login page of the broker whose API is at `api_url`. The API key,
/// percent-encoded, belongs to its end.
///
/// A broker elsewhere than by default, such as the simulator, has its page below its own address:
/// who tries the simulator is not sent to log in at the real broker.
pub(crate) fn login_page(broker: Broker, api_url: &str) -> String {
    let (usual_api, usual_page, path) = match broker {
        Broker::A => (
            BrokerASettings::default().url,
            "https://kite.zerodha.com/connect/login",
            "/connect/login",
        ),
        Broker::B => (
            BrokerBSettings::default().url,
            "https://api.icicidirect.com/apiuser/login",
            "/apiuser/login",
        ),
    };
    let page =
        if api_url == usual_api { usual_page.to_owned() } else { format!("{api_url}{path}") };
    match broker {
        Broker::A => format!("{page}?v=3&api_key="),
        Broker::B => format!("{page}?api_key="),
    }
}

#[cfg(test)]
mod login_page_tests {
    use super::*;

    #[test]
    fn a_broker_elsewhere_has_its_login_there_too() {
        let (a, b) = (BrokerASettings::default().url, BrokerBSettings::default().url);
        for (broker, url, expected) in [
            (Broker::A, a.as_str(), "https://kite.zerodha.com/connect/login?v=3&api_key="),
            (Broker::B, &b, "https://api.icicidirect.com/apiuser/login?api_key="),
            (Broker::A, "http://127.0.0.1:1/a", "http://127.0.0.1:1/a/connect/login?v=3&api_key="),
            (Broker::B, "http://127.0.0.1:1/b", "http://127.0.0.1:1/b/apiuser/login?api_key="),
        ] {
            assert_eq!(login_page(broker, url), expected);
        }
    }
}
