//! The guard stack of every upstream call: rate gate, circuit breaker, transport, fallback host.
//!
//! Blocks; runs on the upstream's lane.

pub mod breaker;
pub(crate) mod fallback;
pub(crate) mod gate;
pub mod pace;
pub mod stats;
pub mod transport;
