//! Revaluation at the close: values every stored portfolio once at the closing prices of a trading
//! date.
//!
//! Each step may be repeated after a crash. First it reads the store's progress for the date. Then
//! it polls the feeds for missing closing prices and stores each batch at once. Then it values the
//! users page by page; a page's prices, points and completion marks are one transaction. It walks
//! over the users several times: first those whose prices are complete, then, once the feeds have
//! answered about every symbol, all of them. A user who lacks a price is valued again when it
//! arrives.
//!
//! The store is looked at again and again until the next session, while prices are waited for and
//! after the end: a portfolio that came since, with symbols that have no closing price yet, is one
//! whose valuation is not complete. So the same steps give it the close, whoever synced it and on
//! whichever node. Memory is bounded by the symbols of a run and one page. The task belongs to the
//! scheduler's thread. The store is read and written on the lane `close`, the feeds are polled on
//! their own lanes, and only while no request waits for them.

use std::sync::Arc;

use jiff::civil::Date;

use crate::base::{BySource, ClosingPrice, Source, Symbol};
use crate::rt::lanes::Outcomes;
use crate::store::{Store, StoreError};
use crate::views::health::HealthClose;
use crate::views::states::WarmerState;
use crate::views::values::Day;
use crate::warmers::close::due::{Due, Judges};
use crate::warmers::close::jobs::{self, Done, Looked, Outcome, PageOrder, Paged, Reach};
use crate::warmers::close::prices::{PriceCalls, TickState};
use crate::warmers::close::work::{LOOK_EACH_MS, Step, Walk, Walked, Work};
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::feed_state::{Answer, FeedState};
use crate::warmers::quotes::feeds::Feeds;
use crate::warmers::quotes::known_closes::KnownCloses;

/// Pause after a failure of the store.
const RETRY_MS: u64 = 30_000;

/// Deadline of a store job. The store's methods have deadlines of their own, and a job makes a
/// bounded number of calls.
const STORE_DEADLINE_MS: u64 = 120_000;

/// A date without work left: finished or given up, at this monotonic time.
#[derive(Clone, Copy)]
struct Settled {
    date: Date,
    at_mono_ms: u64,
}

/// Owner of the revaluation's state.
pub(crate) struct CloseTask {
    outcomes: Outcomes<Box<Outcome>>,
    work: Option<Work>,
    /// The last such date.
    settled: Option<Settled>,
    gave_up: bool,
    pub calls: PriceCalls,
    store_in_flight: bool,
    store_retry_mono_ms: u64,
    /// The last failure of the store; cleared by its next success.
    failure: Option<String>,
    /// Counts of the last run.
    pub counts: HealthClose,
}

impl CloseTask {
    /// No close is due yet. `closes` receives the outcomes of calls, by source.
    pub(crate) fn new(
        closes: BySource<Outcomes<Box<Answer>>>,
        outcomes: Outcomes<Box<Outcome>>,
    ) -> Self {
        Self {
            outcomes,
            work: None,
            settled: None,
            gave_up: false,
            calls: PriceCalls::new(closes),
            store_in_flight: false,
            store_retry_mono_ms: 0,
            failure: None,
            counts: HealthClose::default(),
        }
    }

    /// Takes the next due steps.
    pub(crate) fn poll(&mut self, context: &WarmerContext, feeds: &Feeds, tick: TickState) {
        let now_mono_ms = tick.now_mono_ms;
        if !self.follow(context, now_mono_ms) {
            return;
        }
        if let Some(work) = &self.work {
            feeds
                .iter()
                .for_each(|feed| self.calls.ask(work, context, feed, feeds, tick));
        }
        if !self.store_in_flight && now_mono_ms >= self.store_retry_mono_ms {
            self.use_store(context, now_mono_ms);
        }
    }

    /// Stops the run because another node leads and does it. Jobs under way end first.
    pub(crate) fn rest(&mut self) {
        if !self.store_in_flight && !self.calls.is_under_way() {
            self.work = None;
            self.failure = None;
        }
    }

    /// Begins and gives up runs. True while a run is under way.
    fn follow(&mut self, context: &WarmerContext, now_mono_ms: u64) -> bool {
        let due = Due::at(&context.calendar, context.clock.now());
        let current = self.work.as_ref().map(|work| work.due.date);
        let again = due
            .as_ref()
            .is_some_and(|due| self.settled.is_some_and(|s| s.date == due.date));
        let rests =
            |settled: Settled| now_mono_ms.saturating_sub(settled.at_mono_ms) < LOOK_EACH_MS;
        if current.is_none() && again && self.settled.is_some_and(rests) {
            return false;
        }
        let wanted = due.as_ref().map(|due| due.date);
        if current == wanted {
            return current.is_some();
        }
        // Wait for jobs under way, so that no outcome is applied to another date's run.
        if self.store_in_flight || self.calls.is_under_way() {
            return false;
        }
        if let Some(work) = self.work.take() {
            self.settled = Some(Settled {
                date: work.due.date,
                at_mono_ms: now_mono_ms,
            });
            let date = work.due.date;
            let missing = work.missing.len();
            if work.again {
                tracing::info!(
                    %date,
                    missing,
                    "the next session begins; portfolios that came late get no close of this date"
                );
            } else {
                self.gave_up = true;
                tracing::error!(
                    %date,
                    missing,
                    "some portfolios have no close of this date, and the next session begins"
                );
            }
        } else if let Some(due) = due {
            if !again {
                self.counts = HealthClose {
                    date: Some(Day(due.date)),
                    ..HealthClose::default()
                };
            }
            self.work = Some(Work {
                again,
                ..Work::of(due, now_mono_ms)
            });
        }
        self.work.is_some()
    }

    fn use_store(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        // The leadership may have ended since this tick began.
        let Some(epoch) = context.lead.epoch() else {
            return;
        };
        let Some(work) = &mut self.work else { return };
        work.step_on(context, now_mono_ms);
        let date = work.due.date;
        let looks = match &work.step {
            Step::Look => true,
            Step::Price(None) => work.unkept.is_empty() && work.is_look_due(now_mono_ms),
            _ => false,
        };
        if looks {
            let symbols_max = context.close.symbols_max;
            let before = work.due.session_before;
            return self.submit(context, move |store| {
                jobs::read_progress(store, date, before, symbols_max).map(Done::Looked)
            });
        }
        match &work.step {
            Step::Look => {}
            Step::Price(_) if !work.unkept.is_empty() => {
                work.keeping.append(&mut work.unkept);
                let prices = work.keeping.clone();
                self.submit(context, move |store| {
                    store.keep_closes(epoch, date, &prices).map(|()| Done::Kept)
                });
            }
            Step::Price(None) => {}
            Step::Price(Some(walk)) | Step::Last(walk) => {
                let order = PageOrder {
                    epoch,
                    due: work.due.clone(),
                    after: walk.after,
                    users_max: context.close.page_users,
                    reach: walk.reach,
                    closes: Arc::clone(&work.closes),
                    given_up: Arc::clone(&walk.given_up),
                    cut_off: work.cut_off,
                    is_late: work.is_late,
                    responses: Arc::clone(&context.responses),
                };
                self.submit(context, move |store| jobs::page(store, &order).map(Done::Paged));
            }
            Step::Finish => {
                let now_ms = context.clock.now_ms();
                let silent = work.missing.fell_silent();
                self.submit(context, move |store| {
                    store
                        .finish_close(epoch, date, now_ms, silent)
                        .map(|()| Done::Finished)
                });
            }
        }
    }

    fn submit(
        &mut self,
        context: &WarmerContext,
        job: impl FnOnce(&Store) -> Outcome + Send + 'static,
    ) {
        let store = Arc::clone(&context.store);
        self.store_in_flight = true;
        // A refused job is reported and logged like any other failure.
        let _ = self
            .outcomes
            .submit(&context.close_lane, STORE_DEADLINE_MS, move || Box::new(job(&store)));
    }

    /// Takes the result of a store job; `None` if it was lost.
    pub(crate) fn ended(
        &mut self,
        outcome: Option<Box<Outcome>>,
        known: &KnownCloses,
        now_mono_ms: u64,
    ) {
        self.store_in_flight = false;
        let done = match outcome.map(|outcome| *outcome) {
            Some(Ok(done)) => done,
            Some(Err(StoreError::Deposed)) => {
                // The next leader does the rest.
                self.work = None;
                self.store_retry_mono_ms = now_mono_ms + RETRY_MS;
                return;
            }
            failed => {
                let failure = failed.and_then(Result::err).map(|error| error.to_string());
                self.failed(failure.unwrap_or_else(|| "the job was lost".to_owned()), now_mono_ms);
                return;
            }
        };
        self.failure = None;
        match done {
            Done::Looked(looked) => self.looked(looked, known, now_mono_ms),
            Done::Kept => self.kept(known),
            Done::Paged(paged) => self.paged(&paged, now_mono_ms),
            Done::Finished => self.finished(now_mono_ms),
        }
    }

    /// Takes the closing prices that a feed answered; `None` if the call was lost.
    pub(crate) fn take_prices(
        &mut self,
        source: Source,
        answer: Option<Box<Answer>>,
        feed: Option<&FeedState>,
        judges: &Judges<'_>,
        now_mono_ms: u64,
    ) {
        let answer = answer.map(|answer| *answer);
        self.calls
            .take(self.work.as_mut(), (source, answer), feed, judges, now_mono_ms);
        if let Some(work) = &self.work {
            self.counts.missing = work.missing.len();
            self.counts.suspended = work.missing.silent();
        }
    }

    fn failed(&mut self, failure: String, now_mono_ms: u64) {
        self.store_retry_mono_ms = now_mono_ms + RETRY_MS;
        if let Some(work) = &mut self.work {
            work.unkept.append(&mut work.keeping);
        }
        if self.failure.as_ref() != Some(&failure) {
            tracing::warn!(failure, "portfolios cannot be valued at the close; trying again");
        }
        self.failure = Some(failure);
    }

    fn looked(&mut self, looked: Looked, known: &KnownCloses, now_mono_ms: u64) {
        let Some(work) = &mut self.work else { return };
        known.note(work.due.date, each(&looked.closes));
        if let Some(before) = work.due.session_before {
            known.note(before, each(&looked.closes_before));
        }
        if looked.finished {
            return self.settle(now_mono_ms);
        }
        work.looked_mono_ms = now_mono_ms;
        if matches!(work.step, Step::Look) {
            let date = work.due.date;
            let missing = looked.missing.len();
            let late = looked.is_late;
            tracing::info!(%date, missing, late, "revaluing portfolios at the close");
            if looked.cut_off {
                tracing::error!(
                    "users hold more symbols than closing prices are fetched for in one evening; \
                     the rest keep the last price that is stored"
                );
            }
            work.step = Step::Price(None);
            work.closes = Arc::new(looked.closes);
            work.heard_mono_ms = now_mono_ms;
        }
        (work.is_late, work.cut_off) = (looked.is_late, looked.cut_off);
        work.add_missing(looked.missing, &looked.silent, now_mono_ms);
        self.counts.cut_off = looked.cut_off;
        self.counts.priced = work.closes.len();
        self.counts.missing = work.missing.len();
        self.counts.suspended = work.missing.silent();
    }

    fn kept(&mut self, known: &KnownCloses) {
        let Some(work) = &mut self.work else { return };
        known.note(work.due.date, work.keeping.iter().map(|(symbol, close)| (symbol, *close)));
        Arc::make_mut(&mut work.closes).extend(work.keeping.drain(..));
        self.counts.priced = work.closes.len();
    }

    fn paged(&mut self, paged: &Paged, now_mono_ms: u64) {
        self.counts.pages += 1;
        self.counts.points += paged.users as u64;
        self.counts.carried += paged.carried;
        let Some(work) = &mut self.work else { return };
        let (Step::Price(Some(walk)) | Step::Last(walk)) = &mut work.step else {
            return;
        };
        walk.after = paged.done_to;
        if paged.is_last {
            let Walk { reach, prices, .. } = *walk;
            work.walked = Some(Walked {
                reach,
                prices,
                at_mono_ms: now_mono_ms,
            });
            work.step = if reach == Reach::Last {
                Step::Finish
            } else {
                Step::Price(None)
            };
        }
    }

    fn finished(&mut self, now_mono_ms: u64) {
        let HealthClose {
            date,
            priced,
            missing,
            suspended,
            pages,
            points,
            carried,
            ..
        } = self.counts;
        let date = date.map(|day| tracing::field::display(day.0));
        tracing::info!(date, priced, missing, suspended, pages, points, carried, "close revalued");
        self.settle(now_mono_ms);
    }

    fn settle(&mut self, now_mono_ms: u64) {
        let settled = |work: Work| Settled {
            date: work.due.date,
            at_mono_ms: now_mono_ms,
        };
        self.settled = self.work.take().map(settled);
        self.gave_up = false;
    }

    /// Whether no feed has answered about some symbol yet. Meanwhile other evening work leaves the
    /// feeds alone. Symbols without a price are asked for again later, without holding up that
    /// work.
    pub(crate) fn is_pricing(&self) -> bool {
        self.work.as_ref().is_some_and(Work::is_pricing)
    }

    /// The state for health: `paused` while no close is due, `starting` until the store has
    /// reported its progress, `stale` while the feeds do not answer, `failing` while the store does
    /// not work or after a date was given up.
    pub(crate) fn state(&self, now_mono_ms: u64) -> WarmerState {
        match &self.work {
            _ if self.failure.is_some() => WarmerState::Failing,
            None if self.gave_up => WarmerState::Failing,
            None => WarmerState::Paused,
            Some(work) => match work.step {
                Step::Look if work.again => WarmerState::Paused,
                Step::Look => WarmerState::Starting,
                _ if work.is_pricing() && work.is_unheard(now_mono_ms) => WarmerState::Stale,
                _ => WarmerState::Ok,
            },
        }
    }
}

fn each(closes: &jobs::Closes) -> impl Iterator<Item = (&Symbol, ClosingPrice)> {
    closes.iter().map(|(symbol, close)| (symbol, *close))
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
