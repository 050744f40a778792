//! The life of one connection: reads, answers what has arrived, writes, and ends in time.

pub mod backpressure;
pub(crate) mod buffers;
pub(crate) mod dispatch;
pub(crate) mod exchange;
