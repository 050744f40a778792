//! The feeds, the preferred one first.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::base::{BySource, Source, clock};
use crate::brokers::MarketFeed;
use crate::cache::Freshness;
use crate::market::{MarketCalendar, MarketStatus, Phase};
use crate::nodes::lead::LedFeed;
use crate::warmers::context::WarmerContext;
use crate::warmers::follow::FollowTask;
use crate::warmers::quotes::feed_state::{CLOSE_MARGIN, FeedState, Pace, confirming_ms, limits};
use crate::warmers::quotes::ticking::{Eased, TickingTask};

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
            public: context.public.clone().map(|public| state(public, &context.public_lane)),
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
        self.iter().any(|feed| feed.is_healthy(freshness, now_mono_ms))
    }

    /// Whether every feed has failed or cannot be polled.
    pub(crate) fn all_failed(&self) -> bool {
        self.iter().all(|feed| feed.failure.is_some() || !feed.askable_within(u64::MAX))
    }

    /// Time that a client that misses symbols has to wait: 0 if some feed can answer within
    /// `wait_ms`, otherwise the time until one may be polled again, as far as is known.
    pub(crate) fn answer_in_ms(&self, wait_ms: u64, now_mono_ms: u64) -> u64 {
        if self.iter().any(|feed| feed.can_answer_within(wait_ms, now_mono_ms)) {
            return 0;
        }
        self.wait_ms().unwrap_or(ANSWER_IN_MS_MAX).clamp(1, ANSWER_IN_MS_MAX)
    }

    /// Milliseconds until a feed that paces itself may be polled again.
    pub(crate) fn wait_ms(&self) -> Option<u64> {
        self.iter().map(FeedState::wait_ms).min()
    }
}

// ---- Market phase
//
// Tracks the market's phase, and sets how often feeds are polled and which of their prices are
// closing prices. On the scheduler's thread.

/// After the market begins to move, closing prices count as fresh for this long, until a poll could
/// be made at the new pace.
const SETTLE_MS: u64 = 5_000;

/// A node without a leader's messages polls the public provider this many times less often: other
/// nodes do the same, perhaps from the same address.
const SPARING: u64 = 2;

/// Owner of the market's phase.
pub(crate) struct MarketPhase {
    pub status: MarketStatus,
    /// Monotonic time of the last phase change.
    since_mono_ms: u64,
    /// By source: the official close, while the market rests and the source can be expected to send
    /// it.
    closes: BySource<Option<Timestamp>>,
    /// The date and the calendar of which the log says what is not known.
    noted: Option<(Date, Arc<MarketCalendar>)>,
}

impl MarketPhase {
    /// Starts with the current phase; [`follow`](Self::follow) applies it.
    pub(crate) fn new(context: &WarmerContext, now_mono_ms: u64) -> Self {
        let status = context.calendar.status(context.clock.now());
        Self { status, since_mono_ms: now_mono_ms, closes: BySource::default(), noted: None }
    }

    /// Updates the phase, and applies it to each source.
    pub(crate) fn follow(
        &mut self,
        context: &WarmerContext,
        feeds: &mut Feeds,
        ticking: &TickingTask,
        standing: Standing,
        now_mono_ms: u64,
    ) {
        let status = context.calendar.status(context.clock.now());
        if status.phase != self.status.phase {
            tracing::info!(phase = status.phase.as_str(), "market phase");
            self.since_mono_ms = now_mono_ms;
        }
        self.status = status;
        self.note_unknown(context);
        for source in Source::ALL {
            let eased = ticking.eased(source, now_mono_ms);
            match standing {
                // The leader sends its rules with its prices.
                Standing::Relayed => {
                    self.closes[source] = self.settled_close(source, context);
                }
                // A follower that receives nothing is one of many clients of the public provider.
                Standing::Asks | Standing::ByItself => {
                    let sparing = standing == Standing::ByItself && source == Source::Public;
                    self.follow_source(source, context, feeds, eased, sparing, now_mono_ms);
                }
            }
        }
    }

    /// Says in the log once a day, and when a calendar is read, what is not known or soon will not
    /// be.
    fn note_unknown(&mut self, context: &WarmerContext) {
        let today = clock::zoned(context.clock.now()).date();
        let is_noted = |(date, calendar): &(Date, Arc<MarketCalendar>)| {
            *date == today && Arc::ptr_eq(calendar, &context.calendar)
        };
        if self.noted.as_ref().is_some_and(is_noted) {
            return;
        }
        self.noted = Some((today, Arc::clone(&context.calendar)));
        let unknown = context.calendar.unknown_ahead(today).join(", ");
        if !unknown.is_empty() {
            tracing::warn!(unknown, "the calendar does not know; give BHAV_CALENDAR_FILE");
        }
    }

    /// Sets how often a source is polled and when its data is stale, by whether the market rests
    /// and whether prices are pushed.
    fn follow_source(
        &mut self,
        source: Source,
        context: &WarmerContext,
        feeds: &mut Feeds,
        eased: Eased,
        sparing: bool,
        now_mono_ms: u64,
    ) {
        let close = self.settled_close(source, context);
        let quiet = close.is_some() || (self.rests() && !self.status.calendar_known);
        let budget_ms = context.interval_ms[source] * if sparing { SPARING } else { 1 };
        let (mut step_ms, mut round) = (0, 1);
        if let Some(feed) = feeds.of_mut(source) {
            let pace = Pace::of(source, budget_ms, quiet);
            let pace = if sparing { pace.sparing(budget_ms) } else { pace };
            feed.pace = eased.confirming.map_or(pace, |calls| pace.confirming(calls));
            (step_ms, round) = (feed.time.step_ms(), feed.round());
        }
        let period_ms = if eased.limits { confirming_ms(budget_ms) } else { budget_ms };
        let (moving, resting) = limits(source, period_ms, step_ms);
        // Without a known close no price counts as a closing price, and the feed is polled rarely.
        let moving = if quiet && close.is_none() { resting } else { moving };
        let freshness = context.l1.freshness();
        freshness.set_limits(source, moving, resting);
        // Polls that only confirm ticks are spaced so that one period confirms every symbol.
        freshness.set_round(source, if eased.limits { 1 } else { round });
        let settles = now_mono_ms.saturating_sub(self.since_mono_ms) < SETTLE_MS;
        let held = self.closes[source];
        if held == close || (close.is_none() && settles && !self.rests()) {
            return;
        }
        self.closes[source] = close;
        match close {
            Some(_) => freshness.set_closing(source, now_mono_ms),
            None => freshness.set_moving(source),
        }
    }

    /// The official close, while the market rests and the source can be expected to send it.
    fn settled_close(&self, source: Source, context: &WarmerContext) -> Option<Timestamp> {
        let date =
            self.status.trading_date.filter(|_| self.rests() && self.status.calendar_known)?;
        let close = context.calendar.official_close(date)?;
        let since = context.clock.now().duration_since(close);
        (since >= CLOSE_MARGIN[source]).then_some(close)
    }

    /// Whether no index price moves now, by the calendar.
    fn rests(&self) -> bool {
        matches!(self.status.phase, Phase::PostClose | Phase::Closed | Phase::Holiday)
    }
}

// ---- Standing
//
// Decides which node polls the feeds for this node's prices.

/// The source of this node's prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It polls every feed, for all nodes or because it is alone.
    Asks,
    /// It receives prices from the leader and polls no feed.
    Relayed,
    /// Another node may lead, but no messages come from it. This node may poll the public provider
    /// only.
    ByItself,
}

impl Standing {
    /// The current standing.
    pub(crate) fn now(context: &WarmerContext, follow: &FollowTask, now_mono_ms: u64) -> Self {
        match (context.lead.may_ask(), follow.speaks(now_mono_ms)) {
            (true, _) => Self::Asks,
            (false, true) => Self::Relayed,
            (false, false) => Self::ByItself,
        }
    }
}
