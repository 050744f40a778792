//! What the market's phase means for the feeds: how often they are asked, and which of their prices
//! are closing prices. On the scheduler's thread.

use jiff::Timestamp;

use super::policy::{self, Pace};
use crate::base::Source;
use crate::market::{MarketStatus, Phase};
use crate::warmers::close;
use crate::warmers::scheduler::Scheduler;

/// When the market begins to move, closing prices count as fresh for so long: until a round could
/// be asked at the new pace.
const SETTLE_MS: u64 = 5_000;

impl Scheduler {
    /// Takes note of the phase, and of what it means for each source.
    pub fn follow_market(&mut self, now_mono_ms: u64) {
        let status = self.parts.calendar.status(self.parts.clock.now());
        if status.phase != self.status.phase {
            tracing::info!(phase = status.phase.as_str(), "market phase");
            self.phase_since_mono_ms = now_mono_ms;
        }
        self.status = status;
        for source in Source::ALL {
            self.follow_rest(source, now_mono_ms);
        }
    }

    /// Sets by whether the market rests how often a source is asked and what counts as stale.
    fn follow_rest(&mut self, source: Source, now_mono_ms: u64) {
        let close = self.settled_close(source);
        let quiet = close.is_some() || (rests(&self.status) && !self.status.calendar_known);
        let budget_ms = self.parts.interval_ms(source);
        self.paces[source as usize] = Pace::of(source, budget_ms, quiet);
        let step_ms = self.slot(source).map_or(0, |slot| slot.time.step_ms());
        let (moving, resting) = policy::limits(source, budget_ms, step_ms);
        // Where no calendar tells a close nothing counts as one, and the feed is asked rarely.
        let moving = if quiet && close.is_none() { resting } else { moving };
        let freshness = self.parts.l1.freshness();
        freshness.set_limits(source, moving, resting);
        let settles = now_mono_ms.saturating_sub(self.phase_since_mono_ms) < SETTLE_MS;
        let rested = &mut self.rests[source as usize];
        if *rested == close || (close.is_none() && settles && !rests(&self.status)) {
            return;
        }
        *rested = close;
        match close {
            Some(_) => freshness.set_closing(source, now_mono_ms),
            None => freshness.set_moving(source),
        }
    }

    /// The official close that stands while the market rests, once the source can be expected to
    /// say it.
    fn settled_close(&self, source: Source) -> Option<Timestamp> {
        let date = self
            .status
            .trading_date
            .filter(|_| rests(&self.status) && self.status.calendar_known)?;
        let close = self.parts.calendar.official_close(date)?;
        let since = self.parts.clock.now().duration_since(close);
        (since >= close::margin(source)).then_some(close)
    }
}

/// Whether no price of an index moves now, by the calendar.
fn rests(status: &MarketStatus) -> bool {
    matches!(status.phase, Phase::PostClose | Phase::Closed | Phase::Holiday)
}
