//! Builds the service from its settings, runs it, and stops it. The only module that imports all
//! others.
//!
//! Main thread. [`App::start`] builds the service; the commands `serve`, `demo` and `sim` wait for
//! its end. Serves no request itself.

mod assemble;
pub(crate) mod commands;
mod demo;
mod demo_past;
mod demo_people;
mod handover;
pub(crate) mod main_loop;
#[cfg(feature = "engines")]
mod nodes;
mod public_demo;
mod reload;
mod securities;
mod start;
mod start_error;
mod status_line;

pub use assemble::assemble;
pub use commands::serve;
pub use demo::{demo, sim};
pub use main_loop::{Stuck, Watchdog};
#[cfg(feature = "engines")]
pub use nodes::Row;
pub use public_demo::public_demo;
pub use reload::{ReadFiles, Reloader};
pub use start::App;
pub use start_error::StartError;
