//! The evening's revaluation: every stored portfolio at the closing prices of a trading date, once.
//!
//! In steps, each of which may be repeated after a crash: look what the store has of the date's
//! run; ask the feeds for the closing prices that are missing, and keep each batch at once; value
//! the users page by page, where a page's points and the run's progress are one transaction. Memory
//! is bounded by the symbols of a run and one page. State of the scheduler's thread; the store is
//! asked on the lane `close`, the feeds on their own lanes, and only while nobody waits for them.

mod due;
mod jobs;
mod missing;
mod prices;

use std::sync::Arc;

use crossbeam_channel::Sender;
use jiff::SignedDuration;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::feeds::FeedSlot;
use super::{Event, JobReport, Parts};
use crate::base::Symbol;
use crate::store::{AccountId, CloseRun, Store, StoreError};

pub use due::{Due, margin};
pub use jobs::Done;
use jobs::{Closes, Looked, PageOrder, Paged};
use missing::Missing;
use prices::Call;

/// How long missing prices are waited for before the rest is valued without them: an evening's
/// outage passes, a symbol that no feed knows does not.
const PATIENCE_MS: u64 = 3 * 3_600_000;

/// Before prices may be the next session's, waiting ends: the pages need some minutes.
const PAGES_NEED: SignedDuration = SignedDuration::from_mins(10);

/// After a failure of the store or a feed.
const RETRY_MS: u64 = 30_000;

/// Prices that do not come for this long are worth telling.
const UNHEARD_MS: u64 = 5 * 60_000;

/// The store's methods end by deadlines of their own; a job has a bounded number of them.
const STORE_DEADLINE_MS: u64 = 120_000;

/// How a job on the lane `close` ended; `None` when it was lost.
pub type Outcome = Option<Result<Done, StoreError>>;

/// Owner of the revaluation's state.
#[derive(Default)]
pub struct CloseWarmer {
    work: Option<Work>,
    /// The last date that needs nothing more: finished, or given up.
    settled: Option<Date>,
    gave_up: bool,
    broker_a: Call,
    public: Call,
    store_in_flight: bool,
    store_retry_mono_ms: u64,
    /// Why the store did not do what it should; cleared by its next success.
    failure: Option<String>,
    pub counts: Counts,
}

/// What the last run did; for health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub date: Option<Date>,
    /// Closing prices kept.
    pub priced: usize,
    /// Symbols without one.
    pub missing: usize,
    /// More symbols are held than a run takes on.
    pub cut_off: bool,
    /// Pages and users' points written by this process.
    pub pages: u64,
    pub points: u64,
    /// Holdings in them valued at an older price.
    pub carried: u64,
}

/// A run under way.
struct Work {
    due: Due,
    began_mono_ms: u64,
    heard_mono_ms: u64,
    closes: Arc<Closes>,
    missing: Missing,
    /// Received and not stored yet; `keeping` is what the job under way stores.
    unkept: Vec<(Symbol, Decimal)>,
    keeping: Vec<(Symbol, Decimal)>,
    step: Step,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Look,
    Price,
    /// Users after this one.
    Pages(AccountId),
}

impl CloseWarmer {
    /// Takes the next steps that are due. `feeds`: the preferred one first.
    pub fn poll(
        &mut self,
        parts: &Parts,
        feeds: &[&FeedSlot],
        somebody_waits: bool,
        now_mono_ms: u64,
        events: &Sender<Event>,
    ) {
        if !self.follow(parts, now_mono_ms) {
            return;
        }
        for slot in feeds {
            self.ask(parts, slot, feeds, somebody_waits, now_mono_ms, events);
        }
        if !self.store_in_flight && now_mono_ms >= self.store_retry_mono_ms {
            self.use_store(parts, now_mono_ms, events);
        }
    }

    /// Begins and gives up runs; true while there is one to work on.
    fn follow(&mut self, parts: &Parts, now_mono_ms: u64) -> bool {
        let due = Due::at(&parts.calendar, parts.clock.now());
        let due = due.filter(|due| self.settled != Some(due.date));
        let current = self.work.as_ref().map(|work| work.due.date);
        let wanted = due.as_ref().map(|due| due.date);
        if current == wanted {
            return current.is_some();
        }
        // What is under way ends first, so that no outcome meets another date's run.
        if self.store_in_flight || self.broker_a.in_flight || self.public.in_flight {
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
    fn use_store(&mut self, parts: &Parts, now_mono_ms: u64, events: &Sender<Event>) {
        let Some(work) = &mut self.work else { return };
        let date = work.due.date;
        if work.step == Step::Price && work.may_value(parts, now_mono_ms) {
            tracing::info!(%date, missing = work.missing.len(), "valuing at the close");
            work.step = Step::Pages(AccountId(0));
        }
        match work.step {
            Step::Look => {
                let symbols_max = parts.close.symbols_max;
                self.submit(parts, events, move |store| {
                    jobs::look(store, date, symbols_max).map(Done::Looked)
                });
            }
            Step::Price if !work.unkept.is_empty() => {
                work.keeping.append(&mut work.unkept);
                let prices = work.keeping.clone();
                self.submit(parts, events, move |store| {
                    store.keep_closes(date, &prices).map(|()| Done::Kept)
                });
            }
            Step::Price => {}
            Step::Pages(after) => {
                let order = PageOrder {
                    due: work.due.clone(),
                    after,
                    users_max: parts.close.page_users,
                    closes: Arc::clone(&work.closes),
                    now_ms: parts.clock.now_ms(),
                    answers: Arc::clone(&parts.answers),
                };
                self.submit(parts, events, move |store| jobs::page(store, &order).map(Done::Paged));
            }
        }
    }

    fn submit(
        &mut self,
        parts: &Parts,
        events: &Sender<Event>,
        job: impl FnOnce(&dyn Store) -> Result<Done, StoreError> + Send + 'static,
    ) {
        let as_event = |outcome: Outcome| Event::Close(Box::new(outcome));
        let mut report = JobReport { events: events.clone(), outcome: None, as_event };
        let store = Arc::clone(&parts.store);
        // Before it is sent: whatever becomes of it is reported.
        self.store_in_flight = true;
        let _ = parts.close_lane.submit(STORE_DEADLINE_MS, move || {
            report.outcome = Some(job(&*store));
            drop(report);
        });
    }

    /// Takes in how a job on the store ended.
    pub fn ended(&mut self, outcome: Outcome, now_mono_ms: u64) {
        self.store_in_flight = false;
        let done = match outcome {
            Some(Ok(done)) => done,
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
            Done::Paged(paged) => self.paged(&paged),
        }
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
        work.step = match looked.run {
            CloseRun::Finished => return self.settle(),
            // Its prices were complete, or waited for long enough.
            CloseRun::Begun(after) => Step::Pages(after),
            CloseRun::NotBegun => Step::Price,
        };
        let (date, missing) = (work.due.date, looked.missing.len());
        tracing::info!(%date, missing, "revaluing portfolios at the close");
        if looked.cut_off {
            tracing::error!("more symbols are held than BHAV_CLOSE_SYMBOLS_MAX");
        }
        work.closes = Arc::new(looked.closes);
        work.missing = Missing::of(looked.missing);
        work.heard_mono_ms = now_mono_ms;
        self.counts.cut_off = looked.cut_off;
        self.counts.priced = work.closes.len();
        self.counts.missing = work.missing.len();
    }

    fn kept(&mut self) {
        let Some(work) = &mut self.work else { return };
        Arc::make_mut(&mut work.closes).extend(work.keeping.drain(..));
        self.counts.priced = work.closes.len();
    }

    fn paged(&mut self, paged: &Paged) {
        self.counts.pages += 1;
        self.counts.points += paged.users as u64;
        self.counts.carried += paged.carried;
        let Some(work) = &mut self.work else { return };
        work.step = Step::Pages(paged.done_to);
        if paged.is_last {
            let Counts { priced, missing, pages, points, carried, .. } = self.counts;
            let date = work.due.date;
            tracing::info!(%date, priced, missing, pages, points, carried, "close revalued");
            self.settle();
        }
    }

    fn settle(&mut self) {
        self.settled = self.work.take().map(|work| work.due.date);
        self.gave_up = false;
    }

    /// Whether prices are asked for: other work of the evening leaves the feeds to it.
    pub fn is_pricing(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.step == Step::Price && !work.missing.is_empty())
    }

    /// The word for health: `paused` while no close is due, `starting` until the store has said how
    /// far it is, `stale` while prices do not come, `failing` while the store does not work or
    /// after a date was given up.
    pub fn state(&self, now_mono_ms: u64) -> &'static str {
        match &self.work {
            _ if self.failure.is_some() => "failing",
            None if self.gave_up => "failing",
            None => "paused",
            Some(work) => match work.step {
                Step::Look => "starting",
                Step::Price if now_mono_ms.saturating_sub(work.heard_mono_ms) > UNHEARD_MS => {
                    "stale"
                }
                Step::Price | Step::Pages(_) => "ok",
            },
        }
    }
}

impl Work {
    fn of(due: Due, now_mono_ms: u64) -> Self {
        Self {
            due,
            began_mono_ms: now_mono_ms,
            heard_mono_ms: now_mono_ms,
            closes: Arc::default(),
            missing: Missing::default(),
            unkept: Vec::new(),
            keeping: Vec::new(),
            step: Step::Look,
        }
    }

    /// Whether users can be valued: every price is kept, or the rest has been waited for. Without
    /// any price of the date there is nothing to value at, however long it takes.
    fn may_value(&self, parts: &Parts, now_mono_ms: u64) -> bool {
        if !self.unkept.is_empty() || !self.keeping.is_empty() {
            return false;
        }
        let waited = now_mono_ms.saturating_sub(self.began_mono_ms) >= PATIENCE_MS;
        let late = self.due.until.duration_since(parts.clock.now()) <= PAGES_NEED;
        self.missing.is_empty() || ((waited || late) && !self.closes.is_empty())
    }
}

#[cfg(test)]
#[path = "close_tests.rs"]
mod tests;
