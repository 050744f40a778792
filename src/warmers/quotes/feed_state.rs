//! The scheduler's view of one feed: its last index quotes, the results of its polls, and the
//! health that follows from them. Only state and rules; `poll` makes the calls.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::SignedDuration;

use super::feed_time::FeedTime;
use crate::base::{BySource, Quote, Source, Symbol};
use crate::brokers::{Batch, BrokerError, CallTimes, MarketFeed, Readiness};
use crate::cache::pending::Taken;
use crate::cache::{Freshness, Limits, Vouched};
use crate::market::{Derivatives, IndexList, MarketCalendar, Trading, Universe};
use crate::rt::Lane;

/// After this many failures in a row the other feed is polled before this one's data is stale. One
/// failure may be chance.
const FAILURES_DOUBTED: u32 = 2;

/// After this many failures in a row no request waits for this feed. As many open its circuit.
const FAILURES_HOPELESS: u32 = 3;

/// A share of the universe that stands for this long while its market trades was not brought up to
/// date, unless its source gives it a newer time: those shares trade every minute.
const STANDS_MS_MAX: i64 = 5 * 60_000;

/// The same for all other shares, some of which trade rarely.
const STANDS_RARELY_TRADED_MS_MAX: i64 = 30 * 60_000;

/// Result of a poll's call.
pub(crate) type Answer = Result<Batch, BrokerError>;

/// A feed and its history.
pub(crate) struct FeedState {
    /// The feed to call, on `lane`.
    pub feed: Arc<dyn MarketFeed>,
    pub lane: Arc<Lane>,
    pub pace: Pace,
    /// The indices required for a snapshot, as far as the feed has them.
    pub leads: Vec<Symbol>,
    /// When the call under way went out.
    in_flight_since_mono_ms: Option<u64>,
    /// Symbols in the call under way that requests wait for, unless they were reclaimed.
    taken: Option<Taken>,
    /// The symbols of the call under way were given to the other feed, because the call timed out.
    reclaimed: bool,
    /// Number of calls that carry everything in demand once.
    round: Round,
    /// Calls in a row that carried only indices and symbols that requests wait for.
    pub crowded: u8,
    /// Monotonic times of the last call, and of the last successful one; `None` before the first.
    asked_mono_ms: Option<u64>,
    pub succeeded_mono_ms: Option<u64>,
    /// Its last quote of each index and sector.
    heard: HashMap<Symbol, Heard>,
    /// Leads that its last answer left out although it had others. They are the other feed's.
    pub absent: HashSet<Symbol>,
    /// Up to when its last push vouched for each lead.
    pushed: HashMap<Symbol, i64>,
    /// Its clock, measured by its indices.
    pub time: FeedTime,
    /// Milliseconds that its last answer's timestamps were ahead of our clock, if it was refused
    /// for that.
    pub ahead_of_us_ms: Option<i64>,
    failures_in_row: u32,
    /// The last poll's request was refused: the next poll carries indices only.
    pub indices_only: bool,
    /// The last failure, for health; cleared by a success.
    pub failure: Option<String>,
    /// Whether that was a refusal because of too many calls.
    pub is_rate_limited: bool,
    pub polls: u64,
    pub failures: u64,
}

/// Number of calls that carry everything in demand once. It grows at once. It shrinks only after
/// that many calls at a smaller demand, when everything has been carried once.
struct Round {
    calls: u8,
    /// Calls since then at a smaller demand.
    smaller: u8,
}

impl Round {
    fn note(&mut self, calls: u8) {
        let shrinks = calls < self.calls && self.smaller < self.calls;
        self.smaller = if shrinks { self.smaller + 1 } else { 0 };
        if !shrinks {
            self.calls = calls;
        }
    }
}

/// A quote of an index, and up to when the feed vouches for it.
pub(crate) struct Heard {
    pub quote: Quote,
    pub vouched: Vouched,
    asked_mono_ms: u64,
}

/// What an answer is judged by, besides what the feed has said before.
pub(crate) struct MarketView<'a> {
    pub calendar: &'a MarketCalendar,
    pub indices: &'a IndexList,
    pub universe: &'a Universe,
    /// Whether a share has derivatives, by which its hours follow.
    pub derivatives_of: &'a dyn Fn(&Symbol) -> Derivatives,
    /// The quote that requests read now, whatever its source.
    pub shown: &'a dyn Fn(&Symbol) -> Option<Quote>,
}

impl MarketView<'_> {
    /// Trading time for which the price of a share may stand. An index that clients asked for moves
    /// as the shares of the universe do.
    fn stands_ms_max(&self, symbol: &Symbol) -> i64 {
        let is_index = symbol.ticker().contains(' ');
        match is_index || self.universe.symbols().contains(symbol) {
            true => STANDS_MS_MAX,
            false => STANDS_RARELY_TRADED_MS_MAX,
        }
    }
}

/// Result of a poll, for the feed's health.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// The answer has every lead that was asked for.
    Succeeded,
    Failed(String),
    /// The upstream wants fewer calls.
    RateLimited(String),
    /// The upstream refused the request itself, so a symbol may be the cause.
    Refused(String),
    /// Pace, circuit or token held the call back.
    NotAsked,
}

impl FeedState {
    pub(crate) fn new(
        feed: Arc<dyn MarketFeed>,
        lane: Arc<Lane>,
        indices: &IndexList,
        pace: Pace,
    ) -> Self {
        let source = feed.source();
        let leads = indices.leads().into_iter();
        let spelled = leads.filter(|lead| source == Source::BrokerA || lead.public.is_some());
        let leads: Vec<Symbol> = spelled.map(|lead| lead.symbol.clone()).collect();
        Self {
            time: FeedTime::new(source, &leads),
            leads,
            feed,
            lane,
            pace,
            in_flight_since_mono_ms: None,
            taken: None,
            reclaimed: false,
            round: Round {
                calls: 1,
                smaller: 0,
            },
            crowded: 0,
            asked_mono_ms: None,
            succeeded_mono_ms: None,
            heard: HashMap::new(),
            absent: HashSet::new(),
            pushed: HashMap::new(),
            ahead_of_us_ms: None,
            failures_in_row: 0,
            indices_only: false,
            failure: None,
            is_rate_limited: false,
            polls: 0,
            failures: 0,
        }
    }

    pub(crate) fn source(&self) -> Source {
        self.feed.source()
    }

    /// Whether a poll is due: it may go out, and the interval has passed or somebody waits.
    pub(crate) fn is_due(&self, now_mono_ms: u64, somebody_waits: bool) -> bool {
        let rested = self
            .asked_mono_ms
            .is_none_or(|asked| now_mono_ms.saturating_sub(asked) >= self.pace.interval_ms);
        self.in_flight_since_mono_ms.is_none()
            && (rested || somebody_waits)
            && self.feed.readiness() == Readiness::Ready
    }

    /// Whether its last poll failed and went out at least `ago_ms` ago.
    pub(crate) fn failed_before(&self, ago_ms: u64, now_mono_ms: u64) -> bool {
        let asked = self.asked_mono_ms.unwrap_or_default();
        self.failure.is_some() && now_mono_ms.saturating_sub(asked) >= ago_ms
    }

    /// Whether a poll of it is under way.
    pub(crate) fn is_asking(&self) -> bool {
        self.in_flight_since_mono_ms.is_some()
    }

    /// The index that shows how far the feed's clock has come.
    pub(crate) fn witness(&self) -> Option<&Symbol> {
        self.leads.first()
    }

    /// Its last quote of its witness.
    pub(crate) fn heard_witness(&self) -> Option<&Heard> {
        self.heard.get(self.witness()?)
    }

    /// Whether its data is fresh: it vouches recently enough for each lead that it has.
    pub(crate) fn is_healthy(&self, freshness: &Freshness, now_mono_ms: u64) -> bool {
        let source = self.feed.source();
        let is_fresh = |lead: &Symbol| {
            let heard = self.heard.get(lead);
            heard.is_some_and(|heard| !freshness.is_stale(source, heard.vouched, now_mono_ms))
        };
        let mut had = self
            .leads
            .iter()
            .filter(|lead| !self.absent.contains(*lead))
            .peekable();
        had.peek().is_some() && had.all(is_fresh)
    }

    /// Whether its pushes vouched for each lead within `lately_ms`.
    pub(crate) fn pushed_within(&self, lately_ms: u64, now_mono_ms: u64) -> bool {
        let since = now_mono_ms as i64 - lately_ms as i64;
        let vouched = |lead: &Symbol| self.pushed.get(lead).is_some_and(|at| *at >= since);
        !self.leads.is_empty() && self.leads.iter().all(vouched)
    }

    /// Whether it answers, but its prices should have changed since.
    pub(crate) fn is_stalled(&self, freshness: &Freshness, now_mono_ms: u64) -> bool {
        let answered = self.succeeded_mono_ms.is_some_and(|at| {
            let lately = Vouched {
                mono_ms: at as i64,
                calls: self.calls(self.feed.batch_max()),
            };
            !freshness.is_stale(self.feed.source(), lately, now_mono_ms)
        });
        answered && !self.is_healthy(freshness, now_mono_ms)
    }

    /// Milliseconds that our clock is ahead of its prices' timestamps (negative: behind); `None` if
    /// normal delays explain the difference or the prices do not move. The machine's clock is the
    /// first suspect, the feed's delay the second.
    pub(crate) fn clock_ahead_ms(&self, now_mono_ms: u64) -> Option<i64> {
        self.ahead_of_us_ms
            .map_or_else(|| self.time.clock_ahead_ms(now_mono_ms), |ms| Some(-ms))
    }

    /// Whether the call under way takes longer than a healthy one.
    pub(crate) fn is_timed_out(&self, now_mono_ms: u64) -> bool {
        self.in_flight_since_mono_ms
            .is_some_and(|since| now_mono_ms.saturating_sub(since) > self.pace.patience_ms)
    }

    /// Whether the other feed should be polled although this one's data is still fresh.
    pub(crate) fn is_degraded(&self, now_mono_ms: u64, urgent: bool) -> bool {
        let doubted = if urgent { 1 } else { FAILURES_DOUBTED };
        self.is_timed_out(now_mono_ms)
            || self.failures_in_row >= doubted
            || !self.askable_within(self.pace.patience_ms)
    }

    /// Whether it could answer a request that waits up to `wait_ms`.
    pub(crate) fn can_answer_within(&self, wait_ms: u64, now_mono_ms: u64) -> bool {
        match self.in_flight_since_mono_ms {
            _ if self.failures_in_row >= FAILURES_HOPELESS => false,
            Some(_) => !self.is_timed_out(now_mono_ms),
            None => self.askable_within(wait_ms),
        }
    }

    /// Whether its readiness lets a call out within `wait_ms`.
    pub(crate) fn askable_within(&self, wait_ms: u64) -> bool {
        match self.feed.readiness() {
            Readiness::Ready => true,
            Readiness::Paced(wait) | Readiness::Open(wait) => wait.as_millis() as u64 <= wait_ms,
            Readiness::NoToken | Readiness::NoPermission | Readiness::Off | Readiness::Follows => {
                false
            }
        }
    }

    /// Milliseconds until a call might go out, for the scheduler's sleep.
    pub(crate) fn wait_ms(&self) -> u64 {
        match self.feed.readiness() {
            Readiness::Paced(wait) | Readiness::Open(wait) => wait.as_millis() as u64 + 1,
            _ => u64::MAX,
        }
    }

    /// Whether too many of its last polls failed for chance, though its data may still be fresh.
    pub(crate) fn keeps_failing(&self) -> bool {
        self.failures_in_row >= FAILURES_DOUBTED
    }

    /// When an index was last asked for successfully; `None` before the first time.
    pub(crate) fn heard_mono_ms(&self, symbol: &Symbol) -> Option<u64> {
        self.heard.get(symbol).map(|heard| heard.asked_mono_ms)
    }

    /// Number of calls that carry every lead once.
    fn calls(&self, symbols_max: usize) -> u8 {
        u8::try_from(self.leads.len().div_ceil(symbols_max.max(1)).max(1)).unwrap_or(u8::MAX)
    }

    /// Judges the timestamps of an answer. Returns its quotes, each with up to when the feed
    /// vouches for it. Moves quotes whose timestamp cannot be true to the implausible ones.
    pub(crate) fn read(
        &mut self,
        batch: &mut Batch,
        market: &MarketView<'_>,
    ) -> Vec<(Quote, Vouched)> {
        let MarketView {
            calendar,
            indices: list,
            shown,
            ..
        } = *market;
        let times = batch.times;
        let calls = self.calls(batch.symbols_max);
        let (mut indices, shares): (Vec<Quote>, Vec<Quote>) = batch
            .quotes
            .drain(..)
            .partition(|quote| list.contains(&quote.symbol));
        for quote in indices.iter_mut().filter(|quote| !quote.timed) {
            let shown = shown(&quote.symbol);
            self.stamp_index(quote, shown.as_ref(), &times, calendar);
        }
        indices
            .iter()
            .for_each(|quote| self.time.weigh(quote, &times));
        let mut read = Vec::with_capacity(indices.len() + shares.len());
        let (mut believed, doubted): (Vec<Quote>, Vec<Quote>) = indices
            .into_iter()
            .chain(shares)
            .partition(|quote| self.time.believes(quote, &times));
        batch
            .implausible
            .extend(doubted.into_iter().map(|quote| quote.symbol));
        for quote in believed
            .iter()
            .filter(|quote| self.leads.contains(&quote.symbol))
        {
            self.time.heed(quote, &times, calendar);
        }
        for quote in &mut believed {
            let exchange = quote.symbol.exchange();
            quote.delay_s = self.time.delay_s(exchange);
            let vouched = if list.contains(&quote.symbol) {
                let leads = self.leads.contains(&quote.symbol);
                let calls = if leads { calls } else { Vouched::IN_TURN };
                let vouched = self.time.index_vouched(quote, &times, calls, calendar);
                self.hear(quote, vouched, &times, batch.pushed);
                vouched
            } else {
                let whose = (market.derivatives_of)(&quote.symbol).trading();
                if !quote.timed {
                    quote.as_of = self.time.share_as_of(exchange, whose, &times, calendar);
                }
                self.time.share_vouched(
                    quote,
                    whose,
                    market.stands_ms_max(&quote.symbol),
                    &times,
                    calendar,
                )
            };
            read.push((quote.clone(), vouched));
        }
        read
    }

    /// Remembers an index quote. A late tick does not replace a newer answer.
    fn hear(&mut self, quote: &Quote, vouched: Vouched, times: &CallTimes, pushed: bool) {
        let symbol = &quote.symbol;
        if pushed && self.leads.contains(symbol) {
            self.pushed.insert(symbol.clone(), vouched.mono_ms);
        }
        let held = self.heard.get(symbol).filter(|_| pushed);
        if held.is_none_or(|held| held.vouched.mono_ms <= vouched.mono_ms) {
            let quote = quote.clone();
            let asked_mono_ms = times.asked_mono_ms;
            self.heard.insert(
                symbol.clone(),
                Heard {
                    quote,
                    vouched,
                    asked_mono_ms,
                },
            );
        }
    }

    /// An index without a timestamp gets that of the first answer with the same price. The first
    /// answer of a process is compared with the price that is shown: on a holiday that the calendar
    /// does not know it is that of the last session. While prices rest, one that differs from the
    /// last price is of some moment before: of the session's start at the earliest. So it does not
    /// replace that price, and the source is late.
    fn stamp_index(
        &self,
        quote: &mut Quote,
        shown: Option<&Quote>,
        times: &CallTimes,
        calendar: &MarketCalendar,
    ) {
        let exchange = quote.symbol.exchange();
        let latest = self
            .time
            .latest(exchange, Trading::WithAuction, times, calendar);
        let heard = self.heard.get(&quote.symbol).map(|heard| &heard.quote);
        let at_rest = shown.filter(|_| self.time.rests(exchange, times, calendar));
        let last = at_rest
            .into_iter()
            .chain(heard)
            .max_by_key(|held| held.as_of);
        let differs = last.filter(|held| held.last_price != quote.last_price);
        if differs.is_some_and(|held| self.time.is_outdated_by(held, times, calendar)) {
            quote.as_of = calendar.trading_began(latest).unwrap_or(latest);
            return;
        }
        quote.as_of = match heard.or(shown) {
            Some(held) if held.last_price == quote.last_price => held.as_of,
            Some(held) => latest.max(held.as_of),
            None => latest,
        };
    }

    /// Number of calls that carry everything in demand once, over the last such round.
    pub(crate) fn round(&self) -> u8 {
        self.round.calls
    }

    /// Notes the number of calls that carry everything in demand once, and whether waiting requests
    /// crowd other symbols out of the next one.
    pub(crate) fn note_demand(&mut self, round: u8, is_crowded: bool) {
        self.round.note(round);
        self.crowded = if is_crowded {
            self.crowded.saturating_add(1)
        } else {
            0
        };
    }

    /// Notes a poll that goes out, and its symbols that requests wait for.
    pub(crate) fn began(&mut self, taken: Option<Taken>, now_mono_ms: u64) {
        self.taken = taken;
        self.in_flight_since_mono_ms = Some(now_mono_ms);
        self.asked_mono_ms = Some(now_mono_ms);
        self.reclaimed = false;
        self.polls += 1;
    }

    /// Takes the waited-for symbols out of a timed-out poll, for the other feed. Once for each
    /// poll.
    pub(crate) fn reclaim(&mut self, now_mono_ms: u64) -> Option<Taken> {
        if self.reclaimed || !self.is_timed_out(now_mono_ms) {
            return None;
        }
        self.reclaimed = true;
        self.taken.take()
    }

    /// The waited-for symbols of the poll that has ended, and whether they were
    /// [reclaimed](Self::reclaim) before.
    pub(crate) fn release(&mut self) -> (Option<Taken>, bool) {
        (self.taken.take(), self.reclaimed)
    }

    pub(crate) fn ended(&mut self, ended: &Ended) {
        self.in_flight_since_mono_ms = None;
        self.indices_only = matches!(ended, Ended::Refused(_));
        match ended {
            Ended::Succeeded => {
                if self.failure.take().is_some() {
                    tracing::info!(source = self.feed.source().as_str(), "feed answers again");
                }
                self.failures_in_row = 0;
                self.succeeded_mono_ms = self.asked_mono_ms;
            }
            Ended::Failed(failure) | Ended::Refused(failure) | Ended::RateLimited(failure) => {
                self.is_rate_limited = matches!(ended, Ended::RateLimited(_));
                self.failed(failure);
            }
            Ended::NotAsked => {}
        }
    }

    fn failed(&mut self, failure: &str) {
        self.failures_in_row = self.failures_in_row.saturating_add(1);
        self.failures += 1;
        if self.failure.as_deref() != Some(failure) {
            tracing::warn!(source = self.feed.source().as_str(), failure, "feed fails");
        }
        self.failure = Some(failure.to_owned());
    }
}

// ---- Pace
//
// Decides how often feeds are polled, how long a price may stay unchanged, and when a feed can be
// expected to send the official close. Pure.

/// Interval between polls while the market rests. Prices do not move, so a poll only notices a feed
/// that works again.
const RESTING_MS: BySource<u64> = BySource([30_000, 60_000]);

/// A feed may miss one poll and take this long before its data counts as stale.
const GRACE_MS: BySource<u64> = BySource([1_500, 7_000]);

/// A feed is not relied on if a call takes this long, or it may not be polled for this long. A
/// quote call takes a fraction of a second. The rest of the time until the data becomes stale is
/// enough for the other feed's answer.
const PATIENCE_MS: u64 = 1_500;

/// Providers need this long after the official close to settle on it and to send it. The public
/// provider is a quarter of an hour late by nature.
pub(crate) const CLOSE_MARGIN: BySource<SignedDuration> =
    BySource([SignedDuration::from_mins(10), SignedDuration::from_mins(30)]);

/// Within this time the polls of a source that pushes prices confirm each price, and fetch those
/// that are not pushed.
const CONFIRMING_MS: u64 = 10_000;

/// The polling rate of one feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Interval between two polls while no request waits; 0: as fast as the feed's budget allows.
    pub interval_ms: u64,
    /// The feed is not relied on after waiting this long.
    pub patience_ms: u64,
}

impl Pace {
    /// The pace of a feed whose budget allows a call each `budget_ms`.
    pub(crate) fn of(source: Source, budget_ms: u64, rests: bool) -> Self {
        Self {
            interval_ms: if rests { RESTING_MS[source] } else { 0 },
            // The pace itself must not exceed the patience.
            patience_ms: PATIENCE_MS.max(budget_ms + PATIENCE_MS / 3),
        }
    }

    /// The pace of a feed whose prices are pushed, if it takes `calls` calls to confirm all of
    /// them.
    pub(crate) fn confirming(self, calls: u64) -> Self {
        self.sparing(CONFIRMING_MS / calls.max(1))
    }

    /// The pace with at least this interval, which nodes without a leader's messages keep because
    /// they share the provider.
    pub(crate) fn sparing(self, interval_ms: u64) -> Self {
        Self {
            interval_ms: self.interval_ms.max(interval_ms),
            ..self
        }
    }
}

/// Limits on the time that a feed may leave a price unchanged: while prices move, and for closing
/// prices. `step_ms`: the time that its index stays unchanged by its nature, however often it is
/// polled.
pub(crate) fn limits(source: Source, budget_ms: u64, step_ms: u64) -> (Limits, Limits) {
    let grace_ms = GRACE_MS[source];
    let moving = Limits {
        period_ms: budget_ms.max(step_ms),
        grace_ms,
    };
    let resting = Limits {
        period_ms: budget_ms.max(RESTING_MS[source]),
        grace_ms,
    };
    (moving, resting)
}

/// Interval between two polls that only confirm pushed prices, for [`limits`].
pub(crate) fn confirming_ms(budget_ms: u64) -> u64 {
    budget_ms.max(CONFIRMING_MS)
}

#[cfg(test)]
#[path = "feed_state_tests.rs"]
mod tests;

#[cfg(test)]
mod pace_tests {
    use super::*;

    #[test]
    fn while_prices_move_the_whole_budget_is_used_and_one_poll_may_be_missed() {
        let pace = Pace::of(Source::BrokerA, 1_050, false);
        let (moving, _) = limits(Source::BrokerA, 1_050, 0);
        assert_eq!((pace.interval_ms, moving.stale_after_ms(1)), (0, 3_600));
        assert!(pace.patience_ms < moving.stale_after_ms(1) / 2);
        assert_eq!(limits(Source::Public, 15_000, 0).0.stale_after_ms(1), 37_000);
        // A source whose index moves once a minute is given the minute.
        assert_eq!(limits(Source::Public, 15_000, 60_000).0.stale_after_ms(1), 127_000);
    }

    #[test]
    fn what_is_pushed_is_confirmed_within_ten_seconds_however_many_calls_that_takes() {
        let pace = Pace::of(Source::BrokerA, 1_050, false);
        for (calls, interval_ms) in [(0, 10_000), (1, 10_000), (2, 5_000), (7, 1_428)] {
            assert_eq!(
                pace.confirming(calls),
                Pace {
                    interval_ms,
                    ..pace
                }
            );
        }
        let resting = Pace::of(Source::BrokerA, 1_050, true);
        assert_eq!(resting.confirming(7), resting, "never sooner than without");
    }

    #[test]
    fn a_market_that_rests_is_asked_rarely() {
        for (source, budget_ms) in [(Source::BrokerA, 1_050), (Source::Public, 15_000)] {
            let pace = Pace::of(source, budget_ms, true);
            let (_, resting) = limits(source, budget_ms, 0);
            assert!(pace.interval_ms >= 30_000);
            assert!(resting.stale_after_ms(1) > 2 * pace.interval_ms);
        }
    }
}
