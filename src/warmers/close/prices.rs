//! Polls the feeds for closing prices: decides when and for which symbols, and judges the answers.
//! Runs on the scheduler's thread, except for the calls, which are jobs of the feeds' lanes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use crate::base::previous_close::{PreviousClose, Reason};
use crate::base::{BySource, ClosingPrice, Holding, MarketDay, Quote, Source, Symbol, clock};
use crate::brokers::{Batch, BrokerError, BrokerErrorKind, Readiness};
use crate::cache::Responses;
use crate::market::calendar::FinalClose;
use crate::market::{Derivatives, LastClose, MarketCalendar, Trading};
use crate::portfolio::{Brokers, DayPoint, PointSource, Repriced, point, reprice, unvalued};
use crate::rt::lanes::Outcomes;
use crate::store::{AccountId, Epoch, Portfolio, PriceOfClose, Store, StoreError, Valued};
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::feed_state::{Answer, CLOSE_MARGIN, FeedState};
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
            || feed.feed.readiness() != Readiness::Ready
        {
            return;
        }
        let broker_a = &feeds.broker_a;
        let broker_a_usable = !self.calls[Source::BrokerA].failed
            && broker_a.failure.is_none()
            && broker_a.askable_within(PATIENCE_MS);
        // Every call carries an index, which shows whether the feed has closed. If a call carries
        // only one symbol, the polls show it.
        let batch_max = feed.feed.batch_max();
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
        let market_feed = Arc::clone(&feed.feed);
        // A refused job is reported and logged like any other failure.
        let _ = outcomes
            .submit(&feed.lane, deadline_ms, move || Box::new(market_feed.quotes(&symbols)));
    }

    /// Takes the closing prices that a feed answered; `None` if the call was lost.
    pub(crate) fn take(
        &mut self,
        work: Option<&mut Work>,
        (source, answer): (Source, Option<Answer>),
        feed: Option<&FeedState>,
        judges: &Judges<'_>,
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
                let said = batch.quotes.iter().find(|quote| Some(&quote.symbol) == index);
                let heard = feed.and_then(FeedState::heard_witness).map(|heard| &heard.quote);
                let witness = match said {
                    Some(said) if said.timed => Some(said),
                    // Without a time only the price shows whether the answer is of the close.
                    Some(said) => heard.filter(|heard| heard.last_price == said.last_price),
                    None => heard,
                };
                work.take_prices(source, &batch, witness, judges, now_mono_ms);
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
    /// Nothing is left to do.
    pub finished: bool,
    /// The close was finished before, and some portfolio came since.
    pub is_late: bool,
    pub closes: Closes,
    /// Stored closing prices of the trading date before.
    pub closes_before: Closes,
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
    /// Symbols whose prices are waited for no more, and whether the run takes on no other symbols
    /// because there are too many.
    pub given_up: Arc<HashSet<Symbol>>,
    pub cut_off: bool,
    /// Whether the close was finished before and this is for what came since.
    pub is_late: bool,
    /// Cached responses, which a new point invalidates.
    pub responses: Arc<Responses>,
}

/// Reads the progress of the run of `date`. Takes at most `symbols_max` symbols.
pub(crate) fn look(
    store: &Store,
    date: Date,
    before: Option<Date>,
    symbols_max: usize,
) -> Result<Looked, StoreError> {
    let is_late = store.is_closed(date)?;
    if is_late && store.portfolios_to_close(date, AccountId(0), 1)?.portfolios.is_empty() {
        return Ok(Looked { finished: true, ..Looked::default() });
    }
    let closes: Closes = store.closes(date)?.into_iter().collect();
    let before = before.map(|before| store.closes(before)).transpose()?;
    let closes_before = before.into_iter().flatten().collect();
    let (held, cut_off) = paged(symbols_max, |after, limit| store.held_symbols(after, limit))?;
    let (silent, _) = paged(symbols_max, |after, limit| store.silent_symbols(after, limit))?;
    let missing = held.into_iter().filter(|held| !closes.contains_key(held)).collect();
    let silent = silent.into_iter().collect();
    Ok(Looked { finished: false, is_late, closes, closes_before, missing, silent, cut_off })
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
    // A symbol that the run does not know came with a sync since it began: a late run asks for it.
    let awaits = |row: &Holding| {
        let is_settled = |held: &Symbol| {
            order.closes.contains_key(held) || order.given_up.contains(held) || order.cut_off
        };
        row.symbol().is_some_and(|held| !is_settled(&held))
    };
    let is_complete = !holdings.iter().any(awaits);
    if !is_complete && order.reach == Reach::Complete {
        return None;
    }
    let (point, repriced) = at_close(id, holdings, brokers, order);
    let priced = repriced.holdings.iter().filter(|row| row.last_price.is_some()).count();
    let synced_at = Timestamp::from_millisecond(synced_ms).ok();
    let synced_on = synced_at.map(|at| clock::zoned(at).date());
    Some(Valued {
        id,
        synced_ms,
        point,
        writes_point: !order.is_late || synced_on.is_none_or(|on| on <= order.due.date),
        repriced,
        next_session: order.due.next_session,
        priced: u32::try_from(priced).unwrap_or(u32::MAX),
        is_complete,
    })
}

fn at_close(
    id: AccountId,
    mut holdings: Vec<Holding>,
    brokers: Brokers,
    order: &PageOrder,
) -> (DayPoint, Repriced) {
    let close_of = |symbol: &Symbol| order.closes.get(symbol).copied();
    let changed = reprice(&mut holdings, order.due.date, close_of);
    let has_close = |row: &Holding| row.symbol().is_some_and(|held| close_of(&held).is_some());
    let day = order.due.market_day();
    let point = point(&day, PointSource::Close, brokers, &holdings, has_close);
    let point = point.unwrap_or_else(|overflow| {
        // Syncs refuse such amounts. One damaged row must not stop the run.
        tracing::warn!(user = id.0, %overflow, "user not valued at the close");
        unvalued(day.today, brokers, holdings.iter())
    });
    (point, Repriced { holdings, changed })
}

// ---- Work
//
// A run of the revaluation: its progress, and which users are valued next. Belongs to the
// scheduler's thread. Decides only, makes no calls.

/// Missing prices are asked for this long. An evening's outage ends by then; a symbol that no feed
/// knows stays unknown.
pub(crate) const PATIENCE_MS: u64 = 3 * 3_600_000;

/// Interval between two looks for portfolios that came since the last. With a call of a feed and a
/// page they are at the close within a minute.
pub(crate) const LOOK_EACH_MS: u64 = 15_000;

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
    pub(crate) looked_mono_ms: u64,
    pub closes: Arc<Closes>,
    pub(crate) missing: Missing,
    /// Prices not stored yet; `keeping` are those in the job under way.
    pub(crate) unkept: Vec<PriceOfClose>,
    pub(crate) keeping: Vec<PriceOfClose>,
    pub(crate) step: Step,
    /// The last finished walk.
    pub(crate) walked: Option<Walked>,
    /// The date was settled before: only what came since is looked for.
    pub(crate) again: bool,
    /// As in [`Looked`].
    pub(crate) is_late: bool,
    pub(crate) cut_off: bool,
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
    /// As in [`PageOrder`].
    pub given_up: Arc<HashSet<Symbol>>,
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
            looked_mono_ms: now_mono_ms,
            closes: Arc::default(),
            missing: Missing::default(),
            unkept: Vec::new(),
            keeping: Vec::new(),
            step: Step::Look,
            walked: None,
            again: false,
            is_late: false,
            cut_off: false,
        }
    }

    /// Whether prices are still asked for.
    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.step, Step::Price(_))
    }

    /// Whether the store may have portfolios that came since the last look.
    pub(crate) fn is_look_due(&self, now_mono_ms: u64) -> bool {
        now_mono_ms.saturating_sub(self.looked_mono_ms) >= LOOK_EACH_MS
    }

    /// Takes symbols without a stored price, of which some may be known or have one by now.
    pub(crate) fn add_missing(&mut self, symbols: Vec<Symbol>, silent: &HashSet<Symbol>) {
        let found: HashSet<&Symbol> =
            self.unkept.iter().chain(&self.keeping).map(|(symbol, _)| symbol).collect();
        let closes = &self.closes;
        let lacks = |symbol: &Symbol| !closes.contains_key(symbol) && !found.contains(symbol);
        self.missing.add(symbols.into_iter().filter(lacks), silent);
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
        judges: &Judges<'_>,
        now_mono_ms: u64,
    ) {
        let stands = (judges.index_stands)(&batch.quotes);
        for quote in &batch.quotes {
            self.missing.answered(source, &quote.symbol, now_mono_ms);
            let judge = |quote: &mut Quote| (judges.judge)(quote, stands);
            let derivatives = (judges.derivatives_of)(&quote.symbol);
            let price = self.due.closing_price(quote, witness, derivatives, judge);
            let Some((symbol, close)) = price else { continue };
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
        let given_up = Arc::new(self.missing.given_up(reach));
        let walk = Walk { reach, after: AccountId(0), given_up, prices: self.closes.len() };
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

// ---- Due
//
// Decides which trading date's close is due to be revalued, and which prices are its closing
// prices. Pure.
//
// A price is a date's closing price if its own time lies on that date, not before the auction's
// earliest end, or the last minute of trading for a share without derivatives, which has no
// auction. A share that did not trade until the end has an older time. Its last trade is its close,
// as at the exchange, but counts only if the same feed's index has reached its close: a feed that
// stopped in the afternoon proves nothing. Of a share with derivatives that traded in the minutes
// before the auction the last trade is no close: without an auction's price it is their average. A
// price of an earlier date is never this date's close. From the first phase of the next trading
// date on nothing is valued any more, because prices and holdings may be that date's.

/// What closing prices are judged by.
pub(crate) struct Judges<'a> {
    /// Whether the index among quotes of one source did not move in its session.
    pub index_stands: &'a dyn Fn(&[Quote]) -> Option<bool>,
    /// Decides what the quote's previous close is, given that.
    pub judge: &'a dyn Fn(&mut Quote, Option<bool>) -> PreviousClose,
    /// Whether a share has derivatives. The closing auction then makes its close, and the last
    /// price after it is the official close; that of another share may be its last trade.
    pub derivatives_of: &'a dyn Fn(&Symbol) -> Derivatives,
}

/// A close that can be revalued now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub date: Date,
    /// Time of the official close.
    pub close: Timestamp,
    /// The earliest time that its prices can have.
    prices_from: Timestamp,
    /// The close of shares without an auction.
    without_auction: FinalClose,
    /// From this time on a trade of a share with derivatives is no close.
    reference_from: Option<Timestamp>,
    /// The trading date before; `None` if the calendar does not know it.
    pub session_before: Option<Date>,
    /// From this time on prices may be the next session's.
    pub until: Timestamp,
    /// The date of that session, or the maximum date if the calendar does not know it.
    pub next_session: Date,
}

impl Due {
    /// The latest trading date, once its close has settled and until the next one begins, or until
    /// midnight if the calendar does not know the next one.
    pub(crate) fn at(calendar: &MarketCalendar, now: Timestamp) -> Option<Self> {
        let LastClose { date, at, until } = calendar.last_close(now)?;
        let prices_from = calendar.closing_prices_from(date)?;
        let without_auction = calendar.close_of(Trading::WithoutAuction, date)?;
        let next_session = calendar.next_trading_date(date).unwrap_or(Date::MAX);
        let has_settled = now.duration_since(at)
            >= CLOSE_MARGIN[Source::BrokerA].min(CLOSE_MARGIN[Source::Public]);
        let session_before = calendar.previous_trading_date(date);
        has_settled.then_some(Self {
            date,
            close: at,
            prices_from,
            without_auction,
            reference_from: calendar.reference_from(date),
            session_before,
            until,
            next_session,
        })
    }

    /// The market day of portfolios that are valued at this close.
    pub(crate) fn market_day(&self) -> MarketDay {
        let Self { date, close, .. } = *self;
        MarketDay {
            today: date,
            session: date,
            day: Some(date),
            last_close: Some(close),
            close_before_open: None,
            session_before: self.session_before,
            stood_at: None,
        }
    }

    /// Whether `source` can be expected to send the official close.
    pub(crate) fn has_settled(&self, source: Source, now: Timestamp) -> bool {
        now < self.until && now.duration_since(self.close) >= CLOSE_MARGIN[source]
    }

    /// The closing price in `quote`, if it is one. `witness`: the same feed's quote of an index,
    /// which alone shows whether a quote without its own time is a close. `derivatives`: whether
    /// the share has any. `judge` decides what its previous close is.
    pub(crate) fn closing_price(
        &self,
        quote: &Quote,
        witness: Option<&Quote>,
        derivatives: Derivatives,
        judge: impl FnOnce(&mut Quote) -> PreviousClose,
    ) -> Option<PriceOfClose> {
        let own = match derivatives.trading() {
            Trading::WithAuction => FinalClose { at: self.close, prices_from: self.prices_from },
            Trading::WithoutAuction => self.without_auction,
        };
        let is_after_trading = self.is_of_date(quote) && quote.as_of >= own.prices_from;
        let averaged_from = self.reference_from.filter(|_| derivatives == Derivatives::Some);
        let is_averaged = quote.timed && averaged_from.is_some_and(|from| quote.as_of >= from);
        let is_last_trade = || {
            let index_closed = witness.is_some_and(|index| self.is_after_trading(index));
            self.is_of_date(quote) && index_closed && !is_averaged
        };
        let believed = self.has_settled(quote.source, quote.asked)
            && (quote.timed && is_after_trading || is_last_trade());
        believed.then(|| {
            let judged = judge(&mut quote.clone());
            let close = ClosingPrice {
                price: quote.last_price,
                previous_close: judged.price,
                // Some feeds stamp it with the time of their answer.
                as_of_ms: quote.as_of.min(own.at).as_millisecond(),
                official: derivatives == Derivatives::Some
                    && quote.source == Source::BrokerA
                    && is_after_trading,
                base_ratio: match judged.reason {
                    Reason::Base(ratio) => Some(ratio),
                    _ => None,
                },
            };
            (quote.symbol.clone(), close)
        })
    }

    fn is_of_date(&self, quote: &Quote) -> bool {
        clock::zoned(quote.as_of).date() == self.date
    }

    fn is_after_trading(&self, quote: &Quote) -> bool {
        self.is_of_date(quote) && quote.as_of >= self.prices_from
    }
}

// ---- Missing
//
// The symbols that still lack a closing price, and the order in which a feed is asked for them.
// Pure.

/// A symbol that a feed had no price for is asked for again after this: a listing may be late, a
/// share halted.
pub(crate) const ASK_AGAIN_MS: u64 = 10 * 60_000;

/// Bounded by the symbols that one day's run takes on.
#[derive(Debug, Default)]
pub(crate) struct Missing(BTreeMap<Symbol, Answered>);

/// Monotonic times of each feed's last answer without a closing price.
#[derive(Debug, Default)]
struct Answered {
    at_mono_ms: BySource<Option<u64>>,
    /// It had no closing price on the previous date either.
    silent: bool,
}

impl Answered {
    fn by_any(&self) -> bool {
        self.at_mono_ms.0.iter().any(Option::is_some)
    }
}

impl Missing {
    /// Adds symbols that were not asked for yet. The `silent` ones had no closing price on the
    /// previous date, or before on this one: suspended, delisted, or unknown to the feeds.
    pub(crate) fn add(
        &mut self,
        symbols: impl IntoIterator<Item = Symbol>,
        silent: &HashSet<Symbol>,
    ) {
        for symbol in symbols {
            let silent = silent.contains(&symbol);
            self.0.entry(symbol).or_insert(Answered { silent, ..Answered::default() });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Number of symbols without a closing price on the previous date either.
    pub(crate) fn silent(&self) -> usize {
        self.0.values().filter(|answered| answered.silent).count()
    }

    /// Whether some feed has answered about each symbol. Missing prices are still asked for again,
    /// but nothing waits for them.
    pub(crate) fn all_answered(&self) -> bool {
        self.0.values().all(Answered::by_any)
    }

    /// Whether no symbol is worth waiting for: each was silent on the previous date, and a feed has
    /// answered that it still is.
    pub(crate) fn is_over(&self) -> bool {
        self.0.values().all(|answered| answered.silent && answered.by_any())
    }

    /// Symbols whose closing price is not waited for: in the last walk no more, in those before for
    /// the silent ones.
    pub(crate) fn given_up(&self, reach: Reach) -> HashSet<Symbol> {
        let is_last = reach == Reach::Last;
        let given_up = self.0.iter().filter(|(_, answered)| is_last || answered.silent);
        given_up.map(|(symbol, _)| symbol.clone()).collect()
    }

    /// Symbols without a closing price from any feed: a feed answered so today, or did on the
    /// previous date and has not answered since.
    pub(crate) fn fell_silent(&self) -> Vec<Symbol> {
        let fell = self.0.iter().filter(|(_, answered)| answered.silent || answered.by_any());
        fell.map(|(symbol, _)| symbol.clone()).collect()
    }

    /// At most `max` symbols for a call to `source`. While broker A can be asked, the public
    /// provider gets only symbols that broker A had no price for.
    pub(crate) fn batch(
        &self,
        source: Source,
        broker_a_usable: bool,
        max: usize,
        now_mono_ms: u64,
    ) -> Vec<Symbol> {
        let asks = |answered: &Answered| {
            let at_mono_ms = &answered.at_mono_ms;
            let rested = at_mono_ms[source]
                .is_none_or(|answered| now_mono_ms.saturating_sub(answered) >= ASK_AGAIN_MS);
            let left = source == Source::BrokerA || !broker_a_usable;
            rested && (left || at_mono_ms[Source::BrokerA].is_some())
        };
        let due = self.0.iter().filter(|(_, answered)| asks(answered));
        due.take(max).map(|(symbol, _)| symbol.clone()).collect()
    }

    /// Notes that a feed has answered about `symbol`. A symbol with a price is removed by
    /// [`found`](Self::found).
    pub(crate) fn answered(&mut self, source: Source, symbol: &Symbol, now_mono_ms: u64) {
        if let Some(answered) = self.0.get_mut(symbol) {
            answered.at_mono_ms[source] = Some(now_mono_ms);
        }
    }

    /// Removes a symbol whose price was found. True if it was missing until now.
    pub(crate) fn found(&mut self, symbol: &Symbol) -> bool {
        self.0.remove(symbol).is_some()
    }
}

#[cfg(test)]
mod due_tests {
    use super::*;
    use crate::base::testing;

    fn due(now: &str) -> Option<Due> {
        Due::at(&MarketCalendar::embedded(), now.parse().unwrap())
    }

    fn date_due(now: &str) -> Option<String> {
        due(now).map(|due| due.date.to_string())
    }

    #[test]
    fn a_date_is_due_from_its_settled_close_until_the_next_pre_open() {
        for (now, expected) in [
            // A Friday with a closing auction until 15:35.
            ("2026-11-20T08:59:59+05:30", Some("2026-11-19")),
            ("2026-11-20T09:00:00+05:30", None),
            ("2026-11-20T15:44:59+05:30", None),
            ("2026-11-20T15:45:00+05:30", Some("2026-11-20")),
            ("2026-11-20T23:59:59+05:30", Some("2026-11-20")),
            // The weekend, until Monday's pre-open.
            ("2026-11-22T12:00:00+05:30", Some("2026-11-20")),
            ("2026-11-23T08:59:59+05:30", Some("2026-11-20")),
            ("2026-11-23T09:00:00+05:30", None),
            // No auction before August 2026: the official close is at 15:30.
            ("2026-07-30T15:39:59+05:30", None),
            ("2026-07-30T15:40:00+05:30", Some("2026-07-30")),
            // From 7 December 2026 the auction ends at 15:40.
            ("2026-12-04T15:44:59+05:30", None),
            ("2026-12-04T15:45:00+05:30", Some("2026-12-04")),
            ("2026-12-07T15:49:59+05:30", None),
            ("2026-12-07T15:50:00+05:30", Some("2026-12-07")),
            // The last date after which the calendar knows anything.
            ("2026-12-31T15:50:00+05:30", Some("2026-12-31")),
            ("2027-01-01T01:00:00+05:30", None),
            ("2027-01-01T20:00:00+05:30", None),
            ("2027-01-04T20:00:00+05:30", None),
        ] {
            assert_eq!(date_due(now).as_deref(), expected, "{now}");
        }
    }

    #[test]
    fn a_muhurat_session_is_a_close_of_its_own_and_a_holiday_is_none() {
        let calendar = MarketCalendar::embedded();
        let session: Date = "2025-10-21".parse().unwrap();
        let close = calendar.official_close(session).unwrap();
        let settled = close.checked_add(CLOSE_MARGIN[Source::BrokerA]).unwrap();
        assert_eq!(Due::at(&calendar, settled).unwrap().date, session);
        let opens = calendar.opens(session).unwrap();
        let before = opens.checked_sub(SignedDuration::from_secs(1)).unwrap();
        assert_eq!(Due::at(&calendar, before).unwrap().date.to_string(), "2025-10-20");
        assert_eq!(Due::at(&calendar, opens), None);
        // Nothing is official of a session whose hours are a placeholder.
        assert_eq!(date_due("2026-11-08T23:00:00+05:30"), None);
        // Republic Day, a Monday.
        assert_eq!(date_due("2026-01-26T18:00:00+05:30").as_deref(), Some("2026-01-23"));
    }

    fn unjudged(quote: &Quote) -> PreviousClose {
        PreviousClose { price: quote.previous_close, reason: Reason::Own }
    }

    fn quote(source: Source, as_of: &str, received: &str) -> Quote {
        let quote = testing::quote("NSE:INFY", "100", as_of.parse().unwrap());
        Quote { asked: received.parse().unwrap(), source, ..quote }
    }

    #[test]
    fn only_prices_of_the_date_are_its_closing_prices() {
        let friday = due("2026-11-20T18:00:00+05:30").unwrap();
        let evening = "2026-11-20T18:00:00+05:30";
        for (as_of, received, witness_as_of, expected) in [
            ("2026-11-20T15:35:00+05:30", evening, None, true),
            ("2026-11-20T15:29:59+05:30", evening, None, true),
            // The auction's orders may be matched from 15:28 on.
            ("2026-11-20T15:28:00+05:30", evening, None, true),
            ("2026-11-20T15:27:59+05:30", evening, None, false),
            // An illiquid share counts only with an index that has closed.
            ("2026-11-20T14:50:00+05:30", evening, None, false),
            ("2026-11-20T14:50:00+05:30", evening, Some("2026-11-20T15:14:59+05:30"), false),
            ("2026-11-20T14:50:00+05:30", evening, Some("2026-11-20T15:35:00+05:30"), true),
            ("2026-11-20T14:50:00+05:30", evening, Some("2026-11-20T15:28:30+05:30"), true),
            ("2026-11-19T15:35:00+05:30", evening, Some("2026-11-20T15:35:00+05:30"), false),
            // Received before the close had settled, and after the next session began.
            ("2026-11-20T15:35:00+05:30", "2026-11-20T15:44:00+05:30", None, false),
            ("2026-11-20T15:35:00+05:30", "2026-11-23T08:59:00+05:30", None, true),
            ("2026-11-20T15:35:00+05:30", "2026-11-23T09:00:00+05:30", None, false),
            ("2026-11-23T09:00:01+05:30", "2026-11-23T09:00:02+05:30", None, false),
            // A weekend price is not Friday's close.
            ("2026-11-21T12:00:00+05:30", "2026-11-21T12:00:00+05:30", None, false),
        ] {
            let witness = witness_as_of.map(|at| quote(Source::BrokerA, at, received));
            let quote = quote(Source::BrokerA, as_of, received);
            let some = Derivatives::Some;
            let got = friday.closing_price(&quote, witness.as_ref(), some, |quote| unjudged(quote));
            assert_eq!(got.is_some(), expected, "{as_of} {received} {witness_as_of:?}");
        }
    }

    /// Which prices of a day are closes: time, the index's time, and the answer for a share with
    /// derivatives, one without, and one of which it is not known.
    fn closes_of(date: &str, rows: &[(&str, Option<&str>, [bool; 3])]) {
        let evening = format!("{date}T18:00:00+05:30");
        let day = due(&evening).unwrap();
        for (time, witness_time, expected) in rows {
            let at = |time: &str| format!("{date}T{time}+05:30");
            let witness = witness_time.map(|time| quote(Source::BrokerA, &at(time), &evening));
            let given = quote(Source::BrokerA, &at(time), &evening);
            let got = [Derivatives::Some, Derivatives::None, Derivatives::Unknown]
                .map(|of| day.closing_price(&given, witness.as_ref(), of, |quote| unjudged(quote)));
            let found = got.each_ref().map(Option::is_some);
            assert_eq!(&found, expected, "{date} {time} {witness_time:?}");
            let official = got.map(|close| close.is_some_and(|(_, close)| close.official));
            assert_eq!(&official[1..], [false, false], "{date} {time}: not an auction's");
        }
    }

    #[test]
    fn a_trade_before_the_auctions_earliest_end_is_no_closing_price_of_a_share_in_it() {
        let index = Some("15:40:00");
        closes_of(
            "2026-12-07",
            &[
                ("15:28:59", None, [false, false, false]),
                ("15:29:00", None, [false, true, false]),
                ("15:29:59", None, [false, true, false]),
                ("15:37:59", None, [false, true, false]),
                ("15:38:00", None, [true, true, true]),
                ("15:40:00", None, [true, true, true]),
                // The last trade of a share that stood, with an index that has closed. In the
                // quarter of an hour before the auction it is one of those that are averaged.
                ("11:00:00", Some("15:37:59"), [false, false, false]),
                ("11:00:00", index, [true, true, true]),
                ("15:14:59", index, [true, true, true]),
                ("15:15:00", index, [false, true, true]),
                ("15:29:59", index, [false, true, true]),
                ("15:37:59", index, [false, true, true]),
            ],
        );
        let index = Some("15:35:00");
        closes_of(
            "2026-12-04",
            &[
                ("15:14:59", None, [false, false, false]),
                ("15:27:59", None, [false, false, false]),
                ("15:28:00", None, [true, false, true]),
                ("15:29:00", None, [true, true, true]),
                ("14:59:59", index, [true, true, true]),
                ("15:00:00", index, [false, true, true]),
                ("15:14:59", index, [false, true, true]),
                ("15:20:00", index, [false, true, true]),
            ],
        );
        // No auction yet.
        closes_of(
            "2026-07-30",
            &[
                ("15:28:59", None, [false, false, false]),
                ("15:29:00", None, [true, true, true]),
                ("15:20:00", Some("15:30:00"), [true, true, true]),
            ],
        );
    }

    #[test]
    fn a_close_has_the_time_of_its_own_hours() {
        for (date, with, without) in
            [("2026-12-04", "15:35:00", "15:30:00"), ("2026-12-07", "15:40:00", "15:30:00")]
        {
            let evening = format!("{date}T18:00:00+05:30");
            let given = quote(Source::BrokerA, &evening, &evening);
            for (of, time) in [(Derivatives::Some, with), (Derivatives::None, without)] {
                let day = due(&evening).unwrap();
                let close = day.closing_price(&given, None, of, |quote| unjudged(quote));
                let at: Timestamp = format!("{date}T{time}+05:30").parse().unwrap();
                assert_eq!(close.unwrap().1.as_of_ms, at.as_millisecond(), "{date} {of:?}");
            }
        }
    }

    #[test]
    fn the_late_provider_is_given_more_time() {
        let friday = due("2026-11-20T18:00:00+05:30").unwrap();
        for (now, broker_a, public) in [
            ("2026-11-20T15:44:59+05:30", false, false),
            ("2026-11-20T15:45:00+05:30", true, false),
            ("2026-11-20T16:05:00+05:30", true, true),
        ] {
            let now = now.parse().unwrap();
            assert_eq!(friday.has_settled(Source::BrokerA, now), broker_a, "{now}");
            assert_eq!(friday.has_settled(Source::Public, now), public, "{now}");
        }
    }
}

#[cfg(test)]
mod missing_tests {
    use super::*;

    fn symbols(names: &[&str]) -> Vec<Symbol> {
        names.iter().map(|name| Symbol::parse(name).unwrap()).collect()
    }

    #[test]
    fn broker_a_is_asked_first_and_nobody_twice_too_soon() {
        let all = symbols(&["NSE:A", "NSE:B", "NSE:C"]);
        let mut missing = Missing::default();
        missing.add(all.clone(), &HashSet::new());
        assert_eq!(missing.batch(Source::BrokerA, true, 2, 0), all[..2]);
        assert!(missing.batch(Source::Public, true, 2, 0).is_empty());
        assert_eq!(missing.batch(Source::Public, false, 2, 0), all[..2]);
        assert!(missing.found(&all[0]) && !missing.found(&all[0]));
        missing.answered(Source::BrokerA, &all[1], 5);
        assert_eq!(missing.batch(Source::BrokerA, true, 9, 5), all[2..]);
        assert_eq!(missing.batch(Source::Public, true, 9, 5), all[1..2]);
        missing.answered(Source::Public, &all[1], 6);
        assert!(missing.batch(Source::Public, true, 9, 5 + ASK_AGAIN_MS).is_empty());
        assert_eq!(missing.batch(Source::Public, true, 9, 6 + ASK_AGAIN_MS), all[1..2]);
        assert_eq!(missing.batch(Source::BrokerA, true, 9, 5 + ASK_AGAIN_MS), all[1..]);
        assert_eq!(missing.len(), 2);
    }

    #[test]
    fn what_was_silent_before_is_asked_for_and_not_waited_for() {
        let all = symbols(&["NSE:A", "NSE:B", "NSE:C"]);
        let mut missing = Missing::default();
        missing.add(all.clone(), &all[..1].iter().cloned().collect());
        assert_eq!((missing.len(), missing.silent()), (3, 1));
        assert_eq!(missing.given_up(Reach::Everybody), all[..1].iter().cloned().collect());
        assert_eq!(missing.given_up(Reach::Last), all.iter().cloned().collect());
        assert_eq!(missing.fell_silent(), all[..1], "the others may never have been asked for");
        assert!(!missing.all_answered() && !missing.is_over());
        assert!(missing.found(&all[1]));
        missing.answered(Source::Public, &all[0], 5);
        assert!(!missing.all_answered());
        missing.answered(Source::BrokerA, &all[2], 5);
        assert!(missing.all_answered() && !missing.is_over());
        assert_eq!(missing.fell_silent(), [all[0].clone(), all[2].clone()]);
        assert!(missing.found(&all[2]) && missing.is_over());
        assert!(Missing::default().is_over() && Missing::default().all_answered());
    }
}
