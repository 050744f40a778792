//! The whole service over real sockets: an application against a simulator, one scenario a test.

mod coalescing;
mod faults;
mod health;
mod market;
mod prices;
mod prices_waiting;
mod process;
mod restart;
mod snapshot;
mod support;
mod surface;
mod token;
