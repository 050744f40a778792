//! Builds the service from its settings, runs it, and stops it. The only module that imports all
//! others.
//!
//! Main thread. [`App::start`] builds the service; the commands `serve`, `demo` and `sim` wait for
//! its end. Serves no request itself.

mod assemble;
mod commands;
mod evaluate;
mod handover;
pub(crate) mod main_loop;
mod membership;
#[cfg(feature = "engines")]
mod nodes;
mod reload;
mod start;
mod start_error;
mod status_line;
pub(crate) mod watchdog;

pub use assemble::{Assembled, assemble};
pub use commands::{demo, serve, sim};
pub use evaluate::evaluate;
#[cfg(feature = "engines")]
pub use nodes::Row;
pub use start::App;
pub use start_error::StartError;
pub use watchdog::{Stuck, Watchdog};
