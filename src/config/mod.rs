//! All settings as one typed value, read from flags, environment and files.
//!
//! Read on the main thread at the start and at each reload; modules receive their own part by
//! reference. Each module declares its own settings and their defaults, and [`Config`] holds them
//! all. `settings` names each one and its range, `load` reads flags and environment, `secrets`
//! reads the credentials, `check` judges the whole, `cli` makes the flags. Never logs: the log is
//! started from what is read here.

pub mod check;
pub mod cli;
pub(crate) mod composed;
pub mod env_file;
pub mod load;
pub mod secrets;
pub mod settings;
mod sim;
pub mod template;
pub mod value;

pub use composed::Config;
pub use sim::SimSettings;
