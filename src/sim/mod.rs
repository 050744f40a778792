//! The simulator: a seeded exchange day, served over HTTP/1.1 in the upstreams' three wire formats.
//!
//! One listener carries every upstream under a path of its own (`/a`, `/b`, `/b-master`, `/p`) and
//! the control routes under `/sim/control`. `exchange` makes the prices, `broker_a`, `broker_b` and
//! `public` the formats, `faults` the misbehaviour, `server` the threads. The product calls it like
//! any other upstream: over a socket. A test can do without the socket ([`SimInMemory`]).

mod accounts;
mod broker_a;
mod broker_b;
mod broker_b_master;
mod chart;
mod control;
pub(crate) mod exchange;
mod fault_kinds;
mod faults;
mod limits;
mod login_page;
mod public;
mod router;
mod routes;
mod server;
mod sessions;
mod simulator;
#[cfg(test)]
mod testing;
mod trade_files;
#[cfg(test)]
mod trade_gaps_tests;
mod trade_history;
mod trades;
mod world;

pub use exchange::day::Sessions;
pub use server::message::{Delivery, MARK_HEADER, Reply};
pub(crate) use simulator::{ExchangeHistory, SimApp};
pub use simulator::{Sim, SimInMemory, start};
pub use world::SimSettings;
