//! One feed as the scheduler sees it: when it may be asked, what for, and how it has been doing.
//!
//! A round is one upstream call. It carries the indices and sectors, then what requests wait for,
//! then what clients asked for lately, up to the feed's batch size: one budget serves everybody.

use std::sync::Arc;

use crossbeam_channel::Sender;

use super::policy::Pace;
use super::{Event, Parts, Round};
use crate::base::{Source, Symbol};
use crate::brokers::{Batch, FeedError, MarketFeed, Readiness};
use crate::cache::Taken;
use crate::market::QuoteMap;
use crate::rt::Lane;

/// Unlisted symbols tried in one call: a small share of either feed's budget.
const PROBES_BROKER_A: usize = 20;
const PROBES_PUBLIC: usize = 2;

/// A lane job's deadline beyond the call's own: connecting to a lane takes no time unless it is
/// stuck.
const LANE_SLACK_MS: u64 = 5_000;

/// A feed and its history.
pub struct FeedSlot {
    pub feed: Arc<dyn MarketFeed>,
    lane: Arc<Lane>,
    pub in_flight: bool,
    /// Monotonic times, `None` before the first.
    pub asked_mono_ms: Option<u64>,
    pub succeeded_mono_ms: Option<u64>,
    /// When it last gave a believable price of the primary index: an answer without one says
    /// nothing about the market.
    pub indexed_mono_ms: Option<u64>,
    /// Its newest quotes of the indices and sectors.
    pub index_quotes: QuoteMap,
    /// The last failure, for health; cleared by a success.
    pub failure: Option<String>,
    pub rounds: u64,
    pub failures: u64,
}

impl FeedSlot {
    /// A feed that has not been asked yet.
    pub fn new(feed: Arc<dyn MarketFeed>, lane: Arc<Lane>) -> Self {
        Self {
            feed,
            lane,
            in_flight: false,
            asked_mono_ms: None,
            succeeded_mono_ms: None,
            indexed_mono_ms: None,
            index_quotes: QuoteMap::new(),
            failure: None,
            rounds: 0,
            failures: 0,
        }
    }

    /// Whether a call may go out now and is worth it: the interval has passed, or somebody waits.
    pub fn is_due(&self, now_mono_ms: u64, pace: Pace, somebody_waits: bool) -> bool {
        let rested = self
            .asked_mono_ms
            .is_none_or(|asked| now_mono_ms.saturating_sub(asked) >= pace.interval_ms);
        !self.in_flight && (rested || somebody_waits) && self.feed.readiness() == Readiness::Ready
    }

    /// Whether what it said is fresh.
    pub fn is_fresh(&self, now_mono_ms: u64, pace: Pace) -> bool {
        self.indexed_mono_ms.is_some_and(|at| now_mono_ms.saturating_sub(at) <= pace.stale_after_ms)
    }

    /// Milliseconds until a call might go out; for the scheduler's sleep.
    pub fn wait_ms(&self) -> u64 {
        match self.feed.readiness() {
            Readiness::Paced(wait) | Readiness::Open(wait) => wait.as_millis() as u64 + 1,
            _ => u64::MAX,
        }
    }

    /// Whether it could answer somebody who waits up to `wait_ms`.
    pub fn can_answer_within(&self, wait_ms: u64) -> bool {
        match self.feed.readiness() {
            Readiness::Ready => true,
            Readiness::Paced(wait) | Readiness::Open(wait) => wait.as_millis() as u64 <= wait_ms,
            Readiness::NoToken | Readiness::NoPermission | Readiness::Off => false,
        }
    }

    /// Sends one round to the lane. Its outcome arrives as [`Event::Round`], whatever happens.
    /// `on_trial`: somebody else can answer those who wait, so this round does not carry their
    /// symbols.
    pub fn ask(&mut self, parts: &Parts, now_mono_ms: u64, on_trial: bool, events: &Sender<Event>) {
        let source = self.feed.source();
        let (symbols, taken) = self.compose(parts, now_mono_ms, on_trial);
        self.in_flight = true;
        self.asked_mono_ms = Some(now_mono_ms);
        self.rounds += 1;
        let feed = Arc::clone(&self.feed);
        let mut report = Report { events: events.clone(), source, taken, outcome: None };
        let deadline_ms = parts.upstream.total_timeout_ms + LANE_SLACK_MS;
        let submitted = self.lane.submit(deadline_ms, move || {
            report.outcome = Some(feed.quotes(&symbols));
            drop(report);
        });
        if let Err(refused) = submitted {
            tracing::warn!(%refused, source = source.as_str(), "round not sent");
        }
    }

    fn compose(
        &self,
        parts: &Parts,
        now_mono_ms: u64,
        on_trial: bool,
    ) -> (Vec<Symbol>, Vec<Taken>) {
        let max = self.feed.batch_max();
        let source = self.feed.source();
        let spelled =
            |symbol: &&crate::market::Index| source == Source::BrokerA || symbol.public.is_some();
        let mut symbols: Vec<Symbol> =
            parts.indices.all().filter(spelled).map(|index| index.symbol.clone()).collect();
        symbols.truncate(max);
        let probes_max = match source {
            _ if on_trial => 0,
            Source::BrokerA => PROBES_BROKER_A,
            Source::Public => PROBES_PUBLIC,
        };
        let probes = parts.probes.take_pending(probes_max.min(max - symbols.len()));
        let room = max - symbols.len() - probes.symbols().len();
        let misses = parts.misses.take_pending(if on_trial { 0 } else { room });
        for taken in [&probes, &misses] {
            push_new(&mut symbols, taken.symbols(), max);
        }
        // As many as are already in the call may come again, so ask for that many more.
        let wanted = parts.l1.wanted(now_mono_ms, parts.cache_settings.demand_ttl_ms, max * 2);
        push_new(&mut symbols, &wanted, max);
        (symbols, vec![probes, misses])
    }

    /// Takes note of how a round ended.
    pub fn ended(&mut self, outcome: Option<&Result<Batch, FeedError>>, now_mono_ms: u64) {
        self.in_flight = false;
        match outcome {
            Some(Ok(_)) => {
                if self.failure.take().is_some() {
                    tracing::info!(source = self.feed.source().as_str(), "feed answers again");
                }
                self.succeeded_mono_ms = Some(now_mono_ms);
            }
            Some(Err(FeedError::NotReady(_))) => {}
            Some(Err(error)) => self.failed(error.to_string()),
            None => self.failed("the call was lost: its lane is full or it panicked".to_owned()),
        }
    }

    fn failed(&mut self, failure: String) {
        self.failures += 1;
        if self.failure.as_ref() != Some(&failure) {
            tracing::warn!(source = self.feed.source().as_str(), %failure, "feed fails");
        }
        self.failure = Some(failure);
    }
}

fn push_new(symbols: &mut Vec<Symbol>, more: &[Symbol], max: usize) {
    let mut held: std::collections::HashSet<Symbol> = symbols.iter().cloned().collect();
    for symbol in more {
        if symbols.len() >= max {
            return;
        }
        if held.insert(symbol.clone()) {
            symbols.push(symbol.clone());
        }
    }
}

/// Sends the round's event when dropped, so that a lost job is heard of too.
struct Report {
    events: Sender<Event>,
    source: Source,
    taken: Vec<Taken>,
    outcome: Option<Result<Batch, FeedError>>,
}

impl Drop for Report {
    fn drop(&mut self) {
        let round = Round {
            source: self.source,
            taken: std::mem::take(&mut self.taken),
            outcome: self.outcome.take(),
        };
        // Refused only when full, which a bound above the number of jobs rules out, or when the
        // scheduler has ended; then nobody waits for the round.
        let _ = self.events.try_send(Event::Round(Box::new(round)));
    }
}
