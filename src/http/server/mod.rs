//! Accepts connections, keeps the table of open ones, and drains them when the server stops.

pub(crate) mod acceptor;
pub(crate) mod connection_table;
mod fan_out;
pub(crate) mod handover;
pub(crate) mod listener;
pub mod places;
pub mod shared;
mod stream_writer;
