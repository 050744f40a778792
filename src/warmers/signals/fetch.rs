//! Asking the feeds for candles: when, whom, for what, and what an answer means. Runs on the
//! scheduler's thread, but for the calls themselves, which are jobs of the feeds' lanes.

use std::sync::Arc;

use crossbeam_channel::Sender;
use jiff::civil::Date;

use super::sessions::{overlap_from, settled_date, window_from};
use super::steps::Arrived;
use super::symbol::{Availability, Sources, TrackedSymbol};
use super::{SignalsWarmer, Turn};
use crate::base::Source;
use crate::brokers::{BrokerError, BrokerErrorKind, DailyCandles, MarketFeed, Readiness};
use crate::warmers::context::WarmerContext;
use crate::warmers::event::Event;
use crate::warmers::event::JobReport;
use crate::warmers::quotes::poll::LANE_SLACK_MS;

/// After a call that failed as such, not for its symbol.
const FAILED_RETRY_MS: u64 = 30_000;
/// A date that is due for so long need not wait for the source it had before.
const PATIENCE_MS: u64 = 60 * 60_000;
/// Rounds of quotes go first; where they leave the public provider no slot, candles take one in
/// this time all the same, and a rarer one while requests wait.
const STARVED_MS: u64 = 60_000;
const STARVED_WHILE_WAITED_MS: u64 = 10 * 60_000;
/// Answers that wait to be stored; with more no call is made.
const ARRIVED_MAX: usize = 2;

/// What a call brought: `None` where the source does not have the symbol.
pub type Answer = Result<Option<DailyCandles>, BrokerError>;

/// A call that ended; `None` when it was lost.
pub struct Fetched {
    pub source: Source,
    pub outcome: Option<Answer>,
}

/// The calls to one feed.
#[derive(Default)]
pub(crate) struct Call {
    asked: Option<Asked>,
    asked_mono_ms: Option<u64>,
    rests_until_mono_ms: u64,
    /// Of the last call, cleared by a success.
    pub(crate) failure: Option<String>,
}

/// What the call under way is about.
pub(crate) struct Asked {
    pub(crate) at: usize,
    pub(crate) purpose: Purpose,
    pub(crate) from: Date,
    pub(crate) to: Date,
}

impl Asked {
    fn is_running(&self) -> bool {
        self.purpose == Purpose::Running
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be stored; all of the history, or what follows.
    Stored { whole: bool },
    /// A day that is not over, for a look.
    Running,
}

impl Call {
    pub(crate) fn is_idle(&self) -> bool {
        self.asked.is_none()
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// The symbol whose stored candles the call under way is about, by its place.
    pub(crate) fn symbol(&self) -> Option<usize> {
        self.asked.as_ref().filter(|asked| !asked.is_running()).map(|asked| asked.at)
    }

    pub(crate) fn asks_running(&self) -> bool {
        self.asked.as_ref().is_some_and(Asked::is_running)
    }
}

impl SignalsWarmer {
    /// Sends one call to `source` if its turn has come and something is missing.
    pub(crate) fn ask(
        &mut self,
        parts: &WarmerContext,
        source: Source,
        turn: Turn,
        now_mono_ms: u64,
        events: &Sender<Event>,
    ) {
        let Some(date) = self.target else { return };
        let call = self.call(source);
        if call.is_asking()
            || now_mono_ms < call.rests_until_mono_ms
            || self.arrived.len() >= ARRIVED_MAX
            || (source == Source::Public && !self.may_ask_public(turn, now_mono_ms))
        {
            return;
        }
        let usual = self.availability(parts, date, now_mono_ms);
        if ready(source, usual) != Availability::Ready {
            return;
        }
        let asked = match self.next_symbol(source, date, usual, now_mono_ms) {
            Some(at) => self.missing(parts, source, at, date),
            None => match self.next_running(parts, source, date, now_mono_ms) {
                Some(asked) => asked,
                None => return,
            },
        };
        self.send(parts, source, asked, now_mono_ms, events);
    }

    /// The call for what is missing of a symbol up to `date`.
    fn missing(&mut self, parts: &WarmerContext, source: Source, at: usize, date: Date) -> Asked {
        let tracked = &mut self.tracked[at];
        tracked.in_flight = true;
        let whole = tracked.wants_whole(date, source);
        let from = match tracked.last() {
            Some(last) if !whole => overlap_from(&parts.calendar, last),
            _ => window_from(&parts.calendar, date),
        };
        Asked { at, purpose: Purpose::Stored { whole }, from, to: date }
    }

    fn send(
        &mut self,
        parts: &WarmerContext,
        source: Source,
        asked: Asked,
        now_mono_ms: u64,
        events: &Sender<Event>,
    ) {
        let symbol = self.tracked[asked.at].symbol.clone();
        let token = self.tokens.of(&symbol);
        let (from, to) = (asked.from, asked.to);
        let call = self.call_mut(source);
        call.asked = Some(asked);
        call.asked_mono_ms = Some(now_mono_ms);
        let as_event: fn(Option<_>) -> Event = match source {
            Source::BrokerA => |outcome| candles_event(Source::BrokerA, outcome),
            Source::Public => |outcome| candles_event(Source::Public, outcome),
        };
        let mut report = JobReport { events: events.clone(), outcome: None, as_event };
        let deadline_ms = parts.upstream.total_timeout_ms + LANE_SLACK_MS;
        let (broker_a, public) = (Arc::clone(&parts.broker_a), parts.public.clone());
        let lane = match source {
            Source::BrokerA => &parts.broker_a_lane,
            Source::Public => &parts.public_lane,
        };
        // A refusal is reported like any other failure.
        let _ = lane.submit(deadline_ms, move || {
            report.outcome = match (source, token, public) {
                (Source::BrokerA, Some(token), _) => {
                    Some(broker_a.daily_candles(token, from, to).map(Some))
                }
                (Source::Public, _, Some(public)) => Some(public.daily_candles(&symbol, from, to)),
                _ => Some(Ok(None)),
            };
            drop(report);
        });
    }

    /// Whether candles may take one of the public provider's slots.
    pub(crate) fn may_ask_public(&self, turn: Turn, now_mono_ms: u64) -> bool {
        if turn.close_is_pricing || turn.public_is_asking {
            return false;
        }
        let since_mono_ms = self.public.asked_mono_ms.unwrap_or(0).max(self.began_mono_ms);
        let idle_ms = now_mono_ms.saturating_sub(since_mono_ms);
        match (turn.somebody_waits, turn.before_rounds) {
            (true, _) => turn.before_rounds && idle_ms >= STARVED_WHILE_WAITED_MS,
            (false, true) => idle_ms >= STARVED_MS,
            (false, false) => true,
        }
    }

    fn availability(&self, parts: &WarmerContext, date: Date, now_mono_ms: u64) -> Sources {
        let broker_a = of_readiness(parts.broker_a.candles_readiness());
        let public = parts.public.as_ref().map_or(Availability::Absent, |public| {
            let settled = settled_date(&parts.calendar, Source::Public, parts.clock.now());
            match of_readiness(public.readiness()) {
                // It is late by nature.
                Availability::Ready if settled < Some(date) => Availability::Soon,
                ready => ready,
            }
        });
        let patience_ended = now_mono_ms.saturating_sub(self.began_mono_ms) >= PATIENCE_MS;
        Sources { broker_a, public, patience_ended }
    }

    fn next_symbol(
        &mut self,
        source: Source,
        date: Date,
        usual: Sources,
        now_mono_ms: u64,
    ) -> Option<usize> {
        let Self { tracked, tokens, tokens_learned, .. } = self;
        tracked.iter_mut().position(|tracked| {
            let mut sources = usual;
            if tokens.of(&tracked.symbol).is_none() && usual.broker_a != Availability::Absent {
                // Before the day's list has been read, it may have one.
                let unknown = !*tokens_learned;
                sources.broker_a = if unknown { Availability::Later } else { Availability::Absent };
            }
            tracked.source_to_ask(date, sources, now_mono_ms) == Some(source)
        })
    }

    /// Takes in how a call ended.
    pub fn take(&mut self, fetched: Fetched, now_mono_ms: u64) {
        let source = fetched.source;
        let call = self.call_mut(source);
        let Some(Asked { at, purpose, from, to }) = call.asked.take() else { return };
        let Purpose::Stored { whole } = purpose else {
            return self.take_running(at, to, fetched, now_mono_ms);
        };
        let failure = match fetched.outcome {
            Some(Ok(Some(read))) => {
                call.failure = None;
                let tracked = &self.tracked[at];
                self.arrived.push_back(Arrived {
                    at,
                    symbol: tracked.symbol.clone(),
                    source,
                    read,
                    whole,
                    strict: source == Source::BrokerA && !tracked.patchy,
                    from,
                    to,
                    held: tracked.history.clone(),
                });
                return;
            }
            Some(Ok(None)) => {
                call.failure = None;
                let tracked = &mut self.tracked[at];
                tracing::warn!(symbol = %tracked.symbol, source = source.as_str(), "no candles");
                tracked.in_flight = false;
                tracked.failed(source, true, now_mono_ms);
                return;
            }
            failed => failed.and_then(Result::err),
        };
        self.tracked[at].in_flight = false;
        self.failed(source, at, failure.as_ref(), now_mono_ms);
    }

    fn failed(&mut self, source: Source, at: usize, error: Option<&BrokerError>, now_mono_ms: u64) {
        let text = text_of(error);
        let tracked = &mut self.tracked[at];
        match error.map(|error| error.kind) {
            // Pace, circuit or token: asked again when it is ready.
            Some(BrokerErrorKind::NotReady(_)) => return,
            Some(BrokerErrorKind::Refused) => {
                tracing::warn!(symbol = %tracked.symbol, error = %text, "no candles");
                tracked.failed(source, true, now_mono_ms);
                return;
            }
            Some(
                BrokerErrorKind::RateLimited
                | BrokerErrorKind::TokenDead
                | BrokerErrorKind::NotPermitted
                | BrokerErrorKind::AccountProblem
                | BrokerErrorKind::SecondFactorProblem,
            ) => {}
            _ => tracked.failed(source, false, now_mono_ms),
        }
        self.rest(source, at, text, now_mono_ms);
    }

    /// After a call that failed as such its feed has a rest.
    pub(crate) fn rest(&mut self, source: Source, at: usize, text: String, now_mono_ms: u64) {
        let symbol = self.tracked[at].symbol.clone();
        let call = self.call_mut(source);
        call.rests_until_mono_ms = now_mono_ms + FAILED_RETRY_MS;
        if call.failure.as_ref() != Some(&text) {
            tracing::warn!(source = source.as_str(), %symbol, error = %text, "no candles");
        }
        call.failure = Some(text);
    }

    /// Whether a call of this very tick takes the feed's slot.
    pub fn asks_now(&self, source: Source, now_mono_ms: u64) -> bool {
        let call = self.call(source);
        call.is_asking() && call.asked_mono_ms == Some(now_mono_ms)
    }

    /// Milliseconds until broker A's pace lets the next call out, while there are some to make.
    pub fn wait_ms(&self, parts: &WarmerContext) -> u64 {
        let Some(date) = self.target else { return u64::MAX };
        let nothing_left = || {
            let settled = self.tracked.iter().all(|tracked| tracked.is_settled(date));
            settled && self.provisional.next(Source::BrokerA).is_none()
        };
        if self.broker_a.is_asking() || nothing_left() {
            return u64::MAX;
        }
        match parts.broker_a.candles_readiness() {
            Readiness::Paced(wait) => wait.as_millis() as u64 + 1,
            _ => u64::MAX,
        }
    }

    fn call(&self, source: Source) -> &Call {
        match source {
            Source::BrokerA => &self.broker_a,
            Source::Public => &self.public,
        }
    }

    pub(crate) fn call_mut(&mut self, source: Source) -> &mut Call {
        match source {
            Source::BrokerA => &mut self.broker_a,
            Source::Public => &mut self.public,
        }
    }
}

pub(crate) fn text_of(error: Option<&BrokerError>) -> String {
    error.map_or("the call was lost".to_owned(), ToString::to_string)
}

fn ready(source: Source, sources: Sources) -> Availability {
    match source {
        Source::BrokerA => sources.broker_a,
        Source::Public => sources.public,
    }
}

pub(crate) fn of_readiness(readiness: Readiness) -> Availability {
    match readiness {
        Readiness::Ready => Availability::Ready,
        Readiness::Paced(_) => Availability::Soon,
        Readiness::Open(_) => Availability::Later,
        Readiness::NoToken | Readiness::NoPermission | Readiness::Off => Availability::Absent,
    }
}

fn candles_event(source: Source, outcome: Option<Answer>) -> Event {
    Event::Candles(Box::new(Fetched { source, outcome }))
}

/// How many symbols are what.
pub(crate) fn counted(tracked: &[TrackedSymbol], holds: impl Fn(&TrackedSymbol) -> bool) -> usize {
    tracked.iter().filter(|tracked| holds(tracked)).count()
}
