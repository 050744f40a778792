//! Asking the feeds for closing prices: when, for what, and what an answer means. Runs on the
//! scheduler's thread, but for the calls themselves, which are jobs of the feeds' lanes.

use std::sync::Arc;

use crossbeam_channel::Sender;

use super::{CloseWarmer, PATIENCE_MS, RETRY_MS};
use crate::base::{Source, Symbol};
use crate::brokers::{Batch, BrokerError, BrokerErrorKind, Readiness};
use crate::warmers::context::WarmerContext;
use crate::warmers::event::Event;
use crate::warmers::event::JobReport;
use crate::warmers::event::Round;
use crate::warmers::quotes::feed_state::FeedState;
use crate::warmers::quotes::poll::LANE_SLACK_MS;

/// Enough to come down from the largest batch to one symbol.
const HALVINGS_MAX: u32 = 9;

/// Requests go first, but where somebody waits all evening one slot in this time is taken all the
/// same, or there would be no close.
pub(crate) const STARVED_MS: u64 = 60_000;

/// Slots of a feed's budget per call made here: every other one is left to rounds.
const SLOTS_PER_CALL: u64 = 2;

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
    /// Whether another may go out, as far as pace and those who wait are concerned.
    pub(crate) fn is_in_turn(
        &self,
        began_mono_ms: u64,
        somebody_waits: bool,
        now_mono_ms: u64,
    ) -> bool {
        let idle_since_mono_ms = self.asked_mono_ms.unwrap_or(0).max(began_mono_ms);
        let starves = now_mono_ms.saturating_sub(idle_since_mono_ms) >= STARVED_MS;
        !self.in_flight && now_mono_ms >= self.rests_until_mono_ms && (!somebody_waits || starves)
    }
}

impl CloseWarmer {
    /// Asks one feed for some of the prices that are missing, if it may be asked now.
    pub(crate) fn ask(
        &mut self,
        parts: &WarmerContext,
        slot: &FeedState,
        feeds: &[&FeedState],
        somebody_waits: bool,
        now_mono_ms: u64,
        events: &Sender<Event>,
    ) {
        let source = slot.feed.source();
        let Some(work) = self.work.as_ref().filter(|work| work.is_asking()) else { return };
        let call = self.call(source);
        if !call.is_in_turn(work.began_mono_ms, somebody_waits, now_mono_ms)
            || slot.is_asking()
            || !work.due.has_settled(source, parts.clock.now())
            || slot.feed.readiness() != Readiness::Ready
        {
            return;
        }
        let broker_a_usable = !self.broker_a.failed
            && feeds.iter().any(|slot| {
                slot.feed.source() == Source::BrokerA
                    && slot.failure.is_none()
                    && slot.askable_within(PATIENCE_MS)
            });
        // Every call carries an index, to see whether the feed has closed; where it carries only
        // one symbol, the rounds say so.
        let batch_max = slot.feed.batch_max();
        let room = (batch_max.saturating_sub(1) >> call.halvings).max(1);
        let symbols = work.missing.batch(source, broker_a_usable, room, now_mono_ms);
        if symbols.is_empty() {
            return;
        }
        let rest_ms = parts.interval_ms(source) * SLOTS_PER_CALL;
        let call = self.call_mut(source);
        call.in_flight = true;
        call.asked_mono_ms = Some(now_mono_ms);
        call.rests_until_mono_ms = now_mono_ms + rest_ms;
        call.asked.clone_from(&symbols);
        let as_event: fn(Option<_>) -> Event = match source {
            Source::BrokerA => |outcome| closes_event(Source::BrokerA, outcome),
            Source::Public => |outcome| closes_event(Source::Public, outcome),
        };
        let mut report = JobReport { events: events.clone(), outcome: None, as_event };
        let mut symbols = symbols;
        if symbols.len() < batch_max {
            symbols.extend(slot.witness().cloned());
        }
        let feed = Arc::clone(&slot.feed);
        let deadline_ms = parts.upstream.total_timeout_ms + LANE_SLACK_MS;
        // A refusal is reported and logged like any other failure.
        let _ = slot.lane.submit(deadline_ms, move || {
            report.outcome = Some(feed.quotes(&symbols));
            drop(report);
        });
    }

    /// Takes in what a feed said of closing prices.
    pub fn take_prices(&mut self, round: Round, slot: Option<&FeedState>, now_mono_ms: u64) {
        let source = round.source;
        let call = self.call_mut(source);
        call.in_flight = false;
        match round.outcome {
            Some(Ok(batch)) => {
                call.failed = false;
                call.halvings = call.halvings.saturating_sub(1);
                self.keep_prices(source, &batch, slot, now_mono_ms);
            }
            // Pace, circuit or token: asked again when it is ready.
            Some(Err(BrokerError { kind: BrokerErrorKind::NotReady(_), .. })) => {}
            Some(Err(BrokerError { kind: BrokerErrorKind::Refused, .. }))
                if call.asked.len() > 1 =>
            {
                call.failed = true;
                call.halvings = (call.halvings + 1).min(HALVINGS_MAX);
            }
            Some(Err(error)) if error.kind == BrokerErrorKind::Refused => {
                tracing::warn!(source = source.as_str(), %error, symbols = ?call.asked);
                let asked = std::mem::take(&mut call.asked);
                let missing = self.work.as_mut().map(|work| &mut work.missing);
                missing.into_iter().for_each(|missing| {
                    asked.iter().for_each(|symbol| missing.answered(source, symbol, now_mono_ms));
                });
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

    fn keep_prices(
        &mut self,
        source: Source,
        batch: &Batch,
        slot: Option<&FeedState>,
        now_mono_ms: u64,
    ) {
        let Some(work) = &mut self.work else { return };
        let index = slot.and_then(FeedState::witness);
        let witness = batch.quotes.iter().find(|quote| Some(&quote.symbol) == index);
        let witness = witness.filter(|quote| quote.timed);
        let witness = witness.or_else(|| Some(&slot?.heard.get(index?)?.quote));
        for quote in &batch.quotes {
            work.missing.answered(source, &quote.symbol, now_mono_ms);
            let Some((symbol, close)) = work.due.closing_price(quote, witness) else { continue };
            if work.missing.found(&symbol) {
                work.unkept.push((symbol, close));
                work.heard_mono_ms = now_mono_ms;
            }
        }
        for symbol in batch.unknown.iter().chain(&batch.implausible) {
            work.missing.answered(source, symbol, now_mono_ms);
        }
        self.counts.missing = work.missing.len();
        self.counts.suspended = work.missing.silent();
    }

    /// Whether a call of this very tick takes the feed's slot.
    pub fn asks_now(&self, source: Source, now_mono_ms: u64) -> bool {
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

fn closes_event(source: Source, outcome: Option<Result<Batch, BrokerError>>) -> Event {
    Event::ClosePrices(Box::new(Round { source, outcome }))
}
