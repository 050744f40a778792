//! `bhav status`: how the running service is, what is wrong, and what to do, on one screen.
//!
//! Main thread; asks over the service's own listen address and changes nothing. The exit code is 0,
//! 1 or 2 for ok, degraded and down.

mod command;
mod facts;
mod health;
mod next_phase;
mod screen;
mod troubles;

pub use command::{command, run};
