//! The guard stack of every upstream call: rate gate, circuit breaker, transport, fallback host.
//!
//! Calls block, on the upstream's lane.

pub(crate) mod breaker;
pub(crate) mod gate;
pub(crate) mod pace;
pub(crate) mod route_choice;
pub(crate) mod transport;
