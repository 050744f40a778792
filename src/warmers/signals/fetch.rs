//! Asks the feeds for candles: decides when, which feed and for which symbol, and judges the
//! answers. Runs on the scheduler's thread, except for the calls, which are jobs of the feeds'
//! lanes.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;

use super::symbol::{Availability, Sources};
use crate::base::{BySource, Source, Symbol, clock};
use crate::brokers::{BrokerError, BrokerErrorKind, DailyCandles, MarketFeed, Readiness};
use crate::market::MarketCalendar;
use crate::rt::lanes::Outcomes;
use crate::signals::history::SESSIONS_KEPT;
use crate::store::CandleHistory;
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::feed_state::CLOSE_MARGIN;
use crate::warmers::signals::histories::Histories;

/// Pause of a source after a call failed for other reasons than its symbol.
const FAILED_RETRY_MS: u64 = 30_000;
/// A date that has been due for this long need not wait for its history's source.
const PATIENCE_MS: u64 = 60 * 60_000;
/// Polls of quotes go first. If they leave the public provider no call, candles still take one in
/// this time, and in the longer one while requests wait.
const STARVED_MS: u64 = 60_000;
const STARVED_WHILE_WAITED_MS: u64 = 10 * 60_000;
/// Maximum answers that wait to be stored. No call is made beyond it.
const ARRIVED_MAX: usize = 2;

/// Result of a call; `None` if the source does not have the symbol.
pub(crate) type Answer = Result<Option<DailyCandles>, BrokerError>;

/// The scheduler's state when it runs the task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickState {
    pub requests_wait: bool,
    pub close_is_pricing: bool,
    pub public_is_asking: bool,
    /// The tick's polls have not gone out yet.
    pub before_polls: bool,
}

/// The date whose candles are due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DueDate {
    pub(crate) date: Date,
    /// Time at which it came due or this process began.
    pub(crate) began_mono_ms: u64,
}

/// Candles that a source sent, to be judged and stored.
pub(crate) struct Arrived {
    pub at: usize,
    pub symbol: Symbol,
    pub source: Source,
    pub read: DailyCandles,
    /// The whole history was asked for.
    pub whole: bool,
    /// Its candles may be without volume.
    pub is_index: bool,
    /// Whether holes are a reason to ask again.
    pub strict: bool,
    /// The requested days.
    pub from: Date,
    pub to: Date,
    pub held: Option<CandleHistory>,
    /// The exchange's base price of the last day, in ten-thousandths, if a quote has it.
    pub base_e4: Option<i64>,
}

/// The calls to both sources, and the answers that wait to be stored.
pub(crate) struct CandleCalls {
    calls: BySource<Call>,
    outcomes: BySource<Outcomes<Box<Answer>>>,
    /// Dropped if another node has led since they arrived.
    pub arrived: VecDeque<Arrived>,
}

/// The calls to one source.
#[derive(Default)]
struct Call {
    asked: Option<Asked>,
    asked_mono_ms: Option<u64>,
    rests_until_mono_ms: u64,
    /// Failure of the last call, cleared by a success.
    failure: Option<String>,
}

/// The content of the call under way.
struct Asked {
    at: usize,
    /// The whole history, or the candles after the last.
    whole: bool,
    from: Date,
    to: Date,
}

impl CandleCalls {
    pub(crate) fn new(outcomes: BySource<Outcomes<Box<Answer>>>) -> Self {
        Self {
            calls: BySource::default(),
            outcomes,
            arrived: VecDeque::new(),
        }
    }

    /// Whether a call to the source is under way.
    pub(crate) fn is_asking(&self, source: Source) -> bool {
        self.calls[source].asked.is_some()
    }

    /// Whether the last call to some source failed.
    pub(crate) fn is_failing(&self) -> bool {
        Source::ALL.into_iter().any(|source| self.fails(source))
    }

    /// Whether the last call to this source failed.
    pub(crate) fn fails(&self, source: Source) -> bool {
        self.calls[source].failure.is_some()
    }

    /// Whether candles of the symbol at this position are being fetched, or wait to be stored.
    pub(crate) fn has_in_flight(&self, place: usize) -> bool {
        let fetches = |call: &Call| call.asked.as_ref().is_some_and(|asked| asked.at == place);
        self.calls.0.iter().any(fetches) || self.arrived.iter().any(|arrived| arrived.at == place)
    }

    /// Sends one call to `source` if it may be asked and a candle is missing.
    pub(crate) fn ask(
        &mut self,
        source: Source,
        due: DueDate,
        histories: &mut Histories,
        context: &WarmerContext,
        tick: TickState,
        now_mono_ms: u64,
    ) {
        let call = &self.calls[source];
        if call.asked.is_some()
            || now_mono_ms < call.rests_until_mono_ms
            || self.arrived.len() >= ARRIVED_MAX
            || (source == Source::Public
                && !self.may_ask_public(tick, due.began_mono_ms, now_mono_ms))
        {
            return;
        }
        let sources = sources(context, due, now_mono_ms);
        if sources.of[source] != Availability::Ready {
            return;
        }
        let date = due.date;
        let at = match histories.next_to_ask(source, date, sources, false, now_mono_ms) {
            // What is only drawn comes after everything of which signals are made.
            None if histories.are_settled(date) => {
                histories.next_to_ask(source, date, sources, true, now_mono_ms)
            }
            at => at,
        };
        if let Some(at) = at {
            let asked = missing(histories, context, source, at, date);
            self.send(source, asked, histories, context, now_mono_ms);
        }
    }

    fn send(
        &mut self,
        source: Source,
        asked: Asked,
        histories: &Histories,
        context: &WarmerContext,
        now_mono_ms: u64,
    ) {
        let symbol = histories.tracked[asked.at].symbol.clone();
        let token = histories.tokens().0.of(&symbol);
        let from = asked.from;
        let to = asked.to;
        let call = &mut self.calls[source];
        call.asked = Some(asked);
        call.asked_mono_ms = Some(now_mono_ms);
        let broker_a = Arc::clone(&context.broker_a);
        let public = context.public.clone();
        let lead = context.lead.clone();
        let lane = match source {
            Source::BrokerA => &context.broker_a_lane,
            Source::Public => &context.public_lane,
        };
        // A refused job is reported like any other failure.
        let outcomes = &self.outcomes[source];
        let _ = outcomes.submit(lane, context.call_deadline_ms(), move || {
            Box::new(lead.call(source, || match (source, token, public) {
                (Source::BrokerA, Some(token), _) => {
                    broker_a.daily_candles(token, from, to).map(Some)
                }
                (Source::Public, _, Some(public)) => public.daily_candles(&symbol, from, to),
                _ => Ok(None),
            }))
        });
    }

    /// Whether a call for candles may go to the public provider.
    pub(crate) fn may_ask_public(
        &self,
        tick: TickState,
        began_mono_ms: u64,
        now_mono_ms: u64,
    ) -> bool {
        if tick.close_is_pricing || tick.public_is_asking {
            return false;
        }
        let since_mono_ms = self.calls[Source::Public]
            .asked_mono_ms
            .unwrap_or(0)
            .max(began_mono_ms);
        let idle_ms = now_mono_ms.saturating_sub(since_mono_ms);
        match (tick.requests_wait, tick.before_polls) {
            (true, _) => tick.before_polls && idle_ms >= STARVED_WHILE_WAITED_MS,
            (false, true) => idle_ms >= STARVED_MS,
            (false, false) => true,
        }
    }

    /// Takes the result of a call; `None` if it was lost.
    pub(crate) fn take(
        &mut self,
        source: Source,
        answer: Option<Answer>,
        histories: &mut Histories,
        now_mono_ms: u64,
    ) {
        let call = &mut self.calls[source];
        let Some(asked) = call.asked.take() else {
            return;
        };
        let tracked = &mut histories.tracked[asked.at];
        match answer {
            Some(Ok(Some(read))) => {
                call.failure = None;
                let Asked {
                    at,
                    whole,
                    from,
                    to,
                } = asked;
                self.arrived.push_back(Arrived {
                    at,
                    symbol: tracked.symbol.clone(),
                    source,
                    read,
                    whole,
                    is_index: tracked.is_index,
                    strict: tracked.is_strict(source),
                    from,
                    to,
                    held: tracked.history.clone(),
                    base_e4: None,
                });
            }
            Some(Ok(None)) => {
                call.failure = None;
                tracing::warn!(
                    symbol = %tracked.symbol,
                    source = source.as_str(),
                    "source has no daily candles of this symbol"
                );
                tracked.in_flight = false;
                tracked.failed(source, true, now_mono_ms);
            }
            failed => {
                tracked.in_flight = false;
                let error = failed.and_then(Result::err);
                call.failed(source, histories, &asked, error.as_ref(), now_mono_ms);
            }
        }
    }

    /// Whether a call of this tick goes to the source.
    pub(crate) fn asks_now(&self, source: Source, now_mono_ms: u64) -> bool {
        let call = &self.calls[source];
        call.asked.is_some() && call.asked_mono_ms == Some(now_mono_ms)
    }
}

impl Call {
    fn failed(
        &mut self,
        source: Source,
        histories: &mut Histories,
        asked: &Asked,
        error: Option<&BrokerError>,
        now_mono_ms: u64,
    ) {
        let text = text_of(error);
        let tracked = &mut histories.tracked[asked.at];
        match error.map(|error| error.kind) {
            // Rate limit, circuit or token: the call is repeated when the source is ready.
            Some(BrokerErrorKind::NotReady(_)) => return,
            Some(BrokerErrorKind::Refused) => {
                tracing::warn!(
                    symbol = %tracked.symbol,
                    error = %text,
                    "source refuses daily candles of this symbol"
                );
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
        self.rest(source, histories, asked, text, now_mono_ms);
    }

    /// Pauses the source after a call that failed for other reasons than its symbol.
    fn rest(
        &mut self,
        source: Source,
        histories: &Histories,
        asked: &Asked,
        text: String,
        now_mono_ms: u64,
    ) {
        let symbol = &histories.tracked[asked.at].symbol;
        self.rests_until_mono_ms = now_mono_ms + FAILED_RETRY_MS;
        if self.failure.as_ref() != Some(&text) {
            tracing::warn!(
                source = source.as_str(),
                %symbol,
                error = %text,
                "source gave no daily candles; trying again"
            );
        }
        self.failure = Some(text);
    }
}

/// The call for the missing candles of a symbol up to `date`.
fn missing(
    histories: &mut Histories,
    context: &WarmerContext,
    source: Source,
    at: usize,
    date: Date,
) -> Asked {
    let tracked = &mut histories.tracked[at];
    tracked.in_flight = true;
    let whole = tracked.wants_whole(date, source);
    let from = match tracked.last() {
        Some(last) if !whole => overlap_from(&context.calendar, last),
        _ => window_from(&context.calendar, date),
    };
    Asked {
        at,
        whole,
        from,
        to: date,
    }
}

fn sources(context: &WarmerContext, due: DueDate, now_mono_ms: u64) -> Sources {
    let public = match availability(context, Source::Public) {
        // The public provider is late by its nature.
        Availability::Ready
            if settled_date(&context.calendar, Source::Public, context.clock.now())
                < Some(due.date) =>
        {
            Availability::Soon
        }
        availability => availability,
    };
    let patience_ended = now_mono_ms.saturating_sub(due.began_mono_ms) >= PATIENCE_MS;
    let of = BySource([availability(context, Source::BrokerA), public]);
    Sources { of, patience_ended }
}

/// Whether a source can be asked for candles.
pub(crate) fn availability(context: &WarmerContext, source: Source) -> Availability {
    let readiness = match source {
        Source::BrokerA => context.broker_a.candles_readiness(),
        Source::Public => context
            .public
            .as_ref()
            .map_or(Readiness::Off, |public| public.readiness()),
    };
    match readiness {
        Readiness::Ready => Availability::Ready,
        Readiness::Paced(_) => Availability::Soon,
        Readiness::Open(_) => Availability::Later,
        Readiness::NoToken | Readiness::NoPermission | Readiness::Off | Readiness::Follows => {
            Availability::Absent
        }
    }
}

fn text_of(error: Option<&BrokerError>) -> String {
    error.map_or("the call was lost".to_owned(), ToString::to_string)
}

// ---- Sessions
//
// Decides which trading date's candles are due, and how far back they are kept. Pure.

/// Stored sessions that are fetched again with the new ones, to notice a rewritten history.
const OVERLAP_SESSIONS: usize = 5;

/// The latest trading date with an official close whose finished candle `source` can be expected to
/// have. `None` if the calendar does not know it.
pub(crate) fn settled_date(
    calendar: &MarketCalendar,
    source: Source,
    now: Timestamp,
) -> Option<Date> {
    let today = clock::zoned(now).date();
    match calendar.official_close(today) {
        Some(close) if now.duration_since(close) >= CLOSE_MARGIN[source] => Some(today),
        _ => {
            let before = |date: &Date| calendar.previous_trading_date(*date);
            let mut dates = std::iter::successors(before(&today), before);
            dates.find(|date| calendar.official_close(*date).is_some())
        }
    }
}

/// The first session of a whole history that ends at `to`.
pub(crate) fn window_from(calendar: &MarketCalendar, to: Date) -> Date {
    back(calendar, to, SESSIONS_KEPT - 1)
}

/// First date to ask for, to fetch the candles after `last`.
pub(crate) fn overlap_from(calendar: &MarketCalendar, last: Date) -> Date {
    back(calendar, last, OVERLAP_SESSIONS - 1)
}

/// The date `sessions` sessions back, or as far back as the calendar knows.
fn back(calendar: &MarketCalendar, from: Date, sessions: usize) -> Date {
    let mut date = from;
    for _ in 0..sessions {
        match calendar.previous_trading_date(date) {
            Some(before) => date = before,
            None => break,
        }
    }
    date
}

#[cfg(test)]
mod sessions_tests {
    use super::*;

    fn settled(source: Source, now: &str) -> Option<String> {
        let date = settled_date(&MarketCalendar::embedded(), source, now.parse().unwrap());
        date.map(|date| date.to_string())
    }

    #[test]
    fn a_date_settles_after_its_close_and_stays_due_until_the_next_one_has() {
        let a = Source::BrokerA;
        let public = Source::Public;
        for (source, now, expected) in [
            (a, "2026-11-20T15:44:59+05:30", Some("2026-11-19")),
            (a, "2026-11-20T15:45:00+05:30", Some("2026-11-20")),
            (public, "2026-11-20T16:04:59+05:30", Some("2026-11-19")),
            (public, "2026-11-20T16:05:00+05:30", Some("2026-11-20")),
            // Due through the weekend and Monday's session. Tuesday the 24th is a holiday.
            (a, "2026-11-23T12:00:00+05:30", Some("2026-11-20")),
            (a, "2026-11-24T18:00:00+05:30", Some("2026-11-23")),
            // A special session on a holiday.
            (a, "2025-10-21T13:00:00+05:30", Some("2025-10-20")),
            (a, "2025-10-21T23:00:00+05:30", Some("2025-10-21")),
            // Nothing is official of a session whose hours are a placeholder.
            (a, "2026-11-08T23:00:00+05:30", Some("2026-11-06")),
            (a, "2026-11-09T12:00:00+05:30", Some("2026-11-06")),
            (a, "2026-12-07T15:49:59+05:30", Some("2026-12-04")),
            (a, "2026-12-07T15:50:00+05:30", Some("2026-12-07")),
            (a, "2027-01-01T20:00:00+05:30", Some("2026-12-31")),
            (a, "2027-01-04T12:00:00+05:30", None),
            (a, "2027-02-01T12:00:00+05:30", None),
        ] {
            assert_eq!(settled(source, now).as_deref(), expected, "{source:?} {now}");
        }
    }

    #[test]
    fn the_window_is_as_deep_as_asked_or_known() {
        let calendar = MarketCalendar::embedded();
        let to = jiff::civil::date(2026, 11, 20);
        let from = window_from(&calendar, to);
        let days = from
            .series(jiff::Span::new().days(1))
            .take_while(|date| *date <= to);
        let sessions = days.filter(|date| calendar.is_trading_date(*date)).count();
        assert_eq!(sessions, SESSIONS_KEPT, "{from}");
        assert_eq!(overlap_from(&calendar, to).to_string(), "2026-11-16");
        let early = window_from(&calendar, jiff::civil::date(2023, 3, 1));
        assert_eq!(early.year(), 2023, "not guessed beyond what the calendar knows");
    }
}
