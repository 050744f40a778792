//! The evening's revaluation: every stored portfolio at the closing prices of a trading date, once.
//!
//! In steps, each of which may be repeated after a crash: look what the store has of the date's
//! run; ask the feeds for the closing prices that are missing, and keep each batch at once; value
//! the users page by page, where a page's prices, points and marks of completion are one
//! transaction. Users are walked over several times: first those whose prices are all there, then,
//! once the feeds were asked for everything, all of them, and whoever lacks a price again when it
//! has come. Memory is bounded by the symbols of a run and one page. State of the scheduler's
//! thread; the store is asked on the lane `close`, the feeds on their own lanes, and only while
//! no request waits for them.

mod due;
pub(crate) mod jobs;
mod missing;
mod prices;
mod work;

use std::sync::Arc;

use jiff::civil::Date;

use super::context::WarmerContext;
use super::job::Outcomes;
use super::quotes::feed_state::FeedState;
use super::quotes::feeds::Feeds;
use super::quotes::poll::Answer;
use crate::base::Source;
use crate::store::{Store, StoreError};

use due::Due;
use jobs::{Done, Looked, Outcome, PageOrder, Paged, Reach};
use missing::Missing;
use prices::PriceCalls;
pub use prices::Turn;
use work::{Step, Walk, Walked, Work};

/// After a failure of the store.
const RETRY_MS: u64 = 30_000;

/// The store's methods end by deadlines of their own; a job has a bounded number of them.
const STORE_DEADLINE_MS: u64 = 120_000;

/// Owner of the revaluation's state.
pub struct CloseTask {
    outcomes: Outcomes<Box<Outcome>>,
    work: Option<Work>,
    /// The last date that needs nothing more: finished, or given up.
    settled: Option<Date>,
    gave_up: bool,
    calls: PriceCalls,
    store_in_flight: bool,
    store_retry_mono_ms: u64,
    /// Why the store did not do what it should; cleared by its next success.
    failure: Option<String>,
    counts: Counts,
}

/// What the last run did; for health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub date: Option<Date>,
    /// Closing prices kept.
    pub priced: usize,
    /// Symbols without one, and those of them that had none on the date before either.
    pub missing: usize,
    pub suspended: usize,
    /// More symbols are held than a run takes on.
    pub cut_off: bool,
    /// Pages and users' final points written by this process.
    pub pages: u64,
    pub points: u64,
    /// Holdings in them valued at an older price.
    pub carried: u64,
}

impl CloseTask {
    /// No close is due. `closes`: what becomes of calls, by source.
    pub fn new(
        closes: [Outcomes<Box<Answer>>; Source::ALL.len()],
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
            counts: Counts::default(),
        }
    }

    /// Takes the next steps that are due.
    pub fn poll(&mut self, context: &WarmerContext, feeds: &Feeds, turn: Turn) {
        let now_mono_ms = turn.now_mono_ms;
        if !self.follow(context, now_mono_ms) {
            return;
        }
        if let Some(work) = &self.work {
            feeds.iter().for_each(|feed| self.calls.ask(work, context, feed, feeds, turn));
        }
        if !self.store_in_flight && now_mono_ms >= self.store_retry_mono_ms {
            self.use_store(context, now_mono_ms);
        }
    }

    /// Another node leads and does the date's run. What is under way here ends first.
    pub fn rest(&mut self) {
        if !self.store_in_flight && !self.calls.is_under_way() {
            self.work = None;
            self.failure = None;
        }
    }

    /// Begins and gives up runs; true while there is one to work on.
    fn follow(&mut self, context: &WarmerContext, now_mono_ms: u64) -> bool {
        let due = Due::at(&context.calendar, context.clock.now());
        let due = due.filter(|due| self.settled != Some(due.date));
        let current = self.work.as_ref().map(|work| work.due.date);
        let wanted = due.as_ref().map(|due| due.date);
        if current == wanted {
            return current.is_some();
        }
        // What is under way ends first, so that no outcome meets another date's run.
        if self.store_in_flight || self.calls.is_under_way() {
            return false;
        }
        if let Some(work) = self.work.take() {
            self.settled = Some(work.due.date);
            self.gave_up = true;
            tracing::error!(
                date = %work.due.date,
                missing = work.missing.len(),
                "the next session begins and the close was not revalued: gave up"
            );
        } else if let Some(due) = due {
            self.counts = Counts { date: Some(due.date), ..Counts::default() };
            self.work = Some(Work::of(due, now_mono_ms));
        }
        self.work.is_some()
    }

    /// Sends the next job to the store.
    fn use_store(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        // The leadership may have ended since this turn began.
        let Some(epoch) = context.lead.epoch() else { return };
        let Some(work) = &mut self.work else { return };
        work.step_on(context, now_mono_ms);
        let date = work.due.date;
        match &work.step {
            Step::Look => {
                let symbols_max = context.close.symbols_max;
                self.submit(context, move |store| {
                    jobs::look(store, date, symbols_max).map(Done::Looked)
                });
            }
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
                    awaited: Arc::clone(&walk.awaited),
                    responses: Arc::clone(&context.responses),
                };
                self.submit(context, move |store| jobs::page(store, &order).map(Done::Paged));
            }
            Step::Finish => {
                let (now_ms, silent) = (context.clock.now_ms(), work.missing.fell_silent());
                self.submit(context, move |store| {
                    store.finish_close(epoch, date, now_ms, silent).map(|()| Done::Finished)
                });
            }
        }
    }

    fn submit(
        &mut self,
        context: &WarmerContext,
        job: impl FnOnce(&dyn Store) -> Outcome + Send + 'static,
    ) {
        let store = Arc::clone(&context.store);
        self.store_in_flight = true;
        // A refusal is told and logged like any other failure.
        let _ = self
            .outcomes
            .submit(&context.close_lane, STORE_DEADLINE_MS, move || Box::new(job(&*store)));
    }

    /// Takes in how a job on the store ended; `None` when it was lost.
    pub fn ended(&mut self, outcome: Option<Box<Outcome>>, now_mono_ms: u64) {
        self.store_in_flight = false;
        let done = match outcome.map(|outcome| *outcome) {
            Some(Ok(done)) => done,
            Some(Err(StoreError::Deposed)) => {
                // The next leader does what is left.
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
            Done::Looked(looked) => self.looked(looked, now_mono_ms),
            Done::Kept => self.kept(),
            Done::Paged(paged) => self.paged(&paged, now_mono_ms),
            Done::Finished => self.finished(),
        }
    }

    /// Takes in what a feed said of closing prices; `None` when the call was lost.
    pub fn take_prices(
        &mut self,
        source: Source,
        answer: Option<Box<Answer>>,
        feed: Option<&FeedState>,
        now_mono_ms: u64,
    ) {
        let answer = answer.map(|answer| *answer);
        self.calls.take(self.work.as_mut(), source, answer, feed, now_mono_ms);
        if let Some(work) = &self.work {
            self.counts.missing = work.missing.len();
            self.counts.suspended = work.missing.silent();
        }
    }

    /// Whether a call of this very tick goes to the feed.
    pub fn asks_now(&self, source: Source, now_mono_ms: u64) -> bool {
        self.calls.asks_now(source, now_mono_ms)
    }

    /// What the last run did.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn failed(&mut self, failure: String, now_mono_ms: u64) {
        self.store_retry_mono_ms = now_mono_ms + RETRY_MS;
        if let Some(work) = &mut self.work {
            work.unkept.append(&mut work.keeping);
        }
        if self.failure.as_ref() != Some(&failure) {
            tracing::warn!(failure, "the close cannot be revalued; trying again");
        }
        self.failure = Some(failure);
    }

    fn looked(&mut self, looked: Looked, now_mono_ms: u64) {
        let Some(work) = &mut self.work else { return };
        if looked.finished {
            return self.settle();
        }
        let (date, missing) = (work.due.date, looked.missing.len());
        tracing::info!(%date, missing, "revaluing portfolios at the close");
        if looked.cut_off {
            tracing::error!("more symbols are held than BHAV_CLOSE_SYMBOLS_MAX");
        }
        work.step = Step::Price(None);
        work.closes = Arc::new(looked.closes);
        work.missing = Missing::of(looked.missing, &looked.silent);
        work.heard_mono_ms = now_mono_ms;
        self.counts.cut_off = looked.cut_off;
        self.counts.priced = work.closes.len();
        self.counts.missing = work.missing.len();
        self.counts.suspended = work.missing.silent();
    }

    fn kept(&mut self) {
        let Some(work) = &mut self.work else { return };
        Arc::make_mut(&mut work.closes).extend(work.keeping.drain(..));
        self.counts.priced = work.closes.len();
    }

    fn paged(&mut self, paged: &Paged, now_mono_ms: u64) {
        self.counts.pages += 1;
        self.counts.points += paged.users as u64;
        self.counts.carried += paged.carried;
        let Some(work) = &mut self.work else { return };
        let (Step::Price(Some(walk)) | Step::Last(walk)) = &mut work.step else { return };
        walk.after = paged.done_to;
        if paged.is_last {
            let Walk { reach, prices, .. } = *walk;
            work.walked = Some(Walked { reach, prices, at_mono_ms: now_mono_ms });
            work.step = if reach == Reach::Last { Step::Finish } else { Step::Price(None) };
        }
    }

    fn finished(&mut self) {
        let Counts { date, priced, missing, suspended, pages, points, carried, .. } = self.counts;
        let date = date.map(tracing::field::display);
        tracing::info!(date, priced, missing, suspended, pages, points, carried, "close revalued");
        self.settle();
    }

    fn settle(&mut self) {
        self.settled = self.work.take().map(|work| work.due.date);
        self.gave_up = false;
    }

    /// Whether there are symbols about which no feed has answered: other work of the evening leaves
    /// the feeds to them. What the feeds had no price of is asked for again in passing.
    pub fn is_pricing(&self) -> bool {
        self.work.as_ref().is_some_and(Work::is_pricing)
    }

    /// The word for health: `paused` while no close is due, `starting` until the store has said how
    /// far it is, `stale` while the feeds do not answer, `failing` while the store does not work or
    /// after a date was given up.
    pub fn state(&self, now_mono_ms: u64) -> &'static str {
        match &self.work {
            _ if self.failure.is_some() => "failing",
            None if self.gave_up => "failing",
            None => "paused",
            Some(work) => match work.step {
                Step::Look => "starting",
                _ if work.is_pricing() && work.is_unheard(now_mono_ms) => "stale",
                _ => "ok",
            },
        }
    }
}

#[cfg(test)]
#[path = "close_tests.rs"]
mod tests;
