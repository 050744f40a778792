//! Who asks the feeds for this node's prices.

use super::super::relay::follow::FollowTask;
use crate::warmers::context::WarmerContext;

/// What this node does for its prices now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It asks every feed, for all nodes or because it is alone.
    Asks,
    /// Another node tells it prices, so that it asks nobody.
    Relayed,
    /// Another node may lead, but nothing is heard of it. The public provider is left, which this
    /// node may ask by itself.
    ByItself,
}

impl Standing {
    /// Of this moment.
    pub fn now(context: &WarmerContext, follow: &FollowTask, now_mono_ms: u64) -> Self {
        match (context.lead.may_ask(), follow.speaks(now_mono_ms)) {
            (true, _) => Self::Asks,
            (false, true) => Self::Relayed,
            (false, false) => Self::ByItself,
        }
    }
}
