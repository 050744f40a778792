//! The simulator: a seeded exchange day, served over HTTP/1.1 in the upstreams' three wire formats.
//!
//! One listener carries every upstream under a path of its own (`/a`, `/b`, `/b-master`, `/p`) and
//! the control routes under `/sim/control`. `exchange` makes the prices, `broker_a`, `broker_b` and
//! `public` the formats, `faults` the misbehaviour, `server` the threads. The product calls it like
//! any other upstream: over a socket, or in its place through [`SimPeer`].

mod broker_a;
mod broker_b;
mod control;
pub(crate) mod exchange;
mod faults;
mod peer;
mod public;
mod server;
mod sessions;
mod simulator;
#[cfg(test)]
mod testing;
mod world;

pub use exchange::day::Sessions;
pub use peer::SimPeer;
pub use simulator::{Sim, SimSettings, start};
