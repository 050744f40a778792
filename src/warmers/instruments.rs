//! The daily instrument list: when it is due, and the lane job that fetches it.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;
use jiff::Timestamp;
use jiff::civil::Date;

use super::context::WarmerContext;
use super::event::Event;
use super::event::JobReport;
use super::event::lost;
use crate::base::{Exchange, ist};
use crate::brokers::broker_a::Tokens;
use crate::brokers::{BrokerA, BrokerError, BrokerErrorKind, Readiness};
use crate::market::{InstrumentList, Origin};
use crate::rt::coroutines;

/// Broker A rebuilds its file about 08:30 IST.
const READY_AT_S: i64 = 8 * 3600 + 30 * 60;

/// After a failure, and at least between two attempts.
const RETRY_MS: u64 = 5 * 60_000;

/// Two files of megabytes.
const FETCH_DEADLINE_MS: u64 = 90_000;

/// The second file's call may have to keep its distance from the first.
const PACE_WAIT_MAX: Duration = Duration::from_secs(1);

/// State of the fetch.
#[derive(Default)]
pub struct InstrumentsWarmer {
    in_flight: bool,
    asked_mono_ms: Option<u64>,
    pub failure: Option<String>,
}

impl InstrumentsWarmer {
    /// No fetch is under way.
    pub fn is_idle(&self) -> bool {
        !self.in_flight
    }

    /// Starts a fetch if the list is of an earlier day, or read back and broker A's tokens of some
    /// symbol are unknown, and a token can be had. `tokens` learn from what comes.
    pub fn poll(
        &mut self,
        parts: &WarmerContext,
        tokens: &Tokens,
        tokens_learned: bool,
        now_mono_ms: u64,
        events: &Sender<Event>,
    ) {
        let now = parts.clock.now();
        let rested = self.asked_mono_ms.is_none_or(|asked| now_mono_ms - asked >= RETRY_MS);
        let list = parts.instruments.load();
        let current = list.origin() == Origin::BrokerA
            && list.as_of() >= list_date(now)
            && (tokens_learned || tokens.lacking().is_empty());
        drop(list);
        if self.in_flight || !rested || current || parts.token.usable(now).is_err() {
            return;
        }
        self.asked_mono_ms = Some(now_mono_ms);
        let tokens = tokens.clone();
        let broker_a = Arc::clone(&parts.broker_a);
        let as_event = |fetched: Option<_>| Event::Instruments(fetched.unwrap_or_else(lost));
        let mut report = JobReport { events: events.clone(), outcome: None, as_event };
        // Before it is sent: whatever becomes of it is reported.
        self.in_flight = true;
        // A refusal is reported and logged like any other failure.
        let _ = parts.broker_a_lane.submit(FETCH_DEADLINE_MS, move || {
            report.outcome = Some(fetch(&broker_a, tokens, list_date(now)));
            drop(report);
        });
    }

    /// Takes note of how a fetch ended.
    pub fn ended(&mut self, failure: Option<String>) {
        self.in_flight = false;
        if let Some(failure) = &failure {
            tracing::warn!(%failure, "instrument list not fetched; keeping the one at hand");
        }
        self.failure = failure;
    }
}

/// The date of the newest list that the broker can have.
fn list_date(now: Timestamp) -> Date {
    let zoned = ist::zoned(now);
    let seconds = i64::from(zoned.hour()) * 3600 + i64::from(zoned.minute()) * 60;
    let today = zoned.date();
    if seconds >= READY_AT_S { today } else { today.yesterday().unwrap_or(today) }
}

/// Calls again once where the broker's pace held the first call back for a moment.
fn paced<T>(call: impl Fn() -> Result<T, BrokerError>) -> Result<T, BrokerError> {
    match call() {
        Err(BrokerError { kind: BrokerErrorKind::NotReady(Readiness::Paced(wait)), .. })
            if wait <= PACE_WAIT_MAX =>
        {
            coroutines::Parker::current().park(wait.as_millis() as u64 + 1);
            call()
        }
        other => other,
    }
}

fn fetch(
    broker_a: &BrokerA,
    mut tokens: Tokens,
    as_of: Date,
) -> Result<Box<(InstrumentList, Tokens)>, String> {
    let mut symbols = Vec::new();
    for exchange in [Exchange::Nse, Exchange::Bse] {
        let list = paced(|| broker_a.instruments(exchange)).map_err(|error| error.to_string())?;
        tracing::info!(
            exchange = exchange.as_str(),
            listed = list.listed.len(),
            skipped = list.skipped,
            "instruments fetched"
        );
        tokens.learn(exchange, &list);
        symbols.extend(list.listed.into_iter().map(|listed| listed.symbol));
    }
    let list = InstrumentList::from_symbols(symbols, Origin::BrokerA, as_of);
    Ok(Box::new((list.map_err(|error| error.to_string())?, tokens)))
}
