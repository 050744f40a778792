//! Running the process: log, counters, panic hook, memory limits, systemd, exit codes, version.
//!
//! Any thread may call these functions, and none of them blocks. They take plain values, never the
//! settings of other modules.

#[cfg(test)]
pub(crate) mod child_test;
pub mod counter;
pub mod exit;
pub mod histogram;
pub mod log;
mod log_limit;
pub mod notify;
pub(crate) mod owner;
pub mod panic;
pub mod state_lock;

pub(crate) use counter::{Counter, Sharded};
pub use exit::Exit;
pub(crate) use histogram::DurationCounts;
pub use histogram::Durations;
pub(crate) use log_limit::RefusalLines;
pub use notify::Inherited;
