//! Polls the feeds, judges what they answer, and builds the index snapshot from it.
//!
//! State of the scheduler's thread; calls run on the feeds' lanes. A batch of quotes, however it
//! arrived, is taken in by [`apply`](apply::apply) alone.

pub(crate) mod apply;
pub(crate) mod feed_state;
pub(crate) mod feed_time;
pub(crate) mod feeds;
pub(crate) mod poll;
pub(crate) mod ticking;
