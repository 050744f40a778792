//! Settings of broker B.

use std::path::PathBuf;

use secrecy::SecretString;

use crate::base::{Broker, settings};
use crate::brokers::login::login_at;

settings! {
    /// The server's own broker B app.
    pub struct BrokerBSettings {
        pub url: String = login_at(Broker::B).usual_api.into(),
        pub api_key: Option<SecretString> = None,
        pub api_secret: Option<SecretString> = None,
        pub admin_secret: Option<SecretString> = None,
        /// The broker's security master, which turns its short codes into tickers
        /// (`BHAV_BROKERB_MASTER_FILE`).
        pub master_file: Option<PathBuf> = None,
        pub lane_threads: usize = 8,
    }
}
