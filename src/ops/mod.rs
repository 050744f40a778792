//! Row 1: what runs the process rather than serves the market.
//!
//! Log, counters, the panic hook, the limit on address space, closing the memory to debuggers,
//! systemd's notifications and what it holds for the next process, exit codes, version. Any thread
//! may call in here and none of it blocks the caller. It knows no settings struct: `cli` and `app`
//! hand it plain values.

pub mod address_space;
pub mod counter;
pub mod durations;
pub mod exit;
pub mod inherited;
pub mod log;
pub mod memory_file;
pub mod notify;
pub mod pace;
pub mod panic;
pub mod privacy;
pub mod state_lock;
pub mod version;

pub use counter::{Counter, Sharded};
pub use durations::Durations;
pub use exit::Exit;
pub use inherited::Inherited;
pub use pace::RefusalLines;
