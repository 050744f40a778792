//! One connection: reads requests, answers them, writes the responses and enforces the deadlines.
//!
//! Runs on edge workers, in one coroutine for each connection.

pub mod backpressure;
pub(crate) mod dispatch;
pub mod exchange;
