//! Accepts connections, keeps the table of the open ones, and drains them at the end.

pub mod acceptor;
pub(crate) mod connection_table;
pub mod listener;
pub mod shared;
pub mod stats;
