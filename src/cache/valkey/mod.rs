//! One Valkey or Redis server that several nodes share, and connections to it.
//!
//! - `settings`, `address`: where it is, as the operator says it. In every build, so that each can
//!   say what is wrong with it.
//! - `keys`: the names of keys and channels, all below one namespace.
//! - `installation`: which namespace that is, and the signatures of what stands below it.
//! - `socket`: a socket whose reads and writes end by a deadline.
//! - `dial`: from an address to a connection.
//! - `connection`: commands over it, by the `redis` crate, which encodes and decodes them. Its own
//!   connection is not used: it bounds each read and not the call, waits for names and for a full
//!   backlog without a deadline, and takes replies of any size.
//! - `client`: one connection that is opened anew when it broke. Every call ends by its deadline.
//! - `access`, `refusals`: what it refuses, and telling that once.
//! - `back_off`: how long it waits before the next try.
//!
//! All calls block: lane threads, start-up code and the thread `relay` alone make them.

#[cfg(feature = "engines")]
mod access;
mod address;
#[cfg(feature = "engines")]
mod back_off;
#[cfg(feature = "engines")]
mod client;
#[cfg(feature = "engines")]
mod connection;
#[cfg(feature = "engines")]
mod dial;
#[cfg(feature = "engines")]
mod error;
#[cfg(feature = "engines")]
pub(in crate::cache) mod installation;
#[cfg(feature = "engines")]
mod keys;
#[cfg_attr(not(feature = "engines"), allow(dead_code, reason = "only a server refuses anything"))]
mod refusals;
mod settings;
#[cfg(feature = "engines")]
mod socket;
#[cfg(feature = "engines")]
#[cfg(test)]
#[allow(dead_code, reason = "the dump is for tests from outside")]
mod test_server;
#[cfg(feature = "engines")]
#[cfg(test)]
pub(crate) mod testing;

pub use address::{Address, BadAddress, BadNamespace, Namespace, Place};
#[cfg(feature = "engines")]
pub(in crate::cache) use back_off::BackOff;
#[cfg(feature = "engines")]
pub(in crate::cache) use client::{Client, Deadlines};
#[cfg(feature = "engines")]
pub(in crate::cache) use connection::Connection;
#[cfg(feature = "engines")]
pub use dial::{Server, Unusable};
#[cfg(feature = "engines")]
pub use error::ValkeyError;
#[cfg(feature = "engines")]
pub use installation::{Distrust, Installation};
#[cfg(feature = "engines")]
pub(in crate::cache) use installation::{Opened, Room, SIGNED_BYTES, Signed, derive};
#[cfg(feature = "engines")]
pub(in crate::cache) use keys::script;
pub use refusals::{Refusal, Refusals};
pub use settings::ValkeySettings;
