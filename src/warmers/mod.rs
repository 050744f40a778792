//! Background work that keeps memory fresh: quotes, instruments, the evening's close, signals.
//!
//! One OS thread, the *scheduler*, owns all state of the warmers. It decides when each feed is
//! asked, takes the answers in, builds and publishes the snapshot, and writes the second cache
//! level. Work that blocks goes to lanes, and its outcome comes back as an event. Because one
//! thread changes everything, the warmers share no locks. The scheduler itself never waits for an
//! upstream or a disk.

mod close;
pub mod context;
mod follow;
mod health;
mod instruments;
mod mailbox;
mod persist;
mod quotes;
mod scheduler;
mod signals;
mod tell;

pub(crate) use context::{Reloads, WarmerContext};
pub(crate) use mailbox::{Mailbox, MarketFiles};
pub use scheduler::Warmers;
pub use signals::look::Publication;
