//! Asks the feeds for closing prices: when, for what, and what an answer means. Runs on the
//! scheduler's thread, except for the calls, which are jobs of the feeds' lanes.

use std::sync::Arc;

use super::work::{PATIENCE_MS, Work};
use crate::base::{Source, Symbol};
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness};
use crate::warmers::context::WarmerContext;
use crate::warmers::job::Outcomes;
use crate::warmers::quotes::feed_state::FeedState;
use crate::warmers::quotes::feeds::Feeds;
use crate::warmers::quotes::poll::Answer;

/// After a call that failed.
pub(crate) const RETRY_MS: u64 = 30_000;

/// Enough to come down from the largest batch to one symbol.
const HALVINGS_MAX: u32 = 9;

/// Requests go first, but where some wait all evening one call in this time is made all the same,
/// or there would be no close.
pub(crate) const STARVED_MS: u64 = 60_000;

/// Least times between two calls of a feed, per call made here: every other call is left to polls.
const INTERVALS_PER_CALL: u64 = 2;

/// The calls to one feed.
#[derive(Default)]
pub(crate) struct Call {
    pub(crate) in_flight: bool,
    /// Monotonic times: of the last one, and before which the next is not made.
    pub(crate) asked_mono_ms: Option<u64>,
    pub(crate) rests_until_mono_ms: u64,
    /// The last one failed.
    pub(crate) failed: bool,
    /// What it asks for, and how often the batch was halved because the feed refused the request:
    /// one symbol may be to blame.
    pub(crate) asked: Vec<Symbol>,
    pub(crate) halvings: u32,
}

impl Call {
    /// Whether another may go out, as far as its pace and waiting requests are concerned.
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

/// What the scheduler knows when it gives the close its turn.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub requests_wait: bool,
    pub now_mono_ms: u64,
}

/// The calls to all feeds.
pub(crate) struct PriceCalls {
    pub(crate) broker_a: Call,
    public: Call,
    /// By source.
    outcomes: [Outcomes<Box<Answer>>; Source::ALL.len()],
}

impl PriceCalls {
    /// Nothing has been asked.
    pub(crate) fn new(outcomes: [Outcomes<Box<Answer>>; Source::ALL.len()]) -> Self {
        Self { broker_a: Call::default(), public: Call::default(), outcomes }
    }

    /// Whether some call has not ended.
    pub(crate) fn is_under_way(&self) -> bool {
        self.broker_a.in_flight || self.public.in_flight
    }

    /// Asks one feed for some of the prices that `work` lacks, if it may be asked now.
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
        let call = self.call(source);
        if !work.is_asking()
            || !call.is_in_turn(work.began_mono_ms, requests_wait, now_mono_ms)
            || feed.is_asking()
            || !work.due.has_settled(source, context.clock.now())
            || feed.readiness() != Readiness::Ready
        {
            return;
        }
        let broker_a = feeds.broker_a();
        let broker_a_usable = !self.broker_a.failed
            && broker_a.failure().is_none()
            && broker_a.askable_within(PATIENCE_MS);
        // Every call carries an index, to see whether the feed has closed; where it carries only
        // one symbol, the polls say so.
        let batch_max = feed.feed().batch_max();
        let room = (batch_max.saturating_sub(1) >> call.halvings).max(1);
        let mut symbols = work.missing.batch(source, broker_a_usable, room, now_mono_ms);
        if symbols.is_empty() {
            return;
        }
        let rest_ms = context.interval_ms(source) * INTERVALS_PER_CALL;
        let call = self.call_mut(source);
        call.in_flight = true;
        call.asked_mono_ms = Some(now_mono_ms);
        call.rests_until_mono_ms = now_mono_ms + rest_ms;
        call.asked.clone_from(&symbols);
        if symbols.len() < batch_max {
            symbols.extend(feed.witness().cloned());
        }
        let (outcomes, deadline_ms) = (&self.outcomes[source as usize], context.call_deadline_ms());
        let market_feed = Arc::clone(feed.feed());
        // A refusal is told and logged like any other failure.
        let _ = outcomes
            .submit(feed.lane(), deadline_ms, move || Box::new(market_feed.quotes(&symbols)));
    }

    /// Takes in what a feed said of closing prices; `None` when the call was lost.
    pub(crate) fn take(
        &mut self,
        work: Option<&mut Work>,
        source: Source,
        answer: Option<Answer>,
        feed: Option<&FeedState>,
        now_mono_ms: u64,
    ) {
        let call = self.call_mut(source);
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
            // Rate limit, circuit or token: asked again when it is ready.
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

    /// Whether a call of this very tick goes to the feed.
    pub(crate) fn asks_now(&self, source: Source, now_mono_ms: u64) -> bool {
        let call = self.call(source);
        call.in_flight && call.asked_mono_ms == Some(now_mono_ms)
    }

    fn call(&self, source: Source) -> &Call {
        match source {
            Source::BrokerA => &self.broker_a,
            Source::Public => &self.public,
        }
    }

    fn call_mut(&mut self, source: Source) -> &mut Call {
        match source {
            Source::BrokerA => &mut self.broker_a,
            Source::Public => &mut self.public,
        }
    }
}
