//! The store's files on a disk that misbehaves, and the store on a server.

mod files;
pub mod going_back;
#[cfg(feature = "engines")]
mod server;
mod store;
