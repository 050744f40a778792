//! Settings of the brokers, of the public provider, and of every call to one.

use std::path::PathBuf;

use secrecy::SecretString;

use crate::base::{Broker, settings};

settings! {
    /// The server's own broker A app and shared token.
    pub struct BrokerASettings {
        pub url: String = "https://api.kite.trade".into(),
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

settings! {
    /// The server's own broker B app.
    pub struct BrokerBSettings {
        pub url: String = "https://api.icicidirect.com/breezeapi/api/v1".into(),
        pub api_key: Option<SecretString> = None,
        pub api_secret: Option<SecretString> = None,
        pub admin_secret: Option<SecretString> = None,
        /// The broker's security master, which turns its short codes into tickers
        /// (`BHAV_BROKERB_MASTER_FILE`).
        pub master_file: Option<PathBuf> = None,
        pub lane_threads: usize = 8,
    }
}

settings! {
    /// The public secondary quote provider.
    pub struct PublicSettings {
        pub enabled: bool = true,
        pub url: String = "https://query1.finance.yahoo.com".into(),
        /// A library's default user-agent is refused; the accepted ones change
        /// (`wire/public-quotes.md`).
        pub user_agent: String = "Mozilla/5.0".into(),
        /// Least time between two batches of 20.
        pub batch_interval_ms: u64 = 15_000,
    }
}

settings! {
    /// Limits of every upstream call.
    pub struct UpstreamSettings {
        pub connect_timeout_ms: u64 = 2_000,
        /// Time from the end of the request to the head of the answer, and for the body.
        pub read_timeout_ms: u64 = 5_000,
        pub total_timeout_ms: u64 = 7_000,
        /// All calls of one user's sync together.
        pub sync_timeout_ms: u64 = 15_000,
        /// Syncs of one user at both brokers together; 0 switches the limit off.
        pub sync_attempts_per_minute: u32 = 30,
        pub response_bytes_max: u64 = 4 * 1024 * 1024,
        /// The daily instruments file is larger than any other answer.
        pub instruments_bytes_max: u64 = 32 * 1024 * 1024,
        /// Failures in a row that open a circuit.
        pub breaker_failures: u32 = 3,
        /// First time a circuit stays open; doubles up to the maximum, which is also how long a
        /// feed that works again may go unnoticed in market hours.
        pub breaker_open_ms: u64 = 2_000,
        pub breaker_open_max_ms: u64 = 10_000,
    }
}

// ---- App keys
//
// Key and secret of the server's own app at a broker. An operator may change them while the service
// runs; a call that has begun keeps the old ones.

/// The key and the secret. An activation needs both.
#[derive(Debug)]
pub struct AppKeys {
    pub api_key: Option<SecretString>,
    pub api_secret: Option<SecretString>,
}

impl AppKeys {
    pub(crate) fn of(key: &Option<SecretString>, secret: &Option<SecretString>) -> Self {
        Self {
            api_key: key.clone(),
            api_secret: secret.clone(),
        }
    }
}

// ---- Login page
//
// The page on which a person logs in at a broker to get a one-time code.

/// The name of a login's one-time code where the broker sends the browser with it, and the name in
/// our own requests, which is understood there too.
pub(crate) const fn code_names(broker: Broker) -> [&'static str; 2] {
    match broker {
        Broker::A => ["request_token", "request_token"],
        Broker::B => ["apisession", "api_session"],
    }
}

/// The one-time code in words.
pub(crate) const fn code_in_words(broker: Broker) -> &'static str {
    match broker {
        Broker::A => "request_token",
        Broker::B => "API session",
    }
}

/// Whether the login may have the browser send the code in a form.
pub(crate) const fn sends_a_form(broker: Broker) -> bool {
    matches!(broker, Broker::B)
}

/// The address of the login page of the broker whose API is at `api_url`. The caller appends the
/// percent-encoded API key.
///
/// If the broker's URL is not the default, as with the simulator, the page is below that URL, so
/// that users of the simulator are not sent to the real broker.
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
    let page = if api_url == usual_api {
        usual_page.to_owned()
    } else {
        format!("{api_url}{path}")
    };
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
        let a = BrokerASettings::default().url;
        let b = BrokerBSettings::default().url;
        for (broker, url, expected) in [
            (Broker::A, a.as_str(), "https://kite.zerodha.com/connect/login?v=3&api_key="),
            (Broker::B, &b, "https://api.icicidirect.com/apiuser/login?api_key="),
            (
                Broker::A,
                "http://127.0.0.1:1/a",
                "http://127.0.0.1:1/a/connect/login?v=3&api_key=",
            ),
            (Broker::B, "http://127.0.0.1:1/b", "http://127.0.0.1:1/b/apiuser/login?api_key="),
        ] {
            assert_eq!(login_page(broker, url), expected);
        }
    }
}
