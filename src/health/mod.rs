//! What the service knows of itself: readings of its subsystems, and the scheduler's heartbeat.
//!
//! The scheduler writes both; the edge, the lane `admin` and the main thread read them. No locks.

pub(crate) mod heartbeat;
pub(crate) mod readings;

pub(crate) use heartbeat::{Heartbeat, Serving};
pub(crate) use readings::{NodeReadings, RelayReadings, WarmerReadings};
pub use readings::{Readings, WARMER_STATES};
