//! What runs the process rather than serves the market.
//!
//! Log, counters, the panic hook, the limit on address space, closing the memory to debuggers,
//! systemd's notifications and what it holds for the next process, exit codes, version. Any thread
//! may call in here and none of it blocks the caller. It knows no settings struct: `cli` and `app`
//! hand it plain values.

pub mod address_space;
pub mod core_dumps;
pub mod counter;
pub mod exit;
pub mod histogram;
pub mod listen_fds;
pub mod log;
pub mod log_limit;
pub mod memfd;
pub mod notify;
pub mod panic;
pub mod state_lock;
pub mod version;

pub use counter::{Counter, Sharded};
pub use exit::Exit;
pub use histogram::Durations;
pub use listen_fds::Inherited;
pub use log_limit::RefusalLines;
