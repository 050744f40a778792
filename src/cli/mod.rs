//! The command line: reads settings, starts the log, runs a command, and exits with its code.
//!
//! Runs on the main thread, before and after everything else.

pub(crate) mod client;
mod commands;
pub(crate) mod completions;
mod database;
pub(crate) mod diagnoses;
mod login;
mod named_files;
mod operator;
mod secret_input;
mod signals;
mod status;
mod token;
mod users;

pub use commands::{Commands, Serve, command, run};
pub use signals::Evaluate;
