//! Follows the market's phase, and sets what it means for the feeds: how often they are asked, and
//! which of their prices are closing prices. On the scheduler's thread.

use jiff::Timestamp;

use super::feeds::Feeds;
use super::pace::{Pace, close_margin, confirming_ms, limits};
use super::standing::Standing;
use super::ticking::{Eased, TickingTask};
use crate::base::Source;
use crate::market::{MarketStatus, Phase};
use crate::warmers::context::WarmerContext;

/// When the market begins to move, closing prices count as fresh for so long: until a poll could
/// be made at the new pace.
const SETTLE_MS: u64 = 5_000;

/// A node that hears no leader asks the public provider so many times less often: other nodes do
/// the same, perhaps from the same address.
const SPARING: u64 = 2;

/// What decides how a source is asked by this node itself.
#[derive(Clone, Copy)]
struct Own {
    eased: Eased,
    /// It follows a leader of whom it hears nothing.
    by_itself: bool,
}

/// Owner of the market's phase.
pub struct MarketPhase {
    status: MarketStatus,
    /// Monotonic time of the last phase change.
    since_mono_ms: u64,
    /// By source: the official close, while the market rests and the source can be expected to say
    /// it.
    closes: [Option<Timestamp>; Source::ALL.len()],
}

impl MarketPhase {
    /// The phase of this moment; [`follow`](Self::follow) sets what it means.
    pub fn new(context: &WarmerContext, now_mono_ms: u64) -> Self {
        let status = context.calendar.status(context.clock.now());
        Self { status, since_mono_ms: now_mono_ms, closes: [None; Source::ALL.len()] }
    }

    pub fn status(&self) -> &MarketStatus {
        &self.status
    }

    /// Takes note of the phase, and of what it means for each source.
    pub fn follow(
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
        for source in Source::ALL {
            let eased = ticking.eased(source, now_mono_ms);
            match standing {
                // The leader's rules come with its prices.
                Standing::Relayed => {
                    self.closes[source as usize] = self.settled_close(source, context);
                }
                Standing::Asks | Standing::ByItself => {
                    let own = Own { eased, by_itself: standing == Standing::ByItself };
                    self.follow_source(source, context, feeds, own, now_mono_ms);
                }
            }
        }
    }

    /// Sets by whether the market rests and whether prices are pushed how often a
    /// source is asked and what counts as stale.
    fn follow_source(
        &mut self,
        source: Source,
        context: &WarmerContext,
        feeds: &mut Feeds,
        Own { eased, by_itself }: Own,
        now_mono_ms: u64,
    ) {
        let close = self.settled_close(source, context);
        let quiet = close.is_some() || (self.rests() && !self.status.calendar_known);
        let sparing = by_itself && source == Source::Public;
        let budget_ms = context.interval_ms(source) * if sparing { SPARING } else { 1 };
        let (mut step_ms, mut round) = (0, 1);
        if let Some(feed) = feeds.of_mut(source) {
            let pace = Pace::of(source, budget_ms, quiet);
            let pace = if sparing { pace.sparing(budget_ms) } else { pace };
            feed.set_pace(eased.confirming.map_or(pace, |calls| pace.confirming(calls)));
            (step_ms, round) = (feed.time().step_ms(), feed.round());
        }
        let period_ms = if eased.limits { confirming_ms(budget_ms) } else { budget_ms };
        let (moving, resting) = limits(source, period_ms, step_ms);
        // Where no calendar tells a close nothing counts as one, and the feed is asked rarely.
        let moving = if quiet && close.is_none() { resting } else { moving };
        let freshness = context.l1.freshness();
        freshness.set_limits(source, moving, resting);
        // Polls that only confirm ticks are spread so that one period confirms everything.
        freshness.set_round(source, if eased.limits { 1 } else { round });
        let settles = now_mono_ms.saturating_sub(self.since_mono_ms) < SETTLE_MS;
        let held = self.closes[source as usize];
        if held == close || (close.is_none() && settles && !self.rests()) {
            return;
        }
        self.closes[source as usize] = close;
        match close {
            Some(_) => freshness.set_closing(source, now_mono_ms),
            None => freshness.set_moving(source),
        }
    }

    /// The official close that stands while the market rests, once the source can be expected to
    /// say it.
    fn settled_close(&self, source: Source, context: &WarmerContext) -> Option<Timestamp> {
        let date =
            self.status.trading_date.filter(|_| self.rests() && self.status.calendar_known)?;
        let close = context.calendar.official_close(date)?;
        let since = context.clock.now().duration_since(close);
        (since >= close_margin(source)).then_some(close)
    }

    /// Whether no price of an index moves now, by the calendar.
    fn rests(&self) -> bool {
        matches!(self.status.phase, Phase::PostClose | Phase::Closed | Phase::Holiday)
    }
}
