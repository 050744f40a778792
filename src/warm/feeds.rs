//! One feed as the scheduler sees it: what it said of the indices, how it has been doing, and what
//! follows from that. Only state and rules; `rounds` makes the calls.

use std::sync::Arc;

use jiff::Timestamp;

use super::policy::Pace;
use crate::base::{Quote, Source, Symbol};
use crate::brokers::{MarketFeed, Readiness};
use crate::cache::Taken;
use crate::market::{IndexList, QuoteMap};
use crate::rt::Lane;

/// Failures in a row after which the other feed is asked before this one's data is stale: one
/// failure may be chance.
const FAILURES_DOUBTED: u32 = 2;

/// Failures in a row after which nobody waits for this feed any more. As many open its circuit.
const FAILURES_HOPELESS: u32 = 3;

/// Rounds in a row that a feed must answer, once it was lost, before it carries the snapshot again:
/// a feed that answers now and then would else make prices jump between two delays.
const SUCCESSES_TRUSTED: u32 = 2;

/// A feed and its history.
pub struct FeedSlot {
    pub feed: Arc<dyn MarketFeed>,
    pub lane: Arc<Lane>,
    leads: Vec<Lead>,
    /// When the call under way went out.
    in_flight_since_mono_ms: Option<u64>,
    /// What requests wait for and the call under way carries; the scheduler can take it back from a
    /// call that hangs.
    pub taken: Vec<Taken>,
    pub took_back: bool,
    /// Monotonic times, `None` before the first.
    asked_mono_ms: Option<u64>,
    pub succeeded_mono_ms: Option<u64>,
    /// Its newest quotes of the indices and sectors.
    pub index_quotes: QuoteMap,
    /// Quotes that the first cache level would not take because a better one was fresh, with when
    /// they came: offered again should the other feed stop speaking.
    pub spare: Vec<(Quote, u64)>,
    /// When the primary index's own time last changed.
    moved_mono_ms: u64,
    /// When it changed from one time to another, which a feed that is stuck does not.
    advanced_mono_ms: Option<u64>,
    /// How far its last answer, refused for that, was ahead of our clock.
    pub world_ahead_ms: Option<i64>,
    /// It did not speak when it was looked at last, or has answered too little since.
    lost: bool,
    successes_in_row: u32,
    failures_in_row: u32,
    /// The last round was refused as a request: the next carries indices only.
    pub bare: bool,
    /// The last failure, for health; cleared by a success.
    pub failure: Option<String>,
    pub rounds: u64,
    pub failures: u64,
}

/// One of the three indices without which there is no snapshot.
struct Lead {
    symbol: Symbol,
    received_mono_ms: Option<u64>,
}

/// How a round ended, as far as the feed's health goes.
pub enum Ended {
    /// It brought every lead that it was asked for.
    Spoke,
    Failed(String),
    /// The upstream did not like the request itself, so it may be a symbol's fault.
    Refused(String),
    /// Pace, circuit or token held the call back.
    NotAsked,
}

impl FeedSlot {
    /// A feed that has not been asked yet.
    pub fn new(feed: Arc<dyn MarketFeed>, lane: Arc<Lane>, indices: &IndexList) -> Self {
        let source = feed.source();
        let leads = indices.leads().into_iter();
        let spelled = leads.filter(|lead| source == Source::BrokerA || lead.public.is_some());
        Self {
            leads: spelled
                .map(|lead| Lead { symbol: lead.symbol.clone(), received_mono_ms: None })
                .collect(),
            feed,
            lane,
            in_flight_since_mono_ms: None,
            taken: Vec::new(),
            took_back: false,
            asked_mono_ms: None,
            succeeded_mono_ms: None,
            index_quotes: QuoteMap::new(),
            spare: Vec::new(),
            moved_mono_ms: 0,
            advanced_mono_ms: None,
            world_ahead_ms: None,
            lost: false,
            successes_in_row: 0,
            failures_in_row: 0,
            bare: false,
            failure: None,
            rounds: 0,
            failures: 0,
        }
    }

    /// Whether a call may go out now and is worth it: the interval has passed, somebody waits, or
    /// the feed has come back and is to prove itself.
    pub fn is_due(&self, now_mono_ms: u64, pace: Pace, somebody_waits: bool) -> bool {
        let rested = self
            .asked_mono_ms
            .is_none_or(|asked| now_mono_ms.saturating_sub(asked) >= pace.interval_ms);
        let proving = self.lost && self.successes_in_row > 0;
        self.in_flight_since_mono_ms.is_none()
            && (rested || somebody_waits || proving)
            && self.feed.readiness() == Readiness::Ready
    }

    /// Whether its last round failed, and was asked for so long ago.
    pub fn failed_before(&self, ago_ms: u64, now_mono_ms: u64) -> bool {
        let asked = self.asked_mono_ms.unwrap_or_default();
        self.failure.is_some() && now_mono_ms.saturating_sub(asked) >= ago_ms
    }

    /// Whether a round of it is under way.
    pub fn is_asking(&self) -> bool {
        self.in_flight_since_mono_ms.is_some()
    }

    /// The index by which to see how far the feed has come.
    pub fn witness(&self) -> Option<&Symbol> {
        self.leads.first().map(|lead| &lead.symbol)
    }

    /// Whether its data is fresh and alive: every lead received lately, and moving.
    pub fn speaks(&self, pace: Pace, now: Timestamp, now_mono_ms: u64) -> bool {
        // A feed whose calls carry fewer than the leads needs several for them.
        let calls = self.leads.len().div_ceil(self.feed.batch_max().max(1)) as u64;
        let fresh_ms = pace.stale_after_ms.saturating_mul(calls.max(1));
        let is_fresh = |lead: &Lead| {
            lead.received_mono_ms.is_some_and(|at| now_mono_ms.saturating_sub(at) <= fresh_ms)
        };
        !self.leads.is_empty()
            && self.leads.iter().all(is_fresh)
            && !self.is_mute(pace, now, now_mono_ms)
    }

    /// Whether it answers with prices that an honest source would have moved on from.
    pub fn is_mute(&self, pace: Pace, now: Timestamp, now_mono_ms: u64) -> bool {
        let Some(primary) = self.leads.first().and_then(|l| self.index_quotes.get(&l.symbol))
        else {
            return false;
        };
        pace.mute.is_some_and(|limits| {
            let age_ms = now.as_millisecond() - primary.as_of.as_millisecond();
            let stands_ms = now_mono_ms.saturating_sub(self.moved_mono_ms);
            age_ms > limits.age_ms || stands_ms > limits.stands_ms
        })
    }

    /// How far our clock is ahead of the time that its prices have, where that is more than honest
    /// delays explain and the prices move; negative: behind. The machine's clock is the first
    /// suspect, the feed's delay the second.
    pub fn clock_ahead_ms(&self, pace: Pace, now: Timestamp, now_mono_ms: u64) -> Option<i64> {
        if let Some(world_ahead_ms) = self.world_ahead_ms {
            return Some(-world_ahead_ms);
        }
        let limits = pace.mute?;
        let primary = self.index_quotes.get(&self.leads.first()?.symbol)?;
        let age_ms = now.as_millisecond() - primary.as_of.as_millisecond();
        let since_ms = now_mono_ms.saturating_sub(self.advanced_mono_ms?);
        (age_ms > limits.age_ms && since_ms <= limits.stands_ms).then_some(age_ms)
    }

    /// Whether the call under way takes longer than a healthy one.
    pub fn hangs(&self, pace: Pace, now_mono_ms: u64) -> bool {
        self.in_flight_since_mono_ms
            .is_some_and(|since| now_mono_ms.saturating_sub(since) > pace.patience_ms)
    }

    /// Whether the other feed should be asked although this one's data is still fresh.
    pub fn falters(&self, pace: Pace, now_mono_ms: u64, urgent: bool) -> bool {
        let doubted = if urgent { 1 } else { FAILURES_DOUBTED };
        let stands_ms = now_mono_ms.saturating_sub(self.moved_mono_ms);
        let soon_mute = pace.mute.is_some_and(|limits| stands_ms > limits.stands_ms / 2);
        soon_mute
            || self.hangs(pace, now_mono_ms)
            || self.failures_in_row >= doubted
            || !self.askable_within(pace.patience_ms)
    }

    /// Whether it could answer somebody who waits up to `wait_ms`.
    pub fn can_answer_within(&self, wait_ms: u64, pace: Pace, now_mono_ms: u64) -> bool {
        match self.in_flight_since_mono_ms {
            _ if self.failures_in_row >= FAILURES_HOPELESS => false,
            Some(_) => !self.hangs(pace, now_mono_ms),
            None => self.askable_within(wait_ms),
        }
    }

    /// Whether its readiness lets a call out within `wait_ms`.
    pub fn askable_within(&self, wait_ms: u64) -> bool {
        match self.feed.readiness() {
            Readiness::Ready => true,
            Readiness::Paced(wait) | Readiness::Open(wait) => wait.as_millis() as u64 <= wait_ms,
            Readiness::NoToken | Readiness::NoPermission | Readiness::Off => false,
        }
    }

    /// Milliseconds until a call might go out; for the scheduler's sleep.
    pub fn wait_ms(&self) -> u64 {
        match self.feed.readiness() {
            Readiness::Paced(wait) | Readiness::Open(wait) => wait.as_millis() as u64 + 1,
            _ => u64::MAX,
        }
    }

    /// Whether it has to prove itself before it carries the snapshot while another feed can.
    pub fn on_probation(&self) -> bool {
        self.lost
    }

    /// Looks whether it speaks, to be called each tick.
    pub fn watch(&mut self, speaks: bool) {
        if !speaks && self.rounds > 0 {
            self.lost = true;
            self.successes_in_row = 0;
        }
    }

    /// Monotonic time at which a lead last arrived.
    pub fn heard_mono_ms(&self) -> Option<u64> {
        self.leads.iter().filter_map(|lead| lead.received_mono_ms).max()
    }

    /// Monotonic time at which a lead called `symbol` last arrived; `None` too if it is no lead.
    pub fn received_mono_ms(&self, symbol: &Symbol) -> Option<u64> {
        self.leads.iter().find(|lead| lead.symbol == *symbol)?.received_mono_ms
    }

    /// Takes a quote of an index or a sector in.
    pub fn heard(&mut self, quote: Quote, now_mono_ms: u64) {
        let primary = self.leads.first().is_some_and(|lead| lead.symbol == quote.symbol);
        let held = self.index_quotes.get(&quote.symbol);
        if primary && held.is_none_or(|held| held.as_of != quote.as_of) {
            self.moved_mono_ms = now_mono_ms;
            self.advanced_mono_ms = held.map(|_| now_mono_ms).or(self.advanced_mono_ms);
        }
        if let Some(lead) = self.leads.iter_mut().find(|lead| lead.symbol == quote.symbol) {
            lead.received_mono_ms = Some(now_mono_ms);
        }
        self.index_quotes.insert(quote.symbol.clone(), quote);
    }

    /// Whether a symbol is one of its leads.
    pub fn leads_with(&self, symbol: &Symbol) -> bool {
        self.leads.iter().any(|lead| lead.symbol == *symbol)
    }

    /// Takes note of a call that goes out.
    pub fn began(&mut self, now_mono_ms: u64) {
        self.in_flight_since_mono_ms = Some(now_mono_ms);
        self.asked_mono_ms = Some(now_mono_ms);
        self.took_back = false;
        self.rounds += 1;
    }

    /// Takes note of how a round ended.
    pub fn ended(&mut self, ended: Ended, now_mono_ms: u64) {
        self.in_flight_since_mono_ms = None;
        self.bare = matches!(ended, Ended::Refused(_));
        match ended {
            Ended::Spoke => {
                if self.failure.take().is_some() {
                    tracing::info!(source = self.feed.source().as_str(), "feed answers again");
                }
                self.failures_in_row = 0;
                self.successes_in_row = self.successes_in_row.saturating_add(1);
                self.lost &= self.successes_in_row < SUCCESSES_TRUSTED;
                self.succeeded_mono_ms = Some(now_mono_ms);
            }
            Ended::Failed(failure) | Ended::Refused(failure) => self.failed(failure),
            Ended::NotAsked => {}
        }
    }

    fn failed(&mut self, failure: String) {
        self.successes_in_row = 0;
        self.failures_in_row = self.failures_in_row.saturating_add(1);
        self.failures += 1;
        if self.failure.as_ref() != Some(&failure) {
            tracing::warn!(source = self.feed.source().as_str(), %failure, "feed fails");
        }
        self.failure = Some(failure);
    }
}

#[cfg(test)]
#[path = "feeds_tests.rs"]
mod tests;
