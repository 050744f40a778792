//! Polls the feeds, judges what they say, and builds the index snapshot of it.

pub(crate) mod feed_state;
pub(crate) mod feed_time;
pub(crate) mod phases;
pub(crate) mod policy;
pub(crate) mod poll;
pub(crate) mod snapshot;
