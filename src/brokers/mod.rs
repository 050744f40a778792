//! Clients of the brokers and of the public provider, each in its own wire format.
//!
//! All calls block and run on the lane of their upstream, never on the edge. Each upstream has a
//! `wire` (bytes to typed values, pure) and a `client` (its calls). `call` is the guard stack that
//! every call goes through, `sync` what users' syncs go through besides, `session` the server's own
//! login.

mod app_keys;
pub mod broker_a;
pub mod broker_b;
pub mod call;
mod error;
mod feed;
pub mod history;
mod login_page;
mod number;
pub mod portfolio;
pub mod public;
pub mod quote_checks;
pub mod session;
pub mod settings;
mod signing;
pub mod sync;
#[cfg(test)]
mod testing;

pub use app_keys::AppKeys;
pub use broker_a::BrokerA;
pub use broker_b::BrokerB;
pub use call::stats::{CallCounts, ClassReading};
pub use error::{BrokerError, BrokerErrorKind};
pub use feed::{Batch, CallTimes, MarketFeed, Push, Readiness};
pub use history::DailyCandles;
pub use login_page::login_page;
pub use portfolio::{Credentials, DocumentedReply};
pub use public::Public;
pub use session::token::SharedToken;
pub use sync::guard::SyncCounts;
