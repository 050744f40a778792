//! Polls the feeds, judges their answers, and builds the index snapshot from them.
//!
//! Belongs to the scheduler's thread; calls run on the feeds' lanes. Every batch of quotes, polled
//! or pushed, is taken in by [`apply`](apply::apply).

pub(crate) mod apply;
pub(crate) mod evidence;
pub(crate) mod feed_state;
pub(crate) mod feed_time;
pub(crate) mod feeds;
pub(crate) mod judged_close;
pub(crate) mod known_closes;
pub(crate) mod market_phase;
pub(crate) mod poll;
pub(crate) mod snapshot;
pub(crate) mod tick_log;
pub(crate) mod ticking;
