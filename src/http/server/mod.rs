//! Accepts connections, keeps the table of open ones, and drains them when the server stops.

pub mod acceptor;
pub(crate) mod connection_table;
pub mod listener;
pub mod shared;
pub mod stats;
