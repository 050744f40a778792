//! All settings as one typed value, read from flags, environment and files.
//!
//! Read on the main thread, at start and at each reload. Each module declares its own settings
//! struct with the defaults, and gets it by reference; [`Config`] composes them. `settings` lists
//! each setting with name and range, `outside` cleans text from outside, `load` reads flags and
//! environment into a `Loaded`, `secrets` reads credentials, `check` checks the whole, `cli`
//! generates the flags. Nothing here logs, because the log is started with these settings.

pub(crate) mod check;
pub mod cli;
pub(crate) mod composed;
pub mod env_file;
pub(crate) mod environment;
pub mod fault;
pub mod load;
mod names;
pub(crate) mod outside;
mod refused;
pub mod secrets;
pub mod settings;
pub mod value;

pub use composed::{Config, Loaded, Reread, SimSettings};
pub(crate) use composed::{LISTEN_APART, LISTEN_BESIDE};
