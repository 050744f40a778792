//! The feeds, the preferred one first.

use std::sync::Arc;

use crate::base::Source;
use crate::brokers::MarketFeed;
use crate::cache::Freshness;
use crate::nodes::lead::LedFeed;
use crate::warmers::context::WarmerContext;
use crate::warmers::follow::FollowTask;
use crate::warmers::quotes::feed_state::{FeedState, Pace};

/// Longest wait that a client is given if no feed can be asked and nothing says when one can.
const ANSWER_IN_MS_MAX: u64 = 60_000;

/// Every feed and its state.
pub(crate) struct Feeds {
    pub broker_a: FeedState,
    /// `None` when switched off.
    pub public: Option<FeedState>,
}

impl Feeds {
    pub(crate) fn new(context: &WarmerContext) -> Self {
        let pace = |source| Pace::of(source, context.interval_ms[source], false);
        let state = |feed: Arc<dyn MarketFeed>, lane| {
            let pace = pace(feed.source());
            FeedState::new(feed, Arc::clone(lane), &context.indices, pace)
        };
        let broker_a = LedFeed::new(context.broker_a.clone(), context.lead.clone());
        Self {
            broker_a: state(Arc::new(broker_a), &context.broker_a_lane),
            public: context
                .public
                .clone()
                .map(|public| state(public, &context.public_lane)),
        }
    }

    pub(crate) fn of(&self, source: Source) -> Option<&FeedState> {
        self.iter().find(|feed| feed.source() == source)
    }

    pub(crate) fn of_mut(&mut self, source: Source) -> Option<&mut FeedState> {
        self.iter_mut().find(|feed| feed.source() == source)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &FeedState> {
        std::iter::once(&self.broker_a).chain(&self.public)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut FeedState> {
        std::iter::once(&mut self.broker_a).chain(&mut self.public)
    }

    /// Whether some feed has answered in this run. Until then all served data was restored.
    pub(crate) fn have_answered(&self) -> bool {
        self.iter().any(|feed| feed.succeeded_mono_ms.is_some())
    }

    /// Whether some feed's data is fresh.
    pub(crate) fn any_healthy(&self, freshness: &Freshness, now_mono_ms: u64) -> bool {
        self.iter()
            .any(|feed| feed.is_healthy(freshness, now_mono_ms))
    }

    /// Whether every feed has failed or cannot be polled.
    pub(crate) fn all_failed(&self) -> bool {
        self.iter()
            .all(|feed| feed.failure.is_some() || !feed.askable_within(u64::MAX))
    }

    /// Time that a client that misses symbols has to wait: 0 if some feed can answer within
    /// `wait_ms`, otherwise the time until one may be polled again, as far as is known.
    pub(crate) fn answer_in_ms(&self, wait_ms: u64, now_mono_ms: u64) -> u64 {
        if self
            .iter()
            .any(|feed| feed.can_answer_within(wait_ms, now_mono_ms))
        {
            return 0;
        }
        self.wait_ms()
            .unwrap_or(ANSWER_IN_MS_MAX)
            .clamp(1, ANSWER_IN_MS_MAX)
    }

    /// Milliseconds until a feed that paces itself may be polled again.
    pub(crate) fn wait_ms(&self) -> Option<u64> {
        self.iter().map(FeedState::wait_ms).min()
    }
}

// ---- Standing
//
// Decides which node polls the feeds for this node's prices.

/// The source of this node's prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PriceOrigin {
    /// It polls every feed, for all nodes or because it is alone.
    Asks,
    /// It receives prices from the leader and polls no feed.
    Relayed,
    /// Another node may lead, but no messages come from it. This node may poll the public provider
    /// only.
    ByItself,
}

impl PriceOrigin {
    /// The current standing.
    pub(crate) fn now(context: &WarmerContext, follow: &FollowTask, now_mono_ms: u64) -> Self {
        match (context.lead.may_ask(), follow.speaks(now_mono_ms)) {
            (true, _) => Self::Asks,
            (false, true) => Self::Relayed,
            (false, false) => Self::ByItself,
        }
    }
}
