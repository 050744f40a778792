//! Builds the service from its settings, runs it, and stops it. The only module that imports all
//! others.
//!
//! Main thread. [`App::start`] builds the service; the commands `serve`, `demo` and `sim` wait for
//! its end. Serves no request itself.

mod assemble;
mod demo;
mod handover;
pub(crate) mod main_loop;
#[cfg(feature = "engines")]
mod nodes;
mod reload;
mod start;

pub use assemble::{StartError, assemble};
pub use demo::{demo, public_demo, sim};
pub use main_loop::{Stuck, Watchdog, serve};
#[cfg(feature = "engines")]
pub use nodes::Row;
pub use reload::{ReadFiles, Reloader};
pub use start::App;
