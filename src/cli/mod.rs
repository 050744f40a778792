//! The command line.
//!
//! Main thread, before and after everything else: reads settings, starts the log, hands over to a
//! command and turns its outcome into an exit code. Nothing here serves.

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
