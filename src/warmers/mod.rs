//! Background tasks that keep memory fresh: quotes, instruments, revaluation at the close, signals.
//!
//! One OS thread, the *scheduler*, owns all state of the warmers. It decides when each feed is
//! polled, takes in the answers, builds and publishes the snapshot, and writes the second cache
//! level. Blocking work runs on lanes, and its outcome comes back as an event. Because one thread
//! changes everything, the warmers share no locks. The scheduler itself never waits for an upstream
//! or a disk.

mod close;
pub mod context;
mod follow;
mod instruments;
mod mailbox;
mod persist;
mod publish;
mod quotes;
mod runs;
mod scheduler;
mod signals;
mod store_check;

pub use crate::warmers::signals::publication::Publication;
pub(crate) use context::CandlesAtHand;
pub use context::Heartbeat;
pub(crate) use context::{Reloads, Serving, WarmerContext};
pub(crate) use mailbox::{Mailbox, MarketFiles};
pub(crate) use quotes::evidence::Reason as EvidenceReason;
pub(crate) use quotes::feed_state::FeedState as PolledFeed;
pub(crate) use quotes::feeds::PriceOrigin;
pub(crate) use runs::Runs;
pub use scheduler::{Reporter, Scheduler, Warmers};
