//! Both cache levels, finished responses of users, and requests that wait for a quote.
//!
//! [`l1`] holds quotes in memory and is read on the edge. [`pending`] lets requests wait for
//! symbols that are not cached yet. [`l2`] is on disk, or on a server that several nodes share
//! (`nodes::second_level`), and survives a restart; lane threads and start-up code use it.
//! [`responses`] holds users' finished responses until the data changes, and [`movers`] the one of
//! the shares that move. Nothing here calls an upstream: the warmers (background tasks) fill the
//! caches, and [`demand`] is what views want of them.

pub(crate) mod candle_work;
pub(crate) mod demand;
mod entry;
pub mod freshness;
pub mod l1;
pub mod l2;
pub(crate) mod movers;
pub mod pending;
pub mod responses;

pub(crate) use candle_work::CandleWork;
pub use entry::Peek;
pub use freshness::{FreshnessRules, SourceRules};
pub(crate) use l1::{Freshness, Hit};
pub use l1::{Kept, L1, Limits, Vouched};
pub(crate) use l2::L2Error;
pub use l2::sqlite::SqliteL2;
pub use l2::{Kind, SecondLevel};
pub(crate) use movers::Movers;
pub(crate) use pending::Pending;
pub(crate) use responses::{Responses, View};
