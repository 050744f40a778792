//! Broker A (Kite Connect v3): the real-time feed, the daily token, the instruments file, and the
//! portfolios of users.
//!
//! Runs on upstream lanes; every call blocks up to its deadline. It never renews a token by itself
//! and never logs one.

mod candles;
mod client;
pub(crate) mod instrument_tokens;
pub mod instruments;
mod open_session;
mod portfolio;
mod portfolio_wire;
pub mod replies;
mod session;
pub mod ticker;
pub mod ticks;
pub mod wire;

pub use client::BrokerA;
pub use instrument_tokens::Tokens;
pub use open_session::{Attempt, OpenSession, SessionCounts};
