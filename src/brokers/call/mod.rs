//! What every call to the outside goes through: gate, circuit breaker, transport, fallback host,
//! statistics.

pub mod breaker;
pub(crate) mod fallback;
pub(crate) mod gate;
pub mod limiter;
pub mod stats;
pub mod transport;
