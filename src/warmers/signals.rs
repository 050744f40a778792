//! Daily candles of the universe, and the signals found in them.
//!
//! After the official close of each trading date, and at start, every symbol's missing candles are
//! fetched, judged and stored one by one, so that a restart goes on where it was. When nothing more
//! is to be expected, the date's signals are found, published once, and those of earlier dates are
//! judged. Candles of a session under way are looked at by `provisional`, if the operator wants it.
//! State of the scheduler's thread; feeds are asked on their lanes, the store and all
//! computing on the lane `signals`. Must never keep a round of quotes waiting.

mod fetch;
pub(crate) mod outcomes;
mod provisional;
pub(crate) mod publication;
pub(crate) mod sessions;
pub(crate) mod steps;
pub(crate) mod symbol;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crossbeam_channel::Sender;
use jiff::Timestamp;
use jiff::civil::Date;

use super::context::WarmerContext;
use super::event::Event;
use super::event::JobReport;
use crate::base::{Source, Symbol};
use crate::brokers::broker_a::Tokens;
use crate::market::Universe;
use crate::market::instruments::embedded_instruments;
use crate::store::{CandleHistory, SignalStore, StoreError};
use crate::views::signals::ShownSignals;

pub use fetch::Fetched;
use fetch::{Call, counted};
use outcomes::Expected;
use provisional::Provisional;
pub use publication::Publication;
use publication::Shown;
use sessions::settled_date;
pub use steps::Done;
use steps::{Arrived, RebuildOrder, Taken, Verdict};
use symbol::TrackedSymbol;

/// After a failure of the store.
const RETRY_MS: u64 = 30_000;
/// One job at a time, but its thread runs after all others, and a busy machine may let it wait.
const JOB_DEADLINE_MS: u64 = 10 * 60_000;
/// A date whose signals are not there so long after it came due is worth telling.
const LATE_MS: u64 = 60 * 60_000;
/// The part of the universe, in percent, without whose candles a date is not published: the vendors
/// or our calendar err then, not single symbols.
const SHARE_MIN_PERCENT: usize = 50;

/// How a job on the lane `signals` ended; `None` when it was lost.
pub type Outcome = Option<Result<Done, StoreError>>;

/// What the scheduler knows when it gives the warmer its turn.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    pub somebody_waits: bool,
    pub close_is_pricing: bool,
    pub public_is_asking: bool,
    /// The tick's rounds have not gone out yet.
    pub before_rounds: bool,
}

/// Owner of candles' and signals' state.
pub struct SignalsWarmer {
    tracked: Vec<TrackedSymbol>,
    universe: Arc<HashSet<Symbol>>,
    pub tokens: Tokens,
    /// The day's list of broker A has been read, so a symbol without a token has none.
    pub tokens_learned: bool,
    loaded: bool,
    /// The date whose candles are due.
    target: Option<Date>,
    /// When it came due, or this process began.
    began_mono_ms: u64,
    broker_a: Call,
    public: Call,
    arrived: VecDeque<Arrived>,
    in_flight: bool,
    retry_mono_ms: u64,
    /// Why the store did not do what it should; cleared by its next success.
    failure: Option<String>,
    shown: Shown,
    /// Candles of the session under way, while the operator wants them looked at.
    provisional: Provisional,
}

/// For health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub as_of: Option<Date>,
    pub symbols: usize,
    pub silenced: usize,
    pub failed: usize,
    pub signals: usize,
    /// `None` while switched off.
    pub provisional: Option<ProvisionalCounts>,
}

/// The same of running candles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvisionalCounts {
    /// Shown now.
    pub signals: usize,
    /// When candles of this session were last looked at.
    pub at: Option<Timestamp>,
}

impl SignalsWarmer {
    /// At rest; [`restore`](Self::restore) follows.
    pub fn new(universe: &Universe) -> Self {
        let embedded = embedded_instruments();
        let wanted = universe.symbols().iter().map(|symbol| {
            let row = embedded.iter().find(|row| row.symbol == *symbol);
            (symbol.clone(), row.and_then(|row| row.broker_a_token))
        });
        Self {
            universe: Arc::new(universe.symbols().iter().cloned().collect()),
            tracked: universe.symbols().iter().cloned().map(TrackedSymbol::new).collect(),
            tokens: Tokens::new(wanted),
            tokens_learned: false,
            loaded: false,
            target: None,
            began_mono_ms: 0,
            broker_a: Call::default(),
            public: Call::default(),
            arrived: VecDeque::new(),
            in_flight: false,
            retry_mono_ms: 0,
            failure: None,
            shown: Shown::nothing(),
            provisional: Provisional::new(universe.symbols().len()),
        }
    }

    /// Nothing of it is under way on a lane.
    pub fn is_idle(&self) -> bool {
        !self.in_flight && self.broker_a.is_idle() && self.public.is_idle()
    }

    /// Reads what the store has, so that the last list is served from the start. Blocks.
    pub fn restore(&mut self, parts: &WarmerContext) {
        let loaded = steps::load(&*parts.signal_store, &parts.shelf, &self.expected(parts));
        self.ended(Some(loaded), parts.clock.monotonic_ms());
    }

    /// Takes the next steps that are due.
    pub fn poll(
        &mut self,
        parts: &WarmerContext,
        turn: Turn,
        now_mono_ms: u64,
        events: &Sender<Event>,
    ) {
        self.follow(parts, now_mono_ms);
        self.use_lane(parts, now_mono_ms, events);
        if self.loaded {
            self.ask(parts, Source::BrokerA, turn, now_mono_ms, events);
            self.ask(parts, Source::Public, turn, now_mono_ms, events);
        }
    }

    /// Goes over to the next date. What is under way is about the old one and joins all the same.
    fn follow(&mut self, parts: &WarmerContext, now_mono_ms: u64) {
        let due = settled_date(&parts.calendar, Source::BrokerA, parts.clock.now());
        if due != self.target {
            self.target = due;
            self.began_mono_ms = now_mono_ms;
            self.tracked.iter_mut().for_each(TrackedSymbol::begin_date);
        }
        self.follow_session(parts, now_mono_ms);
    }

    fn use_lane(&mut self, parts: &WarmerContext, now_mono_ms: u64, events: &Sender<Event>) {
        if self.in_flight || self.withdraws(parts, now_mono_ms, events) {
            return;
        }
        if now_mono_ms < self.retry_mono_ms {
            return;
        }
        let (shelf, now_ms) = (parts.shelf.clone(), parts.clock.now_ms());
        if !self.loaded {
            let expected = self.expected(parts);
            self.submit(parts, events, move |store| steps::load(store, &shelf, &expected));
        } else if let Some(arrived) = self.arrived.pop_front() {
            let calendar = Arc::clone(&parts.calendar);
            self.submit(parts, events, move |store| steps::take_in(store, &calendar, arrived));
        } else if let Some(date) = self.date_to_publish() {
            let trusted = self.tracked.iter().filter(|tracked| !tracked.is_silenced());
            let symbols = trusted.filter_map(|tracked| {
                let held = tracked.history.as_ref()?;
                Some((tracked.symbol.clone(), held.simulated))
            });
            let (symbols, expected) = (symbols.collect(), self.expected(parts));
            let order = RebuildOrder { date, symbols, expected, now_ms, shelf };
            self.submit(parts, events, move |store| steps::rebuild(store, &order));
        } else {
            self.look(parts, now_mono_ms, events);
        }
    }

    /// The date that is due, if it is not published and nothing more is to be expected of it.
    fn date_to_publish(&self) -> Option<Date> {
        let date = self.target.filter(|date| self.shown.top.as_of < Some(*date))?;
        let settled = self.tracked.iter().all(|tracked| tracked.is_settled(date));
        let there = counted(&self.tracked, |tracked| tracked.has(date));
        let enough = there * 100 >= self.tracked.len() * SHARE_MIN_PERCENT;
        (settled && enough).then_some(date)
    }

    /// What decides whether outcomes are still to come.
    fn expected(&self, parts: &WarmerContext) -> Expected {
        let calendar = Arc::clone(&parts.calendar);
        Expected { universe: Arc::clone(&self.universe), calendar }
    }

    fn submit(
        &mut self,
        parts: &WarmerContext,
        events: &Sender<Event>,
        job: impl FnOnce(&dyn SignalStore) -> Result<Done, StoreError> + Send + 'static,
    ) {
        let as_event = |outcome: Outcome| Event::Signals(Box::new(outcome));
        let mut report = JobReport { events: events.clone(), outcome: None, as_event };
        let store = Arc::clone(&parts.signal_store);
        // Before it is sent: whatever becomes of it is reported.
        self.in_flight = true;
        let _ = parts.signals_lane.submit(JOB_DEADLINE_MS, move || {
            report.outcome = Some(job(&*store));
            drop(report);
        });
    }

    /// Takes in how a job ended.
    pub fn ended(&mut self, outcome: Outcome, now_mono_ms: u64) {
        self.in_flight = false;
        let done = match outcome {
            Some(Ok(done)) => done,
            failed => {
                let failure = failed.and_then(Result::err).map(|error| error.to_string());
                let failure = failure.unwrap_or_else(|| "the job was lost".to_owned());
                self.retry_later(failure, now_mono_ms);
                // What was to be stored is lost, and asked for again.
                self.loaded = false;
                return;
            }
        };
        match &done {
            Done::Refused(refused) => self.retry_later(refused.error.to_string(), now_mono_ms),
            // The store was not asked.
            Done::Withdrawn(_) => {}
            _ => self.failure = None,
        }
        match done {
            Done::Loaded(histories, shown) => self.hold(histories, shown),
            Done::Taken(taken) => self.taken(taken, now_mono_ms),
            Done::Prepared(prepared) if Some(prepared.settled) == self.target => {
                self.provisional.prepare(prepared);
            }
            // Another date has come due meanwhile.
            Done::Prepared(_) => {}
            Done::Rebuilt(shown) | Done::Found(shown) | Done::Withdrawn(shown) => {
                self.shown = shown;
            }
            Done::Refused(refused) => {
                self.shown = refused.shown;
                self.provisional.set_to_look(true);
            }
        }
    }

    fn retry_later(&mut self, failure: String, now_mono_ms: u64) {
        if self.failure.as_ref() != Some(&failure) {
            tracing::warn!(failure, "signals cannot be kept; trying again");
        }
        self.failure = Some(failure);
        self.retry_mono_ms = now_mono_ms + RETRY_MS;
    }

    fn hold(&mut self, mut histories: Vec<CandleHistory>, shown: Shown) {
        self.loaded = true;
        self.shown = shown;
        self.provisional.unprepare();
        for tracked in &mut self.tracked {
            let at = histories.iter().position(|held| held.symbol == tracked.symbol);
            tracked.history = at.map(|at| histories.swap_remove(at));
            // Calls under way go on; what a failed job carried is gone.
            tracked.in_flight = false;
        }
        for call in [&self.broker_a, &self.public] {
            if let Some(at) = call.symbol() {
                self.tracked[at].in_flight = true;
            }
        }
        self.arrived.iter().for_each(|arrived| self.tracked[arrived.at].in_flight = true);
    }

    fn taken(&mut self, taken: Taken, now_mono_ms: u64) {
        let Taken { at, source, verdict } = taken;
        let tracked = &mut self.tracked[at];
        tracked.in_flight = false;
        match verdict {
            Verdict::Stored { held, gap } => {
                self.provisional.unprepare();
                if let Some(date) = self.target {
                    tracked.stored(held, date, gap, now_mono_ms);
                }
            }
            Verdict::Patchy { missing, faults } => {
                let symbol = tracked.symbol.as_str();
                let source_name = source.as_str();
                tracing::warn!(symbol, source = source_name, missing, faults, "candles refused");
                tracked.patchy = true;
                tracked.failed(source, false, now_mono_ms);
            }
        }
    }

    /// What the snapshot shows of them.
    pub fn shown_signals(&self) -> ShownSignals {
        self.shown.top.clone()
    }

    /// For health.
    pub fn counts(&self) -> Counts {
        Counts {
            as_of: self.shown.top.as_of,
            symbols: self.tracked.len(),
            silenced: counted(&self.tracked, TrackedSymbol::is_silenced),
            failed: counted(&self.tracked, |tracked| tracked.given_up),
            signals: self.shown.signals,
            provisional: self.provisional.is_on().then(|| ProvisionalCounts {
                signals: self.shown.provisional.map_or(0, |shown| shown.signals),
                at: self.provisional.looked_at,
            }),
        }
    }

    /// The word for health: `starting` before the first list, `ok` while the list is of the date
    /// that is due or its candles are being fetched, `stale` when that takes long, `failing` while
    /// the store or the feeds do not work, `paused` where the calendar knows no date.
    pub fn state(&self, now_mono_ms: u64) -> &'static str {
        let Some(date) = self.target else { return "paused" };
        if self.failure.is_some() {
            return "failing";
        }
        if self.shown.top.as_of >= Some(date) {
            return "ok";
        }
        let feeds_fail = [&self.broker_a, &self.public].iter().any(|call| call.failure.is_some());
        let late = now_mono_ms.saturating_sub(self.began_mono_ms) >= LATE_MS;
        match (feeds_fail, self.shown.top.as_of) {
            (true, _) if late => "failing",
            (_, Some(_)) if late => "stale",
            (true, None) => "failing",
            (false, None) => "starting",
            (_, Some(_)) => "ok",
        }
    }
}

#[cfg(test)]
#[path = "signals_tests.rs"]
mod tests;
