//! What the service knows of itself: readings of its subsystems, and the scheduler's heartbeat.
//!
//! The scheduler writes both; the edge, the lane `admin` and the main thread read them. No locks.

pub(crate) mod readings;

pub(crate) use readings::{Heartbeat, NodeReadings, RelayReadings, Serving, WarmerReadings};
pub use readings::{Readings, WARMER_STATES};
