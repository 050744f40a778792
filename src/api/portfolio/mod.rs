//! `/api/portfolio/*` of a user: syncs, and what was synced last.
//!
//! Handlers run on the edge. Reads answer from [`Responses`] by a look-up and a copy; what is not
//! there is read, written and compressed on the portfolio lane, for which the request parks. Every
//! look-up names the caller's id: no route can reach another user's rows.

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
pub(crate) mod user_lock;

pub use delete::delete;
pub use export::export;
pub use holdings::holdings;
pub use pnl::pnl;
pub use positions::positions;
pub use state::PortfolioState;
pub use sync::{broker_a, broker_b};
