//! The daily instrument list: decides when it is due, and fetches it in a lane job.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;

use super::context::WarmerContext;
use crate::base::{Exchange, Source, clock};
use crate::brokers::broker_a::Tokens;
use crate::brokers::broker_a::instruments::Listed;
use crate::brokers::{BrokerA, BrokerError, BrokerErrorKind, Readiness};
use crate::market::instruments::Named;
use crate::market::{InstrumentList, Origin};
use crate::nodes::Lead;
use crate::rt::coroutines;
use crate::rt::lanes::{LOST, Outcomes};

/// Broker A rebuilds its file about 08:30 IST.
const READY_AT_S: i64 = 8 * 3600 + 30 * 60;

/// Minimum interval between two attempts with the same token.
const RETRY_MS: u64 = 5 * 60_000;

/// Deadline of a fetch: two files of some megabytes.
const FETCH_DEADLINE_MS: u64 = 90_000;

/// Maximum total wait for the broker's rate limit. The two files' calls and the quote polls share
/// it, and a poll may come first again and again.
const PACE_WAIT_MAX: Duration = Duration::from_secs(10);

/// Result of a fetch: the list, and broker A's tokens of the universe.
pub(crate) type Fetched = Result<(InstrumentList, Tokens), String>;

/// Owner of the fetch's state.
pub(crate) struct InstrumentsTask {
    outcomes: Outcomes<Box<Fetched>>,
    pub in_flight: bool,
    /// Monotonic time of the last attempt, and the time at which its token was set.
    asked: Option<(u64, Timestamp)>,
    pub failure: Option<String>,
}

impl InstrumentsTask {
    pub(super) fn new(outcomes: Outcomes<Box<Fetched>>) -> Self {
        Self { outcomes, in_flight: false, asked: None, failure: None }
    }

    /// Starts a fetch if a usable token exists and either the list is of an earlier day, or broker
    /// A's tokens of some symbols are unknown because the list was restored. A new token starts one
    /// at once. The fetch adds to `tokens`.
    pub(super) fn poll(
        &mut self,
        context: &WarmerContext,
        tokens: &Tokens,
        tokens_learned: bool,
        now_mono_ms: u64,
    ) {
        let now = context.clock.now();
        let list = context.instruments.load();
        let current = list.origin() == Origin::BrokerA
            && list.as_of() >= list_date(now)
            && (tokens_learned || tokens.lacking().is_empty());
        drop(list);
        if self.in_flight || current {
            return;
        }
        let Ok(token) = context.token.usable(now) else { return };
        let token_set_at = token.given.set_at;
        let rested = self.asked.is_none_or(|(at_mono_ms, of_token)| {
            of_token != token_set_at || now_mono_ms - at_mono_ms >= RETRY_MS
        });
        if !rested {
            return;
        }
        self.asked = Some((now_mono_ms, token_set_at));
        let tokens = tokens.clone();
        let (broker_a, lead) = (Arc::clone(&context.broker_a), context.lead.clone());
        self.in_flight = true;
        // A refused job is reported and logged like any other failure.
        let _ = self.outcomes.submit(&context.broker_a_lane, FETCH_DEADLINE_MS, move || {
            Box::new(fetch(&broker_a, &lead, tokens, list_date(now)))
        });
    }

    /// Takes the result of a fetch; `None` if the current list stays in use.
    pub(super) fn ended(
        &mut self,
        fetched: Option<Box<Fetched>>,
    ) -> Option<(InstrumentList, Tokens)> {
        self.in_flight = false;
        match fetched.map_or_else(|| Err(LOST.to_owned()), |fetched| *fetched) {
            Ok(fetched) => {
                self.failure = None;
                Some(fetched)
            }
            Err(failure) => {
                tracing::warn!(%failure, "instrument list not fetched; the last one stays in use");
                self.failure = Some(failure);
                None
            }
        }
    }
}

/// The date of the newest list that the broker can have published.
fn list_date(now: Timestamp) -> Date {
    let zoned = clock::zoned(now);
    let seconds = i64::from(zoned.hour()) * 3600 + i64::from(zoned.minute()) * 60;
    let today = zoned.date();
    if seconds >= READY_AT_S { today } else { today.yesterday().unwrap_or(today) }
}

/// Repeats a call while the broker's rate limit delays it, up to `PACE_WAIT_MAX` in all.
fn paced<T>(call: impl Fn() -> Result<T, BrokerError>) -> Result<T, BrokerError> {
    let parker = coroutines::Parker::current();
    let mut left = PACE_WAIT_MAX;
    loop {
        match call() {
            Err(BrokerError {
                kind: BrokerErrorKind::NotReady(Readiness::Paced(wait)), ..
            }) if wait <= left => {
                // Round up to whole milliseconds, so that the wait is never zero.
                let wait_ms = wait.as_millis() as u64 + 1;
                left = left.saturating_sub(Duration::from_millis(wait_ms));
                parker.park(wait_ms);
            }
            other => return other,
        }
    }
}

fn fetch(broker_a: &BrokerA, lead: &Lead, mut tokens: Tokens, as_of: Date) -> Fetched {
    let mut rows = Vec::new();
    for exchange in [Exchange::Nse, Exchange::Bse] {
        let call = || lead.call(Source::BrokerA, || broker_a.instruments(exchange));
        let list = paced(call).map_err(|error| error.to_string())?;
        tracing::info!(
            exchange = exchange.as_str(),
            listed = list.listed.len(),
            skipped = list.skipped,
            "instruments fetched"
        );
        tokens.learn(exchange, &list);
        let named = |listed: Listed| Named { symbol: listed.symbol, name: listed.name };
        rows.extend(list.listed.into_iter().map(named));
    }
    let list = InstrumentList::from_rows(rows, Origin::BrokerA, as_of);
    Ok((list.map_err(|error| error.to_string())?, tokens))
}
