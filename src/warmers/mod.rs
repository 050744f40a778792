//! Background work that keeps memory fresh: quotes, instruments, the evening's close, signals.
//!
//! One OS thread, the *scheduler*, owns all state of the warmers. It decides when each feed is
//! asked, takes the answers in, builds and publishes the snapshot, and writes the second cache
//! level. Work that blocks goes to lanes, and its outcome comes back as an event. Because one
//! thread changes everything, the warmers share no locks. The scheduler itself never waits for an
//! upstream or a disk.

mod close;
pub mod context;
mod health;
mod instruments;
mod lead;
mod lease;
mod mailbox;
mod persist;
mod quotes;
mod relay;
mod scheduler;
mod signals;
mod tokens;

pub(crate) use context::{Reloads, WarmerContext};
pub(crate) use lead::Cluster;
pub use lead::Lead;
pub(crate) use lease::{Lease, LeaseParts};
pub(crate) use mailbox::{Mailbox, MarketFiles};
pub use relay::Told;
pub(crate) use relay::{NoWire, Wire};
#[cfg(feature = "engines")]
pub(crate) use relay::{ValkeyWire, WireParts};
pub use scheduler::Warmers;
pub use signals::look::Publication;
pub(crate) use tokens::SharedTokens;
