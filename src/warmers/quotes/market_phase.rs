//! Tracks the market's phase, and sets how often feeds are polled and which of their prices are
//! closing prices. On the scheduler's thread.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::base::{BySource, Source, clock};
use crate::market::{MarketCalendar, MarketStatus, Phase};
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::feed_state::{CLOSE_MARGIN, Pace, confirming_ms, limits};
use crate::warmers::quotes::feeds::{Feeds, PriceOrigin};
use crate::warmers::quotes::ticking::{Eased, TickingTask};

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
        Self {
            status,
            since_mono_ms: now_mono_ms,
            closes: BySource::default(),
            noted: None,
        }
    }

    /// Updates the phase, and applies it to each source.
    pub(crate) fn follow(
        &mut self,
        context: &WarmerContext,
        feeds: &mut Feeds,
        ticking: &TickingTask,
        standing: PriceOrigin,
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
                PriceOrigin::Relayed => {
                    self.closes[source] = self.settled_close(source, context);
                }
                // A follower that receives nothing is one of many clients of the public provider.
                PriceOrigin::Asks | PriceOrigin::ByItself => {
                    let sparing = standing == PriceOrigin::ByItself && source == Source::Public;
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
            tracing::warn!(
                unknown,
                "the trading calendar does not know this; give BHAV_CALENDAR_FILE"
            );
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
        let mut step_ms = 0;
        let mut round = 1;
        if let Some(feed) = feeds.of_mut(source) {
            let pace = Pace::of(source, budget_ms, quiet);
            let pace = if sparing {
                pace.sparing(budget_ms)
            } else {
                pace
            };
            feed.pace = eased
                .confirming
                .map_or(pace, |calls| pace.confirming(calls));
            (step_ms, round) = (feed.time.step_ms(), feed.round());
        }
        let period_ms = if eased.limits {
            confirming_ms(budget_ms)
        } else {
            budget_ms
        };
        let (moving, resting) = limits(source, period_ms, step_ms);
        // Without a known close no price counts as a closing price, and the feed is polled rarely.
        let moving = if quiet && close.is_none() {
            resting
        } else {
            moving
        };
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
        let date = self
            .status
            .trading_date
            .filter(|_| self.rests() && self.status.calendar_known)?;
        let close = context.calendar.official_close(date)?;
        let since = context.clock.now().duration_since(close);
        (since >= CLOSE_MARGIN[source]).then_some(close)
    }

    /// Whether no index price moves now, by the calendar.
    fn rests(&self) -> bool {
        matches!(self.status.phase, Phase::PostClose | Phase::Closed | Phase::Holiday)
    }
}
