//! `/api/portfolio/*` of a user: syncs, and the data of the last ones.
//!
//! Handlers run on the edge. A response that the cache ([`Responses`](crate::cache::Responses)) has
//! costs a look-up and a copy. For one that it does not have, the request parks: the store reads
//! the rows, then the portfolio lane computes, writes and compresses. Every look-up names the
//! caller's id: no route can reach another user's rows.

mod answer;
pub(crate) mod export;
pub(crate) mod export_limit;
mod exported_ledger;
pub(crate) mod holdings;
mod moved_rows;
mod opened_session;
pub(crate) mod pnl;
pub(crate) mod positions;
pub(crate) mod report;
mod state;
pub(crate) mod sync;
mod synced_trades;
pub(crate) mod user_locks;

pub(crate) use crate::api::portfolio::state::PortfolioState;
pub(super) use export::export;
pub(super) use holdings::holdings;
pub(super) use pnl::pnl;
pub(super) use positions::positions;
pub(super) use sync::{delete, sync};
