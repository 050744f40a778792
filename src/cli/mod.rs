//! The command line: reads settings, starts the log, runs a command, and exits with its code.
//!
//! Runs on the main thread, before and after everything else.

mod calendar;
pub(crate) mod client;
pub(crate) mod commands;
pub(crate) mod completions;
mod database;
mod keys;
mod operator;
mod secret_input;
mod status;
mod token;
mod users;

pub use commands::{Commands, PublicDemo, Serve, command, run};
