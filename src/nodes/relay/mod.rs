//! The relay: prices from the leader to all nodes, and wanted symbols from all to the leader.
//!
//! - `update`: the messages and their bytes.
//! - `publisher`: what this node sends.
//! - `follower`: what this node receives, on the OS thread `relay`.

#[cfg(feature = "engines")]
pub(crate) mod follower;
#[cfg(feature = "engines")]
pub(crate) mod publisher;
pub(crate) mod update;

#[cfg(feature = "engines")]
pub use publisher::Publisher;
pub use update::{Evening, Update};
pub(crate) use update::{RunningSignals, WANTED_MAX};
