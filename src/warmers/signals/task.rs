//! Daily candles of the universe, and the signals found in them.
//!
//! After the official close of each trading date, and at start, every symbol's missing candles are
//! fetched, judged and stored one by one, so a restart continues where it stopped. When no more
//! candles are expected, the date's signals are found and published once, and the outcomes of
//! earlier signals are judged. Candles of the indices and of what users hold come last, for charts.
//! The task belongs to the scheduler's thread. Feeds are called on their lanes; store access and
//! computation run on the lane `signals`. Must never delay a poll of quotes.

use std::sync::Arc;

use jiff::civil::Date;

use crate::base::{BySource, Source, Symbol};
use crate::brokers::Readiness;
use crate::market::{IndexList, Universe};
use crate::rt::lanes::Outcomes;
use crate::store::{CandleHistory, Epoch, Store, StoreError};
use crate::views::health::HealthSignals;
use crate::views::signals::ShownSignals;
use crate::views::states::WarmerState;
use crate::views::values::Day;
use crate::warmers::context::WarmerContext;
use crate::warmers::signals::arrivals::{Taken, Verdict, base_e4, take_in};
use crate::warmers::signals::at_hand::{AtHand, dates_to_publish};
use crate::warmers::signals::done::{Done, Outcome};
use crate::warmers::signals::fetch::{Answer, CandleCalls, DueDate, TickState, settled_date};
use crate::warmers::signals::histories::Histories;
use crate::warmers::signals::outcomes::Expected;
use crate::warmers::signals::publication::Shown;
use crate::warmers::signals::rebuild::{RebuildOrder, load, rebuild};
use crate::warmers::signals::symbol::TrackedSymbol;
use crate::warmers::signals::work::Known;

/// Pause after a failure of the store.
const RETRY_MS: u64 = 30_000;
/// Deadline of a job. Its thread has the lowest priority, and a busy machine may let it wait.
const JOB_DEADLINE_MS: u64 = 10 * 60_000;
/// Interval between two looks at what users hold, whose candles they see a minute after a sync.
const HELD_EACH_MS: u64 = 60_000;
/// A date whose signals are missing this long after it came due is reported as late.
const LATE_MS: u64 = 60 * 60_000;
/// Minimum share of the universe, in percent, that must have candles before a date is published.
/// Below it the vendors or our calendar are wrong, not single symbols.
const SHARE_MIN_PERCENT: usize = 50;

/// Owner of the state of candles and signals.
pub(crate) struct SignalsTask {
    outcomes: Outcomes<Box<Outcome>>,
    /// Epoch in which this node leads, or led last.
    pub epoch: Epoch,
    pub histories: Histories,
    pub calls: CandleCalls,
    /// The store was read.
    loaded: bool,
    /// The date whose candles are due.
    target: Option<Date>,
    /// Time at which it came due or this process began.
    began_mono_ms: u64,
    /// A job is under way.
    in_flight: bool,
    retry_mono_ms: u64,
    /// The last failure of the store; cleared by its next success.
    failure: Option<String>,
    shown: Shown,
    /// When the store is asked next what users hold.
    held_mono_ms: u64,
    at_hand: AtHand,
}

impl SignalsTask {
    /// Creates an idle task; [`restore`](Self::restore) follows. `candles` receives the outcomes of
    /// calls, by source. Beyond the universe at most `chart_only_max` symbols have candles.
    pub(crate) fn new(
        universe: &Universe,
        indices: &IndexList,
        chart_only_max: usize,
        candles: BySource<Outcomes<Box<Answer>>>,
        outcomes: Outcomes<Box<Outcome>>,
    ) -> Self {
        Self {
            outcomes,
            epoch: Epoch::ALONE,
            histories: Histories::new(universe, indices, chart_only_max),
            calls: CandleCalls::new(candles),
            loaded: false,
            target: None,
            began_mono_ms: 0,
            in_flight: false,
            retry_mono_ms: 0,
            failure: None,
            shown: Shown::nothing(),
            held_mono_ms: 0,
            at_hand: AtHand::default(),
        }
    }

    /// Whether no job or call is under way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.in_flight
            && !Source::ALL
                .into_iter()
                .any(|source| self.calls.is_asking(source))
    }

    /// Reads the stored histories and signals, so that the last list is served from the start.
    /// Blocks.
    pub(crate) fn restore(&mut self, context: &WarmerContext) {
        let expected = self.expected(context);
        let chart_only_max = self.histories.chart_only_max;
        let publication = &context.publication;
        let known = &context.known_closes;
        let outcome =
            load(&context.store, &context.calendar, publication, &expected, known, chart_only_max);
        self.ended(Some(Box::new(outcome)), context.clock.monotonic_ms());
        // The first poll comes after the listener is open.
        let due = settled_date(&context.calendar, Source::BrokerA, context.clock.now());
        self.known(due, false).tell(context);
    }

    /// Takes the next due steps.
    pub(crate) fn poll(&mut self, context: &WarmerContext, tick: TickState, now_mono_ms: u64) {
        self.follow_date(context, now_mono_ms);
        self.use_lane(context, now_mono_ms);
        if let Some(date) = self
            .target
            .filter(|_| self.loaded && !self.at_hand.is_left(context, &self.histories))
        {
            let due = DueDate {
                date,
                began_mono_ms: self.began_mono_ms,
            };
            for source in Source::ALL {
                self.calls
                    .ask(source, due, &mut self.histories, context, tick, now_mono_ms);
            }
        }
        self.known(self.target, self.loaded).tell(context);
    }

    fn known(&self, due: Option<Date>, fetches: bool) -> Known<'_> {
        let Self {
            histories, calls, ..
        } = self;
        Known {
            histories,
            calls,
            due,
            listed: self.shown.top.as_of,
            fetches,
        }
    }

    /// Begins to lead: the store may hold another leader's candles, so they are read again.
    pub(crate) fn begin_leading(&mut self) {
        self.loaded = false;
        self.calls.arrived.clear();
    }

    /// The work of a follower: publishes the signals that the leader publishes. `told`: the last
    /// date that the leader published.
    pub(crate) fn follow(&mut self, context: &WarmerContext, told: Option<Date>, now_mono_ms: u64) {
        self.target = settled_date(&context.calendar, Source::BrokerA, context.clock.now());
        self.known(self.target, false).tell(context);
        if self.in_flight {
            return;
        }
        let behind = self.shown.top.as_of < told;
        if now_mono_ms < self.retry_mono_ms || (self.loaded && !behind) {
            return;
        }
        if behind {
            // If the store does not have the date yet, it is read again later.
            self.retry_mono_ms = now_mono_ms + RETRY_MS;
        }
        self.load(context);
    }

    /// Reads the stored histories, and publishes the last published signals again.
    fn load(&mut self, context: &WarmerContext) {
        let expected = self.expected(context);
        let publication = context.publication.clone();
        let chart_only_max = self.histories.chart_only_max;
        let known = Arc::clone(&context.known_closes);
        let calendar = Arc::clone(&context.calendar);
        self.submit(context, move |store| {
            load(store, &calendar, &publication, &expected, &known, chart_only_max)
        });
    }

    /// Takes the result of a call for candles; `None` if it was lost.
    pub(crate) fn take_candles(
        &mut self,
        source: Source,
        answer: Option<Box<Answer>>,
        now_mono_ms: u64,
    ) {
        let answer = answer.map(|answer| *answer);
        self.calls
            .take(source, answer, &mut self.histories, now_mono_ms);
    }

    /// Milliseconds until broker A's rate limit allows the next call; the maximum if no call is
    /// left to make.
    pub(crate) fn wait_ms(&self, context: &WarmerContext) -> u64 {
        let Some(date) = self.target else {
            return u64::MAX;
        };
        if self.calls.is_asking(Source::BrokerA) || self.histories.are_settled(date) {
            return u64::MAX;
        }
        match context.broker_a.candles_readiness() {
            Readiness::Paced(wait) => wait.as_millis() as u64 + 1,
            _ => u64::MAX,
        }
    }

    /// Switches to the next date. Calls under way are for the old date; their candles are taken in
    /// as well.
    fn follow_date(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        let due = settled_date(&context.calendar, Source::BrokerA, context.clock.now());
        if due != self.target {
            self.target = due;
            self.began_mono_ms = now_mono_ms;
            // They were just read.
            self.held_mono_ms = now_mono_ms + HELD_EACH_MS;
            self.histories.begin_date();
        }
    }

    /// Sends the next job to the lane `signals`, if none is under way.
    fn use_lane(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        if self.in_flight || now_mono_ms < self.retry_mono_ms {
            return;
        }
        let publication = context.publication.clone();
        if !self.loaded {
            self.load(context);
        } else if let Some(job) = self.at_hand.next(
            context,
            &mut self.histories,
            self.target,
            self.shown.top.as_of,
            self.epoch,
        ) {
            self.submit(context, job);
        } else if let Some(mut arrived) = self.calls.arrived.pop_front() {
            let calendar = Arc::clone(&context.calendar);
            let known = Arc::clone(&context.known_closes);
            arrived.base_e4 = base_e4(context, &arrived, now_mono_ms);
            let epoch = self.epoch;
            self.submit(context, move |store| {
                take_in(store, epoch, &calendar, &known, arrived).map(Done::Taken)
            });
        } else if let Some(date) = self.date_to_publish() {
            let symbols = self.histories.iter().filter_map(trusted).collect();
            let expected = self.expected(context);
            let now_ms = context.clock.now_ms();
            let dates = dates_to_publish(context, date, self.shown.top.as_of);
            let order = RebuildOrder {
                dates,
                symbols,
                expected,
                now_ms,
                publication,
            };
            let chart_only_max = self.histories.chart_only_max;
            self.submit(context, move |store| {
                Ok(Done::Rebuilt(
                    rebuild(store, &order)?,
                    store.held_symbols(None, chart_only_max)?,
                ))
            });
        } else if now_mono_ms >= self.held_mono_ms {
            self.held_mono_ms = now_mono_ms + HELD_EACH_MS;
            let chart_only_max = self.histories.chart_only_max;
            self.submit(context, move |store| {
                Ok(Done::Held(store.held_symbols(None, chart_only_max)?))
            });
        }
    }

    /// The due date, if it is not published and no more candles are expected.
    fn date_to_publish(&self) -> Option<Date> {
        let date = self
            .target
            .filter(|date| self.shown.top.as_of < Some(*date))?;
        let there = self.histories.count(|tracked| tracked.has(date));
        let enough = there * 100 >= self.histories.len() * SHARE_MIN_PERCENT;
        (self.histories.are_settled(date) && enough).then_some(date)
    }

    /// The inputs that decide whether outcomes are still to come.
    fn expected(&self, context: &WarmerContext) -> Expected {
        let calendar = Arc::clone(&context.calendar);
        let universe = Arc::clone(&self.histories.universe);
        Expected {
            universe,
            calendar,
            epoch: self.epoch,
        }
    }

    fn submit(
        &mut self,
        context: &WarmerContext,
        job: impl FnOnce(&Store) -> Outcome + Send + 'static,
    ) {
        let store = Arc::clone(&context.store);
        self.in_flight = true;
        // A refused job is reported and logged like any other failure.
        let _ = self
            .outcomes
            .submit(&context.signals_lane, JOB_DEADLINE_MS, move || Box::new(job(&store)));
    }

    /// Takes the result of a job; `None` if it was lost.
    pub(crate) fn ended(&mut self, outcome: Option<Box<Outcome>>, now_mono_ms: u64) {
        self.in_flight = false;
        let done = match outcome.map(|outcome| *outcome) {
            Some(Ok(done)) => done,
            Some(Err(StoreError::Deposed)) => {
                // The next leader does the rest.
                self.retry_mono_ms = now_mono_ms + RETRY_MS;
                self.loaded = false;
                return;
            }
            failed => {
                let failure = failed.and_then(Result::err).map(|error| error.to_string());
                let failure = failure.unwrap_or_else(|| "the job was lost".to_owned());
                self.retry_later(failure, now_mono_ms);
                // The candles that were to be stored are lost, and fetched again.
                self.loaded = false;
                return;
            }
        };
        self.failure = None;
        match done {
            Done::Loaded(histories, shown, held) => {
                self.histories.draw(held);
                self.hold(histories, shown);
            }
            Done::Taken(taken) => self.taken(taken, now_mono_ms),
            Done::Rebuilt(shown, held) => {
                self.shown = shown;
                self.histories.draw(held);
            }
            Done::Held(held) => self.histories.draw(held),
        }
    }

    fn retry_later(&mut self, failure: String, now_mono_ms: u64) {
        if self.failure.as_ref() != Some(&failure) {
            tracing::warn!(failure, "signals cannot be stored; trying again");
        }
        self.failure = Some(failure);
        self.retry_mono_ms = now_mono_ms + RETRY_MS;
    }

    fn hold(&mut self, histories: Vec<CandleHistory>, shown: Shown) {
        self.loaded = true;
        self.shown = shown;
        self.histories
            .loaded(histories, |place| self.calls.has_in_flight(place));
    }

    fn taken(&mut self, taken: Taken, now_mono_ms: u64) {
        let Taken {
            at,
            source,
            whole,
            verdict,
        } = taken;
        let tracked = &mut self.histories.tracked[at];
        if let (true, Some(date)) = (whole, self.target) {
            tracked.has_whole_of(date);
        }
        tracked.in_flight = false;
        match verdict {
            Verdict::Stored { held, gap } => {
                if let Some(date) = self.target {
                    tracked.stored(held, date, gap, now_mono_ms);
                }
            }
            Verdict::Patchy { missing, faults } => {
                let symbol = tracked.symbol.as_str();
                let source_name = source.as_str();
                tracing::warn!(
                    symbol,
                    source = source_name,
                    missing,
                    faults,
                    "daily candles with too many holes are not used"
                );
                tracked.refused(source, now_mono_ms);
            }
        }
    }

    /// The signals in the snapshot.
    pub(crate) fn shown(&self) -> &ShownSignals {
        &self.shown.top
    }

    /// Counts for the health document.
    pub(crate) fn counts(&self) -> HealthSignals {
        HealthSignals {
            as_of: self.shown.top.as_of.map(Day),
            symbols: self.histories.len(),
            silenced: self.histories.count(TrackedSymbol::is_silenced),
            failed: self.histories.count(TrackedSymbol::lacks_candles),
            signals: self.shown.signals,
        }
    }

    /// The state for health: `starting` before the first list; `ok` while the list is of the due
    /// date or its candles are being fetched; `stale` if that takes long; `failing` while the store
    /// or the feeds do not work; `paused` if the calendar knows no date.
    pub(crate) fn state(&self, now_mono_ms: u64) -> WarmerState {
        let Some(date) = self.target else {
            return WarmerState::Paused;
        };
        if self.failure.is_some() {
            return WarmerState::Failing;
        }
        if self.shown.top.as_of >= Some(date) {
            return WarmerState::Ok;
        }
        let late = now_mono_ms.saturating_sub(self.began_mono_ms) >= LATE_MS;
        match (self.calls.is_failing(), self.shown.top.as_of) {
            (true, _) if late => WarmerState::Failing,
            (_, Some(_)) if late => WarmerState::Stale,
            (true, None) => WarmerState::Failing,
            (false, None) => WarmerState::Starting,
            (_, Some(_)) => WarmerState::Ok,
        }
    }
}

/// The symbol with its candles' source and mark of simulated data; `None` if they are not trusted.
fn trusted(tracked: &TrackedSymbol) -> Option<(Symbol, Source, bool)> {
    let held = tracked
        .history
        .as_ref()
        .filter(|_| !tracked.is_silenced())?;
    Some((tracked.symbol.clone(), held.source, held.simulated))
}

// ---- Jobs
//
// Results of jobs of the lane `signals`.

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
