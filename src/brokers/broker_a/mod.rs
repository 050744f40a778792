//! Broker A (Kite Connect v3): the real-time feed, the daily token, the instruments file, and the
//! portfolios of users.
//!
//! Runs on upstream lanes; every call blocks up to its deadline. It never renews a token by itself
//! and never logs one.

mod client;
pub mod instruments;
mod portfolio;
mod portfolio_wire;
pub mod replies;
mod session;
pub mod wire;

pub use client::BrokerA;

/// The name in errors and logs.
pub(super) const NAME: &str = "broker A";
