//! Broker A (Kite Connect v3): the real-time feed, the daily token, the instruments file, and the
//! portfolios of users.
//!
//! Runs on upstream lanes; every call blocks up to its deadline. It never renews a token by itself
//! and never logs one.

mod client;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod instruments;
mod open_session;
pub(crate) mod portfolio;
mod settings;
pub mod ticker;
mod trades_wire;
pub(crate) mod wire;

pub use client::BrokerA;
pub use instruments::Tokens;
pub use settings::BrokerASettings;
