//! `/api/portfolio/*` of a user: syncs, and what was synced last.
//!
//! Handlers run on the edge. A response that the cache ([`Responses`](crate::cache::Responses)) has
//! costs a look-up and a copy. For one that it does not have, the request parks: the store reads
//! the rows, then the portfolio lane computes, writes and compresses. Every look-up names the
//! caller's id: no route can reach another user's rows.

mod answer;
mod delete;
mod export;
pub(crate) mod export_limit;
mod holdings;
pub(crate) mod live_prices;
mod pnl;
mod positions;
mod report;
mod state;
mod sync;
mod turn;
pub(crate) mod user_lock;

pub(in crate::api) use answer::compute;
pub use delete::delete;
pub use export::export;
pub use holdings::holdings;
pub use pnl::pnl;
pub use positions::positions;
pub use state::PortfolioState;
pub use sync::{broker_a, broker_b};
