//! The composition root, the only place that names every layer.
//!
//! Main thread. [`App::start`] builds the service from settings and a clock; the commands around it
//! wait for the end. Nothing here serves requests.

mod assemble;
mod commands;
mod evaluate;
mod handover;
pub(crate) mod main_loop;
mod reload;
mod start;
pub(crate) mod watchdog;

pub use assemble::{Assembled, assemble};
pub use commands::{demo, serve, sim};
pub use evaluate::evaluate;
pub use start::{App, StartError};
pub use watchdog::{Stuck, Watchdog};
