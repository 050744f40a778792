//! The relay: prices from the leader to all nodes, and wanted symbols from all to the leader.
//!
//! - `update`: the messages and their bytes.
//! - `publisher`: the messages that this node sends.
//! - `follower`: the messages that this node receives, on the OS thread `relay`.
//! - `kept`: what the server keeps for nodes that come later.
//! - `valkey_relay`: both over one server.

pub(crate) mod encoding;
#[cfg(feature = "engines")]
pub(crate) mod follower;
#[cfg(feature = "engines")]
mod kept;
#[cfg(feature = "engines")]
pub(crate) mod publisher;
pub(crate) mod update;
#[cfg(feature = "engines")]
pub(crate) mod valkey_relay;

#[cfg(feature = "engines")]
pub use publisher::Publisher;
pub(crate) use update::WANTED_MAX;
pub use update::{Evening, Update};
