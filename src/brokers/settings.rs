//! Settings of the public provider, and of every call to an upstream. Those of a broker are in its
//! folder.

use secrecy::SecretString;

use crate::base::settings;

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
