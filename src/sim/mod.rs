//! The simulator, a deterministic, seeded exchange day served over real HTTP/1.1 in the
//! three wire formats of the outside world, with faults that can be switched on.
//!
//! One listener carries every upstream under a path of its own (`/a`, `/b`, `/b-master`, `/p`) and
//! the control routes under `/sim/control`. Prices come from `day`, formats from `broker_a`,
//! `broker_b` and `public`, misbehaviour from `faults`, threads from `server`. Nothing here may be
//! used by the product's own request path: the simulator is its peer, reached through a socket like
//! any other upstream.

mod accounts;
mod broker_a;
mod broker_b;
pub mod exchange;
mod faults;
mod public;
mod server;
mod sessions;
mod settings;
mod simulator;
#[cfg(test)]
mod testing;
mod world;

pub use exchange::day::Sessions;
pub use server::message::MARK_HEADER;
pub use settings::{SimBrokerA, SimBrokerB, SimSettings};
pub use simulator::{Sim, start};
