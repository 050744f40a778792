//! The outside world, brokers and quote sources, spoken to in their own wire formats.
//!
//! Everything here blocks and runs on an upstream lane, never on the edge. Per source: `wire`
//! (bytes to typed values, pure), `client` (HTTP, limits, breaker). What is common to all stands
//! beside this file.

mod app_keys;
pub mod broker_a;
pub mod broker_b;
pub mod call;
mod feed;
pub mod history;
mod number;
pub mod portfolio;
pub mod public;
pub mod quote_checks;
pub mod session;
mod signing;
pub mod sync;
#[cfg(test)]
mod testing;

pub use app_keys::AppKeys;
pub use broker_a::BrokerA;
pub use broker_b::BrokerB;
pub use call::stats::{CallCounts, ClassReading};
pub use feed::{Batch, CallTimes, FeedError, MarketFeed, Readiness};
pub use history::DailyCandles;
pub use portfolio::{AccountTrouble, Credentials, DocumentedReply, SyncError, SyncErrorKind};
pub use public::Public;
pub use session::token::SharedToken;
pub use sync::guard::SyncCounts;
