//! Polls the feeds for closing prices: decides when and for which symbols, and judges the answers.
//! Runs on the scheduler's thread, except for the calls, which are jobs of the feeds' lanes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::SignedDuration;
use jiff::civil::Date;

use crate::base::{BySource, ClosingPrice, Holding, Quote, Source, Symbol};
use crate::brokers::{Batch, BrokerError, BrokerErrorKind, Readiness};
use crate::cache::Responses;
use crate::portfolio::{Brokers, DayPoint, Overflow, PointSource, Repriced, point, reprice};
use crate::rt::lanes::Outcomes;
use crate::store::Epoch;
use crate::store::{AccountId, Portfolio, PriceOfClose, Store, StoreError, Valued};
use crate::warmers::close::{Due, Missing};
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::feed_state::Answer;
use crate::warmers::quotes::feed_state::FeedState;
use crate::warmers::quotes::feeds::Feeds;

/// Pause after a failed call.
pub(crate) const RETRY_MS: u64 = 30_000;

/// Enough to reduce the largest batch to one symbol.
const HALVINGS_MAX: u32 = 9;

/// Requests go first. If some wait all evening, one call is still made in this time, or there would
/// be no close.
pub(crate) const STARVED_MS: u64 = 60_000;

/// Minimum interval between two calls made here, in minimum intervals of the feed: every other call
/// is left to polls.
const INTERVALS_PER_CALL: u64 = 2;

/// The calls to one feed.
#[derive(Default)]
pub(crate) struct Call {
    pub(crate) in_flight: bool,
    /// Monotonic times: of the last call, and before which the next is not made.
    pub(crate) asked_mono_ms: Option<u64>,
    pub(crate) rests_until_mono_ms: u64,
    /// The last call failed.
    pub(crate) failed: bool,
    /// The symbols it asks for, and how often the batch was halved because the feed refused the
    /// request. A single symbol may be the cause.
    pub(crate) asked: Vec<Symbol>,
    pub(crate) halvings: u32,
}

impl Call {
    /// Whether the next call may go out, by its pace and the waiting requests.
    pub(crate) fn is_in_turn(
        &self,
        began_mono_ms: u64,
        requests_wait: bool,
        now_mono_ms: u64,
    ) -> bool {
        let idle_since_mono_ms = self.asked_mono_ms.unwrap_or(0).max(began_mono_ms);
        let starves = now_mono_ms.saturating_sub(idle_since_mono_ms) >= STARVED_MS;
        !self.in_flight && now_mono_ms >= self.rests_until_mono_ms && (!requests_wait || starves)
    }
}

/// The scheduler's state when it runs the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub requests_wait: bool,
    pub now_mono_ms: u64,
}

/// The calls to all feeds.
pub(crate) struct PriceCalls {
    pub(crate) calls: BySource<Call>,
    outcomes: BySource<Outcomes<Box<Answer>>>,
}

impl PriceCalls {
    pub(crate) fn new(outcomes: BySource<Outcomes<Box<Answer>>>) -> Self {
        Self { calls: BySource::default(), outcomes }
    }

    /// Whether some call is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.calls.0.iter().any(|call| call.in_flight)
    }

    /// Asks one feed for some of the prices that `work` lacks, if the feed may be asked now.
    pub(crate) fn ask(
        &mut self,
        work: &Work,
        context: &WarmerContext,
        feed: &FeedState,
        feeds: &Feeds,
        turn: Turn,
    ) {
        let Turn { requests_wait, now_mono_ms } = turn;
        let source = feed.source();
        let call = &self.calls[source];
        if !work.is_asking()
            || !call.is_in_turn(work.began_mono_ms, requests_wait, now_mono_ms)
            || feed.is_asking()
            || !work.due.has_settled(source, context.clock.now())
            || feed.readiness() != Readiness::Ready
        {
            return;
        }
        let broker_a = feeds.broker_a();
        let broker_a_usable = !self.calls[Source::BrokerA].failed
            && broker_a.failure().is_none()
            && broker_a.askable_within(PATIENCE_MS);
        // Every call carries an index, which shows whether the feed has closed. If a call carries
        // only one symbol, the polls show it.
        let batch_max = feed.feed().batch_max();
        let room = (batch_max.saturating_sub(1) >> call.halvings).max(1);
        let mut symbols = work.missing.batch(source, broker_a_usable, room, now_mono_ms);
        if symbols.is_empty() {
            return;
        }
        let rest_ms = context.interval_ms[source] * INTERVALS_PER_CALL;
        let call = &mut self.calls[source];
        call.in_flight = true;
        call.asked_mono_ms = Some(now_mono_ms);
        call.rests_until_mono_ms = now_mono_ms + rest_ms;
        call.asked.clone_from(&symbols);
        if symbols.len() < batch_max {
            symbols.extend(feed.witness().cloned());
        }
        let (outcomes, deadline_ms) = (&self.outcomes[source], context.call_deadline_ms());
        let market_feed = Arc::clone(feed.feed());
        // A refused job is reported and logged like any other failure.
        let _ = outcomes
            .submit(feed.lane(), deadline_ms, move || Box::new(market_feed.quotes(&symbols)));
    }

    /// Takes the closing prices that a feed answered; `None` if the call was lost.
    pub(crate) fn take(
        &mut self,
        work: Option<&mut Work>,
        source: Source,
        answer: Option<Answer>,
        feed: Option<&FeedState>,
        now_mono_ms: u64,
    ) {
        let call = &mut self.calls[source];
        call.in_flight = false;
        match answer {
            Some(Ok(batch)) => {
                call.failed = false;
                call.halvings = call.halvings.saturating_sub(1);
                let Some(work) = work else { return };
                let index = feed.and_then(FeedState::witness);
                let witness = batch.quotes.iter().find(|quote| Some(&quote.symbol) == index);
                let witness = witness.filter(|quote| quote.timed);
                let witness = witness.or_else(|| Some(&feed?.heard_witness()?.quote));
                work.take_prices(source, &batch, witness, now_mono_ms);
            }
            // Rate limit, circuit or token: the call is repeated when the feed is ready.
            Some(Err(BrokerError { kind: BrokerErrorKind::NotReady(_), .. })) => {}
            Some(Err(BrokerError { kind: BrokerErrorKind::Refused, .. }))
                if call.asked.len() > 1 =>
            {
                call.failed = true;
                call.halvings = (call.halvings + 1).min(HALVINGS_MAX);
            }
            Some(Err(error)) if error.kind == BrokerErrorKind::Refused => {
                let symbols = std::mem::take(&mut call.asked);
                tracing::warn!(source = source.as_str(), %error, ?symbols, "no closing prices");
                let Some(work) = work else { return };
                for symbol in &symbols {
                    work.missing.answered(source, symbol, now_mono_ms);
                }
            }
            failed => {
                call.failed = true;
                call.rests_until_mono_ms = now_mono_ms + RETRY_MS;
                let failure = failed.and_then(Result::err).map(|error| error.to_string());
                let failure = failure.unwrap_or_else(|| "the call was lost".to_owned());
                tracing::warn!(source = source.as_str(), failure, "no closing prices");
            }
        }
    }

    /// Whether a call of this tick goes to the feed.
    pub(crate) fn asks_now(&self, source: Source, now_mono_ms: u64) -> bool {
        let call = &self.calls[source];
        call.in_flight && call.asked_mono_ms == Some(now_mono_ms)
    }
}

// ---- Jobs
//
// Store jobs of the revaluation, on the lane `close`. They block.
//
// One job reads, values and writes a page of users. Nothing of it outlives the job.

/// Symbols read from the store in one query.
const SYMBOLS_PAGE: usize = 1_000;

/// Closing prices of one date.
pub(crate) type Closes = HashMap<Symbol, ClosingPrice>;

pub(crate) type Outcome = Result<Done, StoreError>;

pub(crate) enum Done {
    Looked(Looked),
    Kept,
    Paged(Paged),
    Finished,
}

/// The store's progress of a date's run.
#[derive(Default)]
pub(crate) struct Looked {
    pub finished: bool,
    pub closes: Closes,
    /// Held symbols without a stored closing price.
    pub missing: Vec<Symbol>,
    /// Symbols without a closing price on the previous date either, held or not.
    pub silent: HashSet<Symbol>,
    /// More symbols are held than the run takes on.
    pub cut_off: bool,
}

/// The portfolios that a walk over the users values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Portfolios whose expected prices have all arrived.
    Complete,
    /// All portfolios. A user who lacks a price that may still come is valued again when it
    /// arrives.
    Everybody,
    /// All portfolios, for the last time.
    Last,
}

/// Result of a written page.
#[derive(Debug)]
pub(crate) struct Paged {
    pub done_to: AccountId,
    /// Users who have their final point now, unless their portfolio changed meanwhile.
    pub users: usize,
    /// Their holdings without a closing price.
    pub carried: u64,
    /// No users follow this page.
    pub is_last: bool,
}

/// Input of a page job.
pub(crate) struct PageOrder {
    /// Epoch of the leader that writes the page.
    pub epoch: Epoch,
    pub due: Due,
    pub after: AccountId,
    pub users_max: usize,
    pub reach: Reach,
    pub closes: Arc<Closes>,
    /// Symbols whose prices may still come.
    pub awaited: Arc<HashSet<Symbol>>,
    /// Cached responses, which a new point invalidates.
    pub responses: Arc<Responses>,
}

/// Reads the progress of the run of `date`. Takes at most `symbols_max` symbols.
pub(crate) fn look(store: &Store, date: Date, symbols_max: usize) -> Result<Looked, StoreError> {
    if store.is_closed(date)? {
        return Ok(Looked { finished: true, ..Looked::default() });
    }
    let closes: Closes = store.closes(date)?.into_iter().collect();
    let (held, cut_off) = paged(symbols_max, |after, limit| store.held_symbols(after, limit))?;
    let (silent, _) = paged(symbols_max, |after, limit| store.silent_symbols(after, limit))?;
    let missing = held.into_iter().filter(|held| !closes.contains_key(held)).collect();
    let silent = silent.into_iter().collect();
    Ok(Looked { finished: false, closes, missing, silent, cut_off })
}

/// Reads at most `most` symbols page by page. True: there are more.
fn paged(
    most: usize,
    read: impl Fn(Option<&Symbol>, usize) -> Result<Vec<Symbol>, StoreError>,
) -> Result<(Vec<Symbol>, bool), StoreError> {
    let mut found: Vec<Symbol> = Vec::new();
    loop {
        let page = read(found.last(), SYMBOLS_PAGE)?;
        let is_last = page.len() < SYMBOLS_PAGE;
        let room = most - found.len();
        let cut_off = page.len() > room;
        found.extend(page.into_iter().take(room));
        if is_last || cut_off {
            return Ok((found, cut_off));
        }
    }
}

/// Values the next users and writes their rows and points.
pub(crate) fn page(store: &Store, order: &PageOrder) -> Result<Paged, StoreError> {
    let page = store.portfolios_to_close(order.due.date, order.after, order.users_max)?;
    let done_to = page.portfolios.last().map_or(order.after, |(id, _)| *id);
    let points: Vec<Valued> =
        page.portfolios.into_iter().filter_map(|(id, held)| valued(id, held, order)).collect();
    let written: Vec<AccountId> = points.iter().map(|valued| valued.id).collect();
    let complete = points.iter().filter(|valued| valued.is_complete);
    let users = complete.clone().count();
    let carried = complete.map(|valued| u64::from(valued.point.carried)).sum();
    if !points.is_empty() {
        store.keep_points(order.epoch, order.due.date, points)?;
    }
    written.iter().for_each(|user| order.responses.invalidate(user.0));
    Ok(Paged { done_to, users, carried, is_last: !page.more })
}

/// `None` for users who were never synced, or are not in reach.
fn valued(id: AccountId, portfolio: Portfolio, order: &PageOrder) -> Option<Valued> {
    let synced_ms = portfolio.syncs.iter().map(|sync| sync.synced_ms).max()?;
    let brokers = portfolio.syncs.iter().map(|sync| sync.broker).collect();
    let holdings = portfolio.holdings;
    let awaits = |row: &Holding| row.symbol().is_some_and(|held| order.awaited.contains(&held));
    let is_complete = !holdings.iter().any(awaits);
    if !is_complete && order.reach == Reach::Complete {
        return None;
    }
    let (point, repriced) = at_close(holdings, brokers, order)
        // Syncs refuse such amounts. Skip the user: one must not stop the run.
        .inspect_err(|error| tracing::warn!(user = id.0, %error, "user not valued at the close"))
        .ok()?;
    let priced = repriced.holdings.iter().filter(|row| row.last_price.is_some()).count();
    Some(Valued {
        id,
        synced_ms,
        point,
        repriced,
        next_session: order.due.next_session,
        priced: u32::try_from(priced).unwrap_or(u32::MAX),
        is_complete: is_complete || order.reach == Reach::Last,
    })
}

fn at_close(
    mut holdings: Vec<Holding>,
    brokers: Brokers,
    order: &PageOrder,
) -> Result<(DayPoint, Repriced), Overflow> {
    let close_of = |symbol: &Symbol| order.closes.get(symbol).copied();
    let changed = reprice(&mut holdings, order.due.date, close_of);
    let has_close = |row: &Holding| row.symbol().is_some_and(|held| close_of(&held).is_some());
    let day = order.due.market_day();
    let point = point(&day, PointSource::Close, brokers, &holdings, has_close)?;
    Ok((point, Repriced { holdings, changed }))
}

// ---- Work
//
// A run of the revaluation: its progress, and which users are valued next. Belongs to the
// scheduler's thread. Decides only, makes no calls.

/// Missing prices are asked for this long. An evening's outage ends by then; a symbol that no feed
/// knows stays unknown.
pub(crate) const PATIENCE_MS: u64 = 3 * 3_600_000;

/// Interval between two walks over incomplete users. Prices arrive in batches, and each walk reads
/// the portfolios of all users who lack one.
pub(crate) const WALK_REST_MS: u64 = 60_000;

/// Waiting for prices ends this long before they may be the next session's, because the pages need
/// some minutes.
pub(crate) const PAGES_NEED: SignedDuration = SignedDuration::from_mins(10);

/// A run without any new price for this long is reported as stale.
pub(crate) const UNHEARD_MS: u64 = 5 * 60_000;

/// State of a run.
pub(crate) struct Work {
    pub due: Due,
    pub(crate) began_mono_ms: u64,
    pub(crate) heard_mono_ms: u64,
    pub closes: Arc<Closes>,
    pub(crate) missing: Missing,
    /// Prices not stored yet; `keeping` are those in the job under way.
    pub(crate) unkept: Vec<PriceOfClose>,
    pub(crate) keeping: Vec<PriceOfClose>,
    pub(crate) step: Step,
    /// The last finished walk.
    pub(crate) walked: Option<Walked>,
}

pub(crate) enum Step {
    Look,
    /// Prices are asked for, and meanwhile users are walked over.
    Price(Option<Walk>),
    /// No more prices are asked for.
    Last(Walk),
    Finish,
}

/// A walk over incomplete users.
pub(crate) struct Walk {
    pub reach: Reach,
    /// The next page begins after this user.
    pub after: AccountId,
    pub awaited: Arc<HashSet<Symbol>>,
    /// Number of closing prices stored when the walk began.
    pub(crate) prices: usize,
}

pub(crate) struct Walked {
    pub reach: Reach,
    pub(crate) prices: usize,
    pub(crate) at_mono_ms: u64,
}

impl Work {
    pub(crate) fn of(due: Due, now_mono_ms: u64) -> Self {
        Self {
            due,
            began_mono_ms: now_mono_ms,
            heard_mono_ms: now_mono_ms,
            closes: Arc::default(),
            missing: Missing::default(),
            unkept: Vec::new(),
            keeping: Vec::new(),
            step: Step::Look,
            walked: None,
        }
    }

    /// Whether prices are still asked for.
    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.step, Step::Price(_))
    }

    pub(crate) fn is_unheard(&self, now_mono_ms: u64) -> bool {
        now_mono_ms.saturating_sub(self.heard_mono_ms) > UNHEARD_MS
    }

    /// Takes the closing prices in a feed's answer. `witness`: the feed's quote of an index.
    pub(crate) fn take_prices(
        &mut self,
        source: Source,
        batch: &Batch,
        witness: Option<&Quote>,
        now_mono_ms: u64,
    ) {
        for quote in &batch.quotes {
            self.missing.answered(source, &quote.symbol, now_mono_ms);
            let Some((symbol, close)) = self.due.closing_price(quote, witness) else { continue };
            if self.missing.found(&symbol) {
                self.unkept.push((symbol, close));
                self.heard_mono_ms = now_mono_ms;
            }
        }
        for symbol in batch.unknown.iter().chain(&batch.implausible) {
            self.missing.answered(source, symbol, now_mono_ms);
        }
    }

    /// Whether no feed has answered about some symbol yet.
    pub(crate) fn is_pricing(&self) -> bool {
        self.is_asking() && !self.missing.all_answered()
    }

    /// Begins the next walk if one is due. Prices that have arrived are stored first.
    pub(crate) fn step_on(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        if !matches!(self.step, Step::Price(None)) || !self.unkept.is_empty() {
            return;
        }
        let late = self.due.until.duration_since(context.clock.now()) <= PAGES_NEED;
        let Some(reach) = self.next_reach(late, now_mono_ms) else { return };
        let (date, missing, priced) = (self.due.date, self.missing.len(), self.closes.len());
        tracing::info!(%date, ?reach, priced, missing, "valuing at the close");
        let awaited = Arc::new(self.missing.awaited());
        let walk = Walk { reach, after: AccountId(0), awaited, prices: self.closes.len() };
        self.step = match reach {
            Reach::Last => Step::Last(walk),
            Reach::Complete | Reach::Everybody => Step::Price(Some(walk)),
        };
    }

    /// The reach of the next walk; `None` if none is due. Without any price of the date no walk
    /// begins, however long that takes, unless no price is waited for.
    pub(crate) fn next_reach(&self, late: bool, now_mono_ms: u64) -> Option<Reach> {
        if self.missing.is_over() {
            return Some(Reach::Last);
        }
        if self.closes.is_empty() {
            return None;
        }
        let since = |mono_ms: u64| now_mono_ms.saturating_sub(mono_ms);
        if late || since(self.began_mono_ms) >= PATIENCE_MS {
            return Some(Reach::Last);
        }
        let answered = self.missing.all_answered();
        let reach = if answered { Reach::Everybody } else { Reach::Complete };
        let is_due = match &self.walked {
            None => answered || since(self.began_mono_ms) >= WALK_REST_MS,
            Some(last) => {
                let has_news = self.closes.len() > last.prices;
                reach > last.reach || (has_news && since(last.at_mono_ms) >= WALK_REST_MS)
            }
        };
        is_due.then_some(reach)
    }
}
