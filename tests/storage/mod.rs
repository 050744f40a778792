//! The store's files on a faulty disk, and the store on a server.

mod files;
pub mod going_back;
mod owner;
mod put_back;
#[cfg(feature = "engines")]
mod server;
mod store;
mod upgrade;
