//! Accepts connections, keeps the table of open ones, and drains them when the server stops.

pub mod acceptor;
pub(crate) mod connection_table;
mod fan_out;
pub mod listener;
pub(crate) mod places;
pub mod shared;
pub mod stats;
pub mod streams;
