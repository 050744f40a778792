//! One Valkey or Redis server that several nodes share, and connections to it.
//!
//! - `address`: the server's address and settings. In every build, so that each can report faults
//!   in them.
//! - `installation`: the namespace of all keys, and the signatures of what is stored below it.
//! - `connection`: a socket whose reads and writes end by a deadline, and commands over it by the
//!   `redis` crate, which encodes and decodes them. That crate's own connection is not used: it
//!   bounds each read and not the call, waits for names and for a full backlog without a deadline,
//!   and takes replies of any size. Also a check of what the server permits.
//! - `keys`: the table of all keys and channels, from which every script's checks are generated.
//! - `client`: one connection that is opened anew when it broke, after a pause. Every call ends by
//!   its deadline.
//! - `refusals`: what the server refuses and who else writes there, each cause logged once.
//!
//! All calls block: lane threads, start-up code and the thread `relay` alone make them.

mod address;
#[cfg(feature = "engines")]
mod client;
#[cfg(feature = "engines")]
mod connection;
#[cfg(feature = "engines")]
mod dial;
#[cfg(feature = "engines")]
pub(crate) mod installation;
#[cfg(feature = "engines")]
pub(crate) mod keys;
#[cfg_attr(
    not(feature = "engines"),
    allow(dead_code, reason = "only a server refuses anything")
)]
mod refusals;
#[cfg(feature = "engines")]
#[cfg(test)]
#[allow(dead_code, reason = "the dump is for tests from outside")]
mod test_server;
#[cfg(feature = "engines")]
#[cfg(test)]
pub(crate) mod test_server_stranger;
#[cfg(feature = "engines")]
#[cfg(test)]
pub(crate) mod testing;

pub use address::{Address, BadAddress, Namespace, NodeSecret, Place};
pub(crate) use address::{Secrets, ValkeySettings};
#[cfg(feature = "engines")]
pub(crate) use client::{Client, Deadlines};
#[cfg(feature = "engines")]
pub(crate) use connection::{Connection, ValkeyError};
#[cfg(feature = "engines")]
pub use dial::Server;
#[cfg(feature = "engines")]
pub(crate) use dial::Unusable;
#[cfg(feature = "engines")]
pub use installation::Installation;
#[cfg(feature = "engines")]
pub(crate) use installation::{Distrust, NamespaceKeys, Opened, Signed, derive};
#[cfg(feature = "engines")]
pub use keys::{Form, KEPT, KeptKey, KeptType, Writer};
#[cfg(feature = "engines")]
pub(crate) use keys::{Key, SIGNED_BYTES, looking_script, script};
pub(crate) use refusals::Refusals;
