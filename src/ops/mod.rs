//! Running the process: log, counters, panic hook, memory limits, systemd, exit codes, version.
//!
//! Any thread may call these functions, and none of them blocks. They take plain values, never the
//! settings of other modules.

pub mod address_space;
#[cfg(test)]
pub(crate) mod child_test;
pub mod core_dumps;
pub mod counter;
pub mod exit;
pub mod histogram;
pub mod listen_fds;
pub mod log;
pub mod log_limit;
pub mod log_settings;
pub mod memfd;
pub mod notify;
pub mod panic;
pub mod secret_file;
pub mod state_lock;
pub mod version;

pub use counter::{Counter, Sharded};
pub use exit::Exit;
pub use histogram::{DurationCounts, Durations};
pub use listen_fds::Inherited;
pub use log_limit::RefusalLines;
