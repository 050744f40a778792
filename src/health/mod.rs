//! What the service knows of itself: readings of its subsystems, and the scheduler's heartbeat.
//!
//! The scheduler writes both; the edge, the lane `admin` and the main thread read them. No locks.

pub(crate) mod heartbeat;
pub(crate) mod readings;

pub use heartbeat::{Heartbeat, Serving};
pub use readings::{
    FeedReadings, NodeReadings, Readings, RelayReadings, Runs, SnapshotReadings, WARMER_STATES,
    WarmerReadings,
};
