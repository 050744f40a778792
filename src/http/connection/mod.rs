//! One connection: reads requests, answers them, writes the responses and enforces the deadlines.
//!
//! Runs on edge workers, in one coroutine for each connection.

pub mod backpressure;
pub mod buffers;
pub(crate) mod dispatch;
pub mod exchange;
pub(crate) mod output;
