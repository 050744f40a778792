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

pub use context::{Reloads, WarmerContext};
pub use lead::{Cluster, Fence, Lead};
pub use lease::{Lease, LeaseParts};
pub use mailbox::{Mailbox, MarketFiles, RelayInbox};
pub use relay::{Evening, News, NoWire, Told, Wire, WireError, WireReading};
#[cfg(feature = "engines")]
pub use relay::{ValkeyWire, WireParts};
pub use scheduler::Warmers;
pub use signals::look::Publication;
pub use tokens::SharedTokens;
