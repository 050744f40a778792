//! The two levels of the cache and the meeting point of everybody who misses.
//!
//! [`l1`] is memory and is read on the edge; [`misses`] lets requests wait there for symbols that
//! are not cached yet, and [`probes`] for those that may not exist; [`l2`] survives a restart and
//! is only touched by lane threads and at start.
//! [`answers`] holds users' finished answers until they change.
//! None of them calls an upstream: they hold what the warmers bring.

mod board;
mod freshness;
pub mod l1;
pub mod l2;
pub mod misses;
pub mod probes;
mod quote_json;
pub mod responses;

pub use l1::{Freshness, Hit, Kept, L1, Limits, Peek, Vouched};
pub use l2::sqlite::SqliteL2;
pub use l2::{Kind, L2Error, SecondLevel};
pub use misses::{Misses, Taken};
pub use probes::Probes;
pub use responses::{Responses, View};
