//! Symbols that are not cached and will be requested from a feed.
//!
//! A request registers its missing symbols and parks. The feed scheduler takes pending symbols into
//! its next call, and the answer wakes the requests that wait. Each symbol is fetched once, for any
//! number of requests.

mod board;
mod classes;
mod single_flight;
pub mod unlisted;

pub use classes::{CallCapacity, Class, Pending, Taken};
pub(crate) use single_flight::{Kick, Wait};
