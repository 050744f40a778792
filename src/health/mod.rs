//! What the service knows of itself: readings of its parts, the heartbeat, and the condition made of them.

pub(crate) mod heartbeat;
pub(crate) mod readings;
