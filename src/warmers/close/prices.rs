//! Polls the feeds for closing prices: decides when and for which symbols, and judges the answers.
//! Runs on the scheduler's thread, except for the calls, which are jobs of the feeds' lanes.

use std::sync::Arc;

use crate::base::{BySource, Source, Symbol};
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness};
use crate::rt::lanes::Outcomes;
use crate::warmers::close::due::Judges;
use crate::warmers::close::work::{PATIENCE_MS, Work};
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::feed_state::{Answer, FeedState};
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
pub(crate) struct TickState {
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
        Self {
            calls: BySource::default(),
            outcomes,
        }
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
        tick: TickState,
    ) {
        let TickState {
            requests_wait,
            now_mono_ms,
        } = tick;
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
        let mut symbols = work
            .missing
            .batch(source, broker_a_usable, room, now_mono_ms);
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
        let outcomes = &self.outcomes[source];
        let deadline_ms = context.call_deadline_ms();
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
                let said = batch
                    .quotes
                    .iter()
                    .find(|quote| Some(&quote.symbol) == index);
                let heard = feed
                    .and_then(FeedState::heard_witness)
                    .map(|heard| &heard.quote);
                let witness = match said {
                    Some(said) if said.timed => Some(said),
                    // Without a time only the price shows whether the answer is of the close.
                    Some(said) => heard.filter(|heard| heard.last_price == said.last_price),
                    None => heard,
                };
                work.take_prices(source, &batch, witness, judges, now_mono_ms);
            }
            // Rate limit, circuit or token: the call is repeated when the feed is ready.
            Some(Err(BrokerError {
                kind: BrokerErrorKind::NotReady(_),
                ..
            })) => {}
            Some(Err(BrokerError {
                kind: BrokerErrorKind::Refused,
                ..
            })) if call.asked.len() > 1 => {
                call.failed = true;
                call.halvings = (call.halvings + 1).min(HALVINGS_MAX);
            }
            Some(Err(error)) if error.kind == BrokerErrorKind::Refused => {
                let symbols = std::mem::take(&mut call.asked);
                tracing::warn!(
                    source = source.as_str(),
                    %error,
                    ?symbols,
                    "source gave no closing prices"
                );
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
                tracing::warn!(source = source.as_str(), failure, "source gave no closing prices");
            }
        }
    }

    /// Whether a call of this tick goes to the feed.
    pub(crate) fn asks_now(&self, source: Source, now_mono_ms: u64) -> bool {
        let call = &self.calls[source];
        call.in_flight && call.asked_mono_ms == Some(now_mono_ms)
    }
}
