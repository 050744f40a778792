//! What keeps memory fresh while nobody waits.
//!
//! One OS thread, the *scheduler*, owns all warm state: it decides when each feed is asked, takes
//! the answers in, builds and publishes the snapshot, and keeps the second cache level. Blocking
//! work goes to the lanes; its outcome comes back as an [`Event`]. Because one thread changes
//! everything, there is no lock between the parts. It must never wait for an upstream or a disk
//! itself.

mod close;
mod context;
mod event;
mod files;
mod health;
mod instruments;
mod persist;
pub mod quotes;
mod reloads;
mod scheduler;
mod signals;
pub(crate) mod stats;
pub(crate) mod store_check;
mod thread;

pub use crate::health::heartbeat::{Heartbeat, Serving};
pub use crate::health::readings::Runs;
pub use crate::health::readings::{
    FeedReadings, Readings, SnapshotReadings, WARMER_STATES, WarmerReadings,
};
pub use context::{Mailbox, WarmerContext};
pub use event::{Event, Kicked, MarketFiles, Round};
pub use reloads::Reloads;
pub use signals::Publication;
pub use thread::Warmers;
