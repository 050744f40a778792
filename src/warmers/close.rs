//! Revaluation at the close: values every stored portfolio once at the closing prices of a trading
//! date.
//!
//! Each step may be repeated after a crash. First it reads the store's progress for the date. Then
//! it polls the feeds for missing closing prices and stores each batch at once. Then it values the
//! users page by page; a page's prices, points and completion marks are one transaction. It walks
//! over the users several times: first those whose prices are complete, then, once the feeds have
//! answered about every symbol, all of them. A user who lacks a price is valued again when it
//! arrives. Memory is bounded by the symbols of a run and one page. The task belongs to the
//! scheduler's thread. The store is read and written on the lane `close`, the feeds are polled on
//! their own lanes, and only while no request waits for them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::base::{BySource, ClosingPrice, MarketDay, Quote, Source, Symbol, clock};
use crate::market::{LastClose, MarketCalendar};
use crate::rt::lanes::Outcomes;
use crate::store::{PriceOfClose, Store, StoreError};
use crate::views::health::{HealthClose, WarmerState};
use crate::views::values::Day;
use crate::warmers::close::prices::{
    Done, Looked, Outcome, PageOrder, Paged, PriceCalls, Reach, Step, Walk, Walked, Work,
};
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::feed_state::Answer;
use crate::warmers::quotes::feed_state::FeedState;
use crate::warmers::quotes::feed_state::close_margin;
use crate::warmers::quotes::feeds::Feeds;

pub(crate) mod prices;

pub(super) use prices::Turn;

/// Pause after a failure of the store.
const RETRY_MS: u64 = 30_000;

/// Deadline of a store job. The store's methods have deadlines of their own, and a job makes a
/// bounded number of calls.
const STORE_DEADLINE_MS: u64 = 120_000;

/// Owner of the revaluation's state.
pub(crate) struct CloseTask {
    outcomes: Outcomes<Box<Outcome>>,
    work: Option<Work>,
    /// The last date without work left: finished or given up.
    settled: Option<Date>,
    gave_up: bool,
    calls: PriceCalls,
    store_in_flight: bool,
    store_retry_mono_ms: u64,
    /// The last failure of the store; cleared by its next success.
    failure: Option<String>,
    /// Counts of the last run.
    counts: HealthClose,
}

impl CloseTask {
    /// No close is due yet. `closes` receives the outcomes of calls, by source.
    pub(super) fn new(
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
    pub(super) fn poll(&mut self, context: &WarmerContext, feeds: &Feeds, turn: Turn) {
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

    /// Stops the run because another node leads and does it. Jobs under way end first.
    pub(super) fn rest(&mut self) {
        if !self.store_in_flight && !self.calls.is_under_way() {
            self.work = None;
            self.failure = None;
        }
    }

    /// Begins and gives up runs. True while a run is under way.
    fn follow(&mut self, context: &WarmerContext, now_mono_ms: u64) -> bool {
        let due = Due::at(&context.calendar, context.clock.now());
        let due = due.filter(|due| self.settled != Some(due.date));
        let current = self.work.as_ref().map(|work| work.due.date);
        let wanted = due.as_ref().map(|due| due.date);
        if current == wanted {
            return current.is_some();
        }
        // Wait for jobs under way, so that no outcome is applied to another date's run.
        if self.store_in_flight || self.calls.is_under_way() {
            return false;
        }
        if let Some(work) = self.work.take() {
            self.settled = Some(work.due.date);
            self.gave_up = true;
            tracing::error!(
                date = %work.due.date,
                missing = work.missing.len(),
                "close not revalued before the next session; given up"
            );
        } else if let Some(due) = due {
            self.counts = HealthClose { date: Some(Day(due.date)), ..HealthClose::default() };
            self.work = Some(Work::of(due, now_mono_ms));
        }
        self.work.is_some()
    }

    fn use_store(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        // The leadership may have ended since this tick began.
        let Some(epoch) = context.lead.epoch() else { return };
        let Some(work) = &mut self.work else { return };
        work.step_on(context, now_mono_ms);
        let date = work.due.date;
        match &work.step {
            Step::Look => {
                let symbols_max = context.close.symbols_max;
                self.submit(context, move |store| {
                    prices::look(store, date, symbols_max).map(Done::Looked)
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
                self.submit(context, move |store| prices::page(store, &order).map(Done::Paged));
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
    pub(super) fn ended(&mut self, outcome: Option<Box<Outcome>>, now_mono_ms: u64) {
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
            Done::Looked(looked) => self.looked(looked, now_mono_ms),
            Done::Kept => self.kept(),
            Done::Paged(paged) => self.paged(&paged, now_mono_ms),
            Done::Finished => self.finished(),
        }
    }

    /// Takes the closing prices that a feed answered; `None` if the call was lost.
    pub(crate) fn take_prices(
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

    /// Whether a call of this tick goes to the feed.
    pub(crate) fn asks_now(&self, source: Source, now_mono_ms: u64) -> bool {
        self.calls.asks_now(source, now_mono_ms)
    }

    pub(crate) fn counts(&self) -> &HealthClose {
        &self.counts
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
        let HealthClose { date, priced, missing, suspended, pages, points, carried, .. } =
            self.counts;
        let date = date.map(|day| tracing::field::display(day.0));
        tracing::info!(date, priced, missing, suspended, pages, points, carried, "close revalued");
        self.settle();
    }

    fn settle(&mut self) {
        self.settled = self.work.take().map(|work| work.due.date);
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
                Step::Look => WarmerState::Starting,
                _ if work.is_pricing() && work.is_unheard(now_mono_ms) => WarmerState::Stale,
                _ => WarmerState::Ok,
            },
        }
    }
}

// ---- Due
//
// Decides which trading date's close is due to be revalued, and which prices are its closing
// prices. Pure.
//
// A price is a date's closing price if its own time lies on that date, at the end of continuous
// trading or later. A share that did not trade until the end has an older time. Its last trade is
// its close, as at the exchange, but counts only if the same feed's index has reached its close: a
// feed that stopped in the afternoon proves nothing. A price of an earlier date is never this
// date's close. From the first phase of the next trading date on nothing is valued any more,
// because prices and holdings may be that date's.

/// A close that can be revalued now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub date: Date,
    /// Time of the official close.
    pub close: Timestamp,
    /// The earliest time that its prices can have.
    prices_from: Timestamp,
    /// From this time on prices may be the next session's.
    pub until: Timestamp,
    /// The date of that session, or the maximum date if the calendar does not know it.
    pub next_session: Date,
}

impl Due {
    /// The latest trading date, once its close has settled and until the next one begins, or until
    /// midnight if the calendar does not know the next one.
    pub(super) fn at(calendar: &MarketCalendar, now: Timestamp) -> Option<Self> {
        let LastClose { date, at, until } = calendar.last_close(now)?;
        let prices_from = calendar.closing_prices_from(date)?;
        let next_session = calendar.next_trading_date(date).unwrap_or(Date::MAX);
        let has_settled = now.duration_since(at)
            >= close_margin(Source::BrokerA).min(close_margin(Source::Public));
        has_settled.then_some(Self { date, close: at, prices_from, until, next_session })
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
        }
    }

    /// Whether `source` can be expected to send the official close.
    pub(crate) fn has_settled(&self, source: Source, now: Timestamp) -> bool {
        now < self.until && now.duration_since(self.close) >= close_margin(source)
    }

    /// The closing price in `quote`, if it is one. `witness`: the same feed's quote of an index,
    /// which alone shows whether a quote without its own time is a close.
    pub(crate) fn closing_price(
        &self,
        quote: &Quote,
        witness: Option<&Quote>,
    ) -> Option<PriceOfClose> {
        let is_last_trade =
            || self.is_of_date(quote) && witness.is_some_and(|index| self.is_after_trading(index));
        let believed = self.has_settled(quote.source, quote.asked)
            && (quote.timed && self.is_after_trading(quote) || is_last_trade());
        believed.then(|| {
            let close = ClosingPrice {
                price: quote.last_price,
                // On the next session's date this value may already be the close itself.
                previous_close: quote
                    .previous_close
                    .filter(|_| clock::zoned(quote.asked).date() < self.next_session),
                // Some feeds stamp it with the time of their answer.
                as_of_ms: quote.as_of.min(self.close).as_millisecond(),
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
    /// No symbol has been asked for yet. The `silent` ones had no closing price on the previous
    /// date: suspended, delisted, or unknown to the feeds.
    pub(super) fn of(symbols: Vec<Symbol>, silent: &HashSet<Symbol>) -> Self {
        let answered = |symbol: Symbol| {
            let silent = silent.contains(&symbol);
            (symbol, Answered { silent, ..Answered::default() })
        };
        Self(symbols.into_iter().map(answered).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Number of symbols without a closing price on the previous date either.
    pub(super) fn silent(&self) -> usize {
        self.0.values().filter(|answered| answered.silent).count()
    }

    /// Whether some feed has answered about each symbol. Missing prices are still asked for again,
    /// but nothing waits for them.
    pub(crate) fn all_answered(&self) -> bool {
        self.0.values().all(Answered::by_any)
    }

    /// Whether no symbol is worth waiting for: each was silent on the previous date, and a feed has
    /// answered that it still is.
    pub(super) fn is_over(&self) -> bool {
        self.0.values().all(|answered| answered.silent && answered.by_any())
    }

    /// Symbols whose closing price may still come.
    pub(crate) fn awaited(&self) -> HashSet<Symbol> {
        let awaited = self.0.iter().filter(|(_, answered)| !answered.silent);
        awaited.map(|(symbol, _)| symbol.clone()).collect()
    }

    /// Symbols without a closing price from any feed: a feed answered so today, or did on the
    /// previous date and has not answered since.
    pub(crate) fn fell_silent(&self) -> Vec<Symbol> {
        let fell = self.0.iter().filter(|(_, answered)| answered.silent || answered.by_any());
        fell.map(|(symbol, _)| symbol.clone()).collect()
    }

    /// At most `max` symbols for a call to `source`. While broker A can be asked, the public
    /// provider gets only symbols that broker A had no price for.
    pub(super) fn batch(
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
    pub(super) fn answered(&mut self, source: Source, symbol: &Symbol, now_mono_ms: u64) {
        if let Some(answered) = self.0.get_mut(symbol) {
            answered.at_mono_ms[source] = Some(now_mono_ms);
        }
    }

    /// Removes a symbol whose price was found. True if it was missing until now.
    pub(super) fn found(&mut self, symbol: &Symbol) -> bool {
        self.0.remove(symbol).is_some()
    }
}

#[cfg(test)]
#[path = "close_tests.rs"]
mod tests;

#[cfg(test)]
mod due_tests {
    use jiff::SignedDuration;
    use rust_decimal::Decimal;

    use super::*;
    use crate::base::Symbol;

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
            // The last date after which the calendar knows anything.
            ("2026-12-31T15:45:00+05:30", Some("2026-12-31")),
            ("2027-01-01T01:00:00+05:30", None),
        ] {
            assert_eq!(date_due(now).as_deref(), expected, "{now}");
        }
    }

    #[test]
    fn a_muhurat_session_is_a_close_of_its_own_and_a_holiday_is_none() {
        let calendar = MarketCalendar::embedded();
        let sunday: Date = "2026-11-08".parse().unwrap();
        let close = calendar.official_close(sunday).unwrap();
        let settled = close.checked_add(close_margin(Source::BrokerA)).unwrap();
        assert_eq!(Due::at(&calendar, settled).unwrap().date, sunday);
        let opens = calendar.opens(sunday).unwrap();
        let before = opens.checked_sub(SignedDuration::from_secs(1)).unwrap();
        assert_eq!(Due::at(&calendar, before).unwrap().date.to_string(), "2026-11-06");
        assert_eq!(Due::at(&calendar, opens), None);
        // Republic Day, a Monday.
        assert_eq!(date_due("2026-01-26T18:00:00+05:30").as_deref(), Some("2026-01-23"));
    }

    fn quote(source: Source, as_of: &str, received: &str) -> Quote {
        Quote {
            symbol: Symbol::parse("NSE:INFY").unwrap(),
            last_price: Decimal::ONE_HUNDRED,
            previous_close: None,
            as_of: as_of.parse().unwrap(),
            timed: true,
            asked: received.parse().unwrap(),
            delay_s: None,
            source,
            simulated: false,
        }
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
            let got =
                friday.closing_price(&quote(Source::BrokerA, as_of, received), witness.as_ref());
            assert_eq!(got.is_some(), expected, "{as_of} {received} {witness_as_of:?}");
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
        let mut missing = Missing::of(all.clone(), &HashSet::new());
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
        let mut missing = Missing::of(all.clone(), &all[..1].iter().cloned().collect());
        assert_eq!((missing.len(), missing.silent()), (3, 1));
        assert_eq!(missing.awaited(), all[1..].iter().cloned().collect());
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
