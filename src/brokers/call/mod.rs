//! The guard stack of every upstream call: rate gate, circuit breaker, transport, fallback host.
//!
//! Blocks; runs on the upstream's lane.

pub mod gate;
pub mod stats;
pub(crate) mod transport;
