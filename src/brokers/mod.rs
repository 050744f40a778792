//! Clients of the brokers and of the public provider, each in its own wire format.
//!
//! All calls block and run on the lane of their upstream, never on the edge. Each upstream has a
//! `wire` (bytes to typed values, pure) and a `client` (its calls). `call` is the guard stack of
//! every call, `sync` has the additional limits of users' syncs, and `session` holds the server's
//! own login.

mod broken_rows;
pub mod broker_a;
pub mod broker_b;
pub(crate) mod call;
pub(crate) mod error;
pub(crate) mod feed;
#[cfg(fuzzing)]
pub mod fuzzing;
pub(crate) mod login;
pub mod portfolio;
mod portfolio_client;
pub(crate) mod public;
pub(crate) mod quote_checks;
mod readiness;
pub mod session;
pub mod settings;
pub(crate) mod sync;
pub(crate) mod sync_limits;
#[cfg(test)]
mod testing;
mod trades;

pub use crate::brokers::quote_checks::CallTimes;
pub use crate::brokers::readiness::Readiness;
pub use broker_a::{BrokerA, BrokerASettings};
pub(crate) use broker_b::master as security_master;
pub use broker_b::{BrokerB, BrokerBSettings};
pub(crate) use call::gate::ClassReading;
pub use call::transport::{Peer, speak_to};
pub use error::{BrokerError, BrokerErrorKind};
pub(crate) use feed::MarketFeed;
pub use feed::{Batch, Push};
pub(crate) use login::login_at;
pub use portfolio::{Credentials, DailyCandles};
pub use portfolio_client::{Attempt, OpenSession, PortfolioClient};
pub use public::Public;
pub use quote_checks::{RowEvidence, Unproven};
pub use session::token::SharedToken;
pub(crate) use settings::AppKeys;
pub(crate) use sync::SyncCounts;
pub use trades::SyncedTrades;
