//! Polls the feeds, judges what they answer, and builds the index snapshot from it.
//!
//! State of the scheduler's thread; calls run on the feeds' lanes.

pub(crate) mod feed_state;
pub(crate) mod feed_time;
pub(crate) mod phases;
pub(crate) mod policy;
pub(crate) mod poll;
pub(crate) mod snapshot;
