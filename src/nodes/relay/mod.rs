//! The relay: prices from the leader to all nodes, and wanted symbols from all to the leader.
//!
//! - `update`: the messages and their bytes.
//! - `publisher`: the messages that this node sends.
//! - `follower`: the messages that this node receives, on the OS thread `relay`.

pub(crate) mod encoding;
#[cfg(feature = "engines")]
pub(crate) mod follower;
#[cfg(feature = "engines")]
pub(crate) mod publisher;
pub(crate) mod update;

#[cfg(feature = "engines")]
pub use publisher::Publisher;
pub(crate) use update::WANTED_MAX;
pub use update::{Evening, Update};
