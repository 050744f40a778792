//! Every setting, as one typed value.
//!
//! Read on the main thread before anything starts, and again at each reload; modules receive their
//! own part by reference. The defaults stand here and nowhere else. `table` names each setting and
//! its range, `load` reads flags and environment, `secrets` the credentials, `check` judges the
//! whole, `cli` makes the flags. Must never log: the log is started from what is read here.

mod admin;
mod all;
mod auth;
mod brokers;
mod cache;
pub mod check;
pub mod cli;
mod close;
pub mod env_file;
mod http;
pub mod load;
mod log;
mod market;
pub mod secrets;
pub mod settings;
mod sim;
mod store;
pub mod template;
pub mod value;
mod words;

pub use admin::AdminSettings;
pub use all::Config;
pub use auth::AuthSettings;
pub use brokers::{BrokerASettings, BrokerBSettings, PublicSettings, UpstreamSettings};
pub use cache::CacheSettings;
pub use close::CloseSettings;
pub use http::HttpSettings;
pub use log::LogSettings;
pub use market::MarketSettings;
pub use sim::SimSettings;
pub use store::StoreSettings;
pub use words::{AdminListen, LogFormat, Registration};
