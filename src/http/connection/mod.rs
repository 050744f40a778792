//! The life of one connection: reads, answers what has arrived, writes, and ends in time.
//!
//! Edge workers; a coroutine per connection.

pub mod backpressure;
pub(crate) mod buffers;
pub(crate) mod dispatch;
pub(crate) mod exchange;
