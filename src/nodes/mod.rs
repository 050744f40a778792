//! Several nodes of one installation: their leadership, and the messages between them.
//!
//! - [`lead`]: whether this node leads at this moment. Everything that acts for all nodes checks
//!   it.
//! - [`lease`]: the state machine by which a node comes to lead, and the threads that call the
//!   authorities.
//! - `authorities`: the two authorities, a row of the database and a key of the shared server.
//! - `relay`: prices from the leader to all nodes, and wanted symbols from all nodes to the leader.
//! - `tokens`: the brokers' tokens of the day, encrypted.
//! - `limits`: rate limits that hold over all nodes together.
//! - `second_level`: the second cache level on the shared server.
//! - [`valkey`]: connections to that server, the names of keys there, and signatures.
//! - [`cluster`]: `Nodes`, the handle by which the warmers reach all of this.
//!
//! Nothing here decides what is fresh and what is called: the warmers do. They are reached through
//! closures that the code that builds the service passes in.

#[cfg(feature = "engines")]
pub mod authorities;
pub(crate) mod cluster;
#[cfg(feature = "engines")]
#[cfg(test)]
mod foreign_writes_tests;
pub(crate) mod lead;
pub mod lease;
pub mod lease_thread;
#[cfg(feature = "engines")]
pub(crate) mod limits;
#[cfg(feature = "engines")]
#[cfg(test)]
mod other_versions_tests;
pub mod relay;
#[cfg(feature = "engines")]
pub(crate) mod second_level;
#[cfg(feature = "engines")]
pub(crate) mod tokens;
pub mod valkey;

pub(crate) use cluster::Nodes;
pub(crate) use lead::Fence;
pub use lead::{Lead, Term};
