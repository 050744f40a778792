//! What the service knows of itself: readings of its parts, and the heartbeat of the scheduler.

pub(crate) mod heartbeat;
pub(crate) mod readings;
