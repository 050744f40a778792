//! The feeds there are, the preferred one first.

use std::sync::Arc;

use super::feed_state::FeedState;
use super::pace::Pace;
use crate::base::Source;
use crate::brokers::MarketFeed;
use crate::cache::Freshness;
use crate::warmers::context::WarmerContext;
use crate::warmers::lead::LedFeed;

/// What a client is told at most when no feed can be asked and nothing says when one can.
const ANSWER_IN_MS_MAX: u64 = 60_000;

/// Every feed and its state.
pub struct Feeds {
    broker_a: FeedState,
    /// `None` when switched off.
    public: Option<FeedState>,
}

impl Feeds {
    /// None of them has been asked yet.
    pub fn new(context: &WarmerContext) -> Self {
        let pace = |source| Pace::of(source, context.interval_ms(source), false);
        let state = |feed: Arc<dyn MarketFeed>, lane| {
            let pace = pace(feed.source());
            FeedState::new(feed, Arc::clone(lane), &context.indices, pace)
        };
        let broker_a = LedFeed::new(context.broker_a.clone(), context.lead.clone());
        Self {
            broker_a: state(Arc::new(broker_a), &context.broker_a_lane),
            public: context.public.clone().map(|public| state(public, &context.public_lane)),
        }
    }

    pub fn broker_a(&self) -> &FeedState {
        &self.broker_a
    }

    pub fn public(&self) -> Option<&FeedState> {
        self.public.as_ref()
    }

    pub fn of(&self, source: Source) -> Option<&FeedState> {
        self.iter().find(|feed| feed.source() == source)
    }

    pub fn of_mut(&mut self, source: Source) -> Option<&mut FeedState> {
        self.iter_mut().find(|feed| feed.source() == source)
    }

    pub fn iter(&self) -> impl Iterator<Item = &FeedState> {
        std::iter::once(&self.broker_a).chain(&self.public)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut FeedState> {
        std::iter::once(&mut self.broker_a).chain(&mut self.public)
    }

    /// Whether some feed has answered in this run: until then all that is served was restored.
    pub fn have_answered(&self) -> bool {
        self.iter().any(|feed| feed.succeeded_mono_ms().is_some())
    }

    /// Whether some feed's data is fresh.
    pub fn any_healthy(&self, freshness: &Freshness, now_mono_ms: u64) -> bool {
        self.iter().any(|feed| feed.is_healthy(freshness, now_mono_ms))
    }

    /// Whether every feed there is has failed or cannot be asked.
    pub fn all_failed(&self) -> bool {
        self.iter().all(|feed| feed.failure().is_some() || !feed.askable_within(u64::MAX))
    }

    /// How long a client that misses symbols has to wait for an answer: 0 if some feed can answer
    /// within `wait_ms`, else until one may be asked again, as far as is known now.
    pub fn answer_in_ms(&self, wait_ms: u64, now_mono_ms: u64) -> u64 {
        if self.iter().any(|feed| feed.can_answer_within(wait_ms, now_mono_ms)) {
            return 0;
        }
        self.wait_ms().unwrap_or(ANSWER_IN_MS_MAX).clamp(1, ANSWER_IN_MS_MAX)
    }

    /// Milliseconds until a feed that paces itself may be asked again.
    pub fn wait_ms(&self) -> Option<u64> {
        self.iter().map(FeedState::wait_ms).min()
    }
}
