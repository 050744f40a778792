//! Daily candles of the universe, and the signals found in them.
//!
//! After the official close of each trading date, and at start, every symbol's missing candles are
//! fetched, judged and stored one by one, so a restart continues where it stopped. When no more
//! candles are expected, the date's signals are found and published once, and the outcomes of
//! earlier signals are judged. If the operator wants it, running candles are searched too
//! (`provisional`). Candles of the indices and of what users hold come last, for charts. The task
//! belongs to the scheduler's thread. Feeds are called on their lanes; store access and computation
//! run on the lane `signals`. Must never delay a poll of quotes.

use std::sync::Arc;

use jiff::civil::Date;

use crate::base::{BySource, Source, Symbol, clock};
use crate::brokers::Readiness;
use crate::market::{IndexList, Universe};
use crate::rt::lanes::Outcomes;
use crate::signals::ScanTime;
use crate::store::{CandleHistory, Epoch, Store, StoreError};
use crate::views::health::HealthSignals;
use crate::views::signals::ShownSignals;
use crate::views::states::WarmerState;
use crate::views::values::{Day, Instant};
use crate::warmers::context::WarmerContext;
use crate::warmers::follow::HeardRunning;
use crate::warmers::signals::arrivals::{Taken, Verdict, base_e4, take_in};
use crate::warmers::signals::done::{Done, Outcome};
use crate::warmers::signals::fetch::{
    Answer, CandleCalls, DueDate, availability, running_date, settled_date,
};
use crate::warmers::signals::histories::Histories;
use crate::warmers::signals::look::{LookOrder, adopt, look, prepare, withdraw};
use crate::warmers::signals::outcomes::Expected;
use crate::warmers::signals::provisional::Provisional;
use crate::warmers::signals::publication::{Shown, ShownProvisional};
use crate::warmers::signals::rebuild::{RebuildOrder, load, rebuild};
use crate::warmers::signals::symbol::{Availability, TrackedSymbol};

pub(super) mod arrivals;
pub(super) mod done;
pub(crate) mod fetch;
mod histories;
pub(crate) mod look;
mod outcomes;
pub(crate) mod provisional;
pub(crate) mod publication;
mod rebuild;
mod symbol;

pub(super) use fetch::Turn;

/// Pause after a failure of the store.
const RETRY_MS: u64 = 30_000;
/// Deadline of a job. Its thread has the lowest priority, and a busy machine may let it wait.
const JOB_DEADLINE_MS: u64 = 10 * 60_000;
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
    /// Running candles, while the operator wants them searched.
    provisional: Provisional,
}

impl SignalsTask {
    /// Creates an idle task; [`restore`](Self::restore) follows. `candles` receives the outcomes of
    /// calls, by source. Beyond the universe at most `chart_only_max` symbols have candles.
    pub(super) fn new(
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
            provisional: Provisional::new(universe.symbols().len()),
        }
    }

    /// Whether no job or call is under way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.in_flight && !Source::ALL.into_iter().any(|source| self.calls.is_asking(source))
    }

    /// Reads the stored histories and signals, so that the last list is served from the start.
    /// Blocks.
    pub(super) fn restore(&mut self, context: &WarmerContext) {
        let expected = self.expected(context);
        let chart_only_max = self.histories.chart_only_max;
        let publication = &context.publication;
        let known = &context.known_closes;
        let outcome =
            load(&context.store, &context.calendar, publication, &expected, known, chart_only_max);
        self.ended(Some(Box::new(outcome)), context.clock.monotonic_ms());
    }

    /// Takes the next due steps.
    pub(super) fn poll(&mut self, context: &WarmerContext, turn: Turn, now_mono_ms: u64) {
        self.follow_date(context, now_mono_ms);
        self.follow_session(context, now_mono_ms);
        self.use_lane(context, now_mono_ms);
        let Some(date) = self.target.filter(|_| self.loaded) else { return };
        let due = DueDate { date, began_mono_ms: self.began_mono_ms };
        for source in Source::ALL {
            let of = (&mut self.histories, &mut self.provisional);
            self.calls.ask(source, due, of, context, turn, now_mono_ms);
        }
    }

    /// Begins to lead: the store may hold another leader's candles, so they are read again.
    pub(crate) fn begin_leading(&mut self) {
        self.loaded = false;
        self.calls.arrived.clear();
    }

    /// The work of a follower: publishes the signals that the leader publishes. `told`: the last
    /// date that the leader published. `heard` is `None` before its first message.
    pub(super) fn follow(
        &mut self,
        context: &WarmerContext,
        told: Option<Date>,
        heard: Option<&HeardRunning>,
        now_mono_ms: u64,
    ) {
        self.target = settled_date(&context.calendar, Source::BrokerA, context.clock.now());
        self.provisional.follow(false, None);
        if self.in_flight || self.follow_running(context, heard, now_mono_ms) {
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

    /// Publishes the leader's signals of running candles, or none if it has none. Without a message
    /// the published ones stay until they expire. True: a job for this is under way.
    fn follow_running(
        &mut self,
        context: &WarmerContext,
        heard: Option<&HeardRunning>,
        now_mono_ms: u64,
    ) -> bool {
        let shown = self.shown.provisional;
        let is_old = |until_mono_ms: u64, date: Date| {
            now_mono_ms >= until_mono_ms || date != clock::zoned(context.clock.now()).date()
        };
        let until_mono_ms = heard.map_or(0, |heard| heard.until_mono_ms);
        let told = heard.and_then(|heard| heard.running.as_ref());
        let told = told.filter(|told| !is_old(until_mono_ms, told.look.date));
        // They are shown together with the complete ones of the previous session.
        let told = told.filter(|_| self.loaded && self.shown.top.as_of.is_some());
        match (told, shown) {
            (Some(told), shown) if shown.is_none_or(|shown| shown.look != told.look) => {
                let told = (told.look, told.signals.clone());
                let expected = self.expected(context);
                let publication = context.publication.clone();
                self.submit(context, move |store| {
                    let shown = adopt(store, told, until_mono_ms, &expected, &publication)?;
                    Ok(Done::Found(shown))
                });
                true
            }
            (None, Some(shown))
                if heard.is_some() || is_old(shown.until_mono_ms, shown.look.date) =>
            {
                let publication = context.publication.clone();
                self.submit(context, move |_| Ok(Done::Withdrawn(withdraw(&publication))));
                true
            }
            _ => false,
        }
    }

    /// The published signals of running candles.
    pub(super) fn running(&self) -> Option<ShownProvisional> {
        self.shown.provisional
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
        let of = (&mut self.histories, &mut self.provisional);
        self.calls.take(source, answer.map(|answer| *answer), of, now_mono_ms);
    }

    /// Milliseconds until broker A's rate limit allows the next call; the maximum if no call is
    /// left to make.
    pub(crate) fn wait_ms(&self, context: &WarmerContext) -> u64 {
        let Some(date) = self.target else { return u64::MAX };
        let nothing_left =
            || self.histories.are_settled(date) && self.provisional.next(Source::BrokerA).is_none();
        if self.calls.is_asking(Source::BrokerA) || nothing_left() {
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
            self.histories.begin_date();
        }
    }

    /// Applies the operator's switch, the current session and its rotations.
    fn follow_session(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        let session = self.session(context);
        self.provisional.follow(context.provisional_signals, session);
        let serves = |source| availability(context, source) != Availability::Absent;
        self.provisional.rotate(serves, self.calls.asks_running(), now_mono_ms);
    }

    /// The session whose running candles are searched; `None` until the previous trading date is
    /// published.
    fn session(&self, context: &WarmerContext) -> Option<Date> {
        let date = running_date(&context.calendar, context.clock.now())?;
        let before = context.calendar.previous_trading_date(date)?;
        let published = self.target == Some(before) && self.shown.top.as_of == Some(before);
        (context.provisional_signals && published).then_some(date)
    }

    /// Sends the next job to the lane `signals`, if none is under way.
    fn use_lane(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        if self.in_flight || self.withdraws(context, now_mono_ms) {
            return;
        }
        if now_mono_ms < self.retry_mono_ms {
            return;
        }
        let publication = context.publication.clone();
        if !self.loaded {
            self.load(context);
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
            let order = RebuildOrder { date, symbols, expected, now_ms, publication };
            let chart_only_max = self.histories.chart_only_max;
            self.submit(context, move |store| {
                Ok(Done::Rebuilt(
                    rebuild(store, &order)?,
                    store.held_symbols(None, chart_only_max)?,
                ))
            });
        } else {
            self.look(context, now_mono_ms);
        }
    }

    /// The due date, if it is not published and no more candles are expected.
    fn date_to_publish(&self) -> Option<Date> {
        let date = self.target.filter(|date| self.shown.top.as_of < Some(*date))?;
        let there = self.histories.count(|tracked| tracked.has(date));
        let enough = there * 100 >= self.histories.len() * SHARE_MIN_PERCENT;
        (self.histories.are_settled(date) && enough).then_some(date)
    }

    /// The inputs that decide whether outcomes are still to come.
    fn expected(&self, context: &WarmerContext) -> Expected {
        let calendar = Arc::clone(&context.calendar);
        let universe = Arc::clone(&self.histories.universe);
        Expected { universe, calendar, epoch: self.epoch }
    }

    /// Prepares a session or searches its candles, if either is due.
    fn look(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        if let (true, Some(settled)) = (self.provisional.wants_preparing(), self.target) {
            let symbols: Vec<_> = self.histories.iter().map(trusted).collect();
            self.submit(context, move |store| prepare(store, settled, symbols).map(Done::Prepared));
        } else if let Some(order) = self.look_order(context, now_mono_ms) {
            self.provisional.to_look = false;
            self.provisional.looked_at = Some(order.look.at);
            self.submit(context, move |store| {
                Ok(match look(store, &order) {
                    (shown, None) => Done::Found(shown),
                    (shown, Some(error)) => Done::Refused(shown, error),
                })
            });
        }
    }

    /// Withdraws signals of running candles that have expired or are switched off, unless a new
    /// search can replace them now. Needs no store. True: a job for this is under way.
    fn withdraws(&mut self, context: &WarmerContext, now_mono_ms: u64) -> bool {
        let Some(standing) = self.shown.provisional else { return false };
        let today = clock::zoned(context.clock.now()).date();
        let too_old = now_mono_ms >= standing.until_mono_ms || standing.look.date != today;
        if self.provisional.on && !too_old {
            return false;
        }
        let can_look = self.loaded && now_mono_ms >= self.retry_mono_ms;
        self.provisional.to_look = true;
        let look = self.look_order(context, now_mono_ms).filter(|order| !order.answers.is_empty());
        if can_look && look.is_some() {
            return false;
        }
        let publication = context.publication.clone();
        self.submit(context, move |_| Ok(Done::Withdrawn(withdraw(&publication))));
        true
    }

    fn look_order(&self, context: &WarmerContext, now_mono_ms: u64) -> Option<LookOrder> {
        let date = self.provisional.date?;
        let prepared = self.provisional.to_look()?;
        let (answers, until_mono_ms) = self.provisional.fresh(now_mono_ms);
        Some(LookOrder {
            look: ScanTime { date, at: context.clock.now() },
            prepared,
            answers,
            expected: self.expected(context),
            until_mono_ms,
            now_ms: context.clock.now_ms(),
            publication: context.publication.clone(),
        })
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
    pub(super) fn ended(&mut self, outcome: Option<Box<Outcome>>, now_mono_ms: u64) {
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
        match &done {
            Done::Refused(_, error) => self.retry_later(error.to_string(), now_mono_ms),
            // The store was not used.
            Done::Withdrawn(_) => {}
            _ => self.failure = None,
        }
        match done {
            Done::Loaded(histories, shown, held) => {
                self.histories.draw(held);
                self.hold(histories, shown);
            }
            Done::Taken(taken) => self.taken(taken, now_mono_ms),
            Done::Prepared(prepared) if Some(prepared.settled) == self.target => {
                self.provisional.prepared = Some(Arc::new(prepared));
            }
            // Another date has come due since.
            Done::Prepared(_) => {}
            Done::Rebuilt(shown, held) => {
                self.shown = shown;
                self.histories.draw(held);
            }
            Done::Found(shown) | Done::Withdrawn(shown) => self.shown = shown,
            Done::Refused(shown, _) => {
                self.shown = shown;
                self.provisional.to_look = true;
            }
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
        self.provisional.prepared = None;
        self.histories.loaded(histories, |place| self.calls.has_in_flight(place));
    }

    fn taken(&mut self, taken: Taken, now_mono_ms: u64) {
        let Taken { at, source, whole, verdict } = taken;
        let tracked = &mut self.histories.tracked[at];
        if let (true, Some(date)) = (whole, self.target) {
            tracked.has_whole_of(date);
        }
        tracked.in_flight = false;
        match verdict {
            Verdict::Stored { held, gap } => {
                self.provisional.prepared = None;
                if let Some(date) = self.target {
                    tracked.stored(held, date, gap, now_mono_ms);
                }
            }
            Verdict::Patchy { missing, faults } => {
                let symbol = tracked.symbol.as_str();
                let source_name = source.as_str();
                tracing::warn!(symbol, source = source_name, missing, faults, "candles refused");
                tracked.refused(source, now_mono_ms);
            }
        }
    }

    /// The signals in the snapshot.
    pub(super) fn shown(&self) -> &ShownSignals {
        &self.shown.top
    }

    /// Counts for the health document.
    pub(crate) fn counts(&self) -> HealthSignals {
        let provisional = self.provisional.on;
        HealthSignals {
            as_of: self.shown.top.as_of.map(Day),
            symbols: self.histories.len(),
            silenced: self.histories.count(TrackedSymbol::is_silenced),
            failed: self.histories.count(TrackedSymbol::lacks_candles),
            signals: self.shown.signals,
            provisional: provisional
                .then(|| self.shown.provisional.map_or(0, |shown| shown.signals)),
            provisional_at: self.provisional.looked_at.filter(|_| provisional).map(Instant),
        }
    }

    /// The state for health: `starting` before the first list; `ok` while the list is of the due
    /// date or its candles are being fetched; `stale` if that takes long; `failing` while the store
    /// or the feeds do not work; `paused` if the calendar knows no date.
    pub(crate) fn state(&self, now_mono_ms: u64) -> WarmerState {
        let Some(date) = self.target else { return WarmerState::Paused };
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
    let held = tracked.history.as_ref().filter(|_| !tracked.is_silenced())?;
    Some((tracked.symbol.clone(), held.source, held.simulated))
}

// ---- Jobs
//
// Results of jobs of the lane `signals`.

#[cfg(test)]
#[path = "signals_tests.rs"]
mod tests;
