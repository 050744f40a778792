//! The daily instrument list: decides when it is due, and fetches and judges it in a lane job. A
//! list that is not believed is asked for again, and the last one stays.

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
use crate::market::list_belief::{Doubt, doubt};
use crate::market::{InstrumentList, Origin, Universe};
use crate::nodes::Lead;
use crate::rt::coroutines;
use crate::rt::lanes::{LOST, Outcomes};
use crate::store::Store;

/// Broker A rebuilds its file about 08:30 IST.
const READY_AT_S: i64 = 8 * 3600 + 30 * 60;

/// Minimum interval between two attempts with the same token.
const RETRY_MS: u64 = 5 * 60_000;

/// Deadline of a fetch: two files of some megabytes.
const FETCH_DEADLINE_MS: u64 = 90_000;

/// Maximum total wait for the broker's rate limit. The two files' calls and the quote polls share
/// it, and a poll may come first again and again.
const PACE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A list that is doubted for this many days is believed: then the exchange's list has changed.
const DOUBTED_DAYS_MAX: i32 = 3;

/// A day's list that was fetched.
pub(crate) struct DaysList {
    list: InstrumentList,
    /// Broker A's tokens of the universe.
    tokens: Tokens,
    /// Rows that could not be read.
    unread: u64,
}

/// Why a fetch brought no list.
#[derive(Debug)]
pub(crate) enum NoList {
    Failed(String),
    /// It came on this date, and is not believed.
    Doubted(Date, Doubt),
}

pub(crate) type Fetched = Result<DaysList, NoList>;

/// Owner of the fetch's state.
pub(crate) struct InstrumentsTask {
    outcomes: Outcomes<Box<Fetched>>,
    pub in_flight: bool,
    /// Monotonic time of the last attempt, and the time at which its token was set.
    asked: Option<(u64, Timestamp)>,
    pub failure: Option<String>,
    /// The date since which each list was doubted.
    doubted_since: Option<Date>,
    /// Rows of the list in force that could not be read.
    pub unread: u64,
}

impl InstrumentsTask {
    pub(super) fn new(outcomes: Outcomes<Box<Fetched>>) -> Self {
        Self {
            outcomes,
            in_flight: false,
            asked: None,
            failure: None,
            doubted_since: None,
            unread: 0,
        }
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
        let as_of = list_date(now);
        let before = Before {
            last: context.instruments.load_full(),
            universe: context.universe.clone(),
            store: Arc::clone(&context.store),
            held_max: context.close.symbols_max,
            is_believed: self.doubted_since.is_some_and(|since| {
                as_of.since(since).is_ok_and(|span| span.get_days() >= DOUBTED_DAYS_MAX)
            }),
        };
        self.in_flight = true;
        // A refused job is reported and logged like any other failure.
        let _ = self.outcomes.submit(&context.broker_a_lane, FETCH_DEADLINE_MS, move || {
            Box::new(fetch(&broker_a, &lead, tokens, as_of).and_then(|list| before.judged(list)))
        });
    }

    /// Takes the result of a fetch; `None` if the current list stays in use.
    pub(super) fn ended(
        &mut self,
        fetched: Option<Box<Fetched>>,
    ) -> Option<(InstrumentList, Tokens)> {
        self.in_flight = false;
        let failure = match fetched.map(|fetched| *fetched) {
            Some(Ok(DaysList { list, tokens, unread })) => {
                self.failure = None;
                self.doubted_since = None;
                self.unread = unread;
                return Some((list, tokens));
            }
            Some(Err(NoList::Doubted(on, doubt))) => {
                self.doubted_since.get_or_insert(on);
                format!("broker A's list is not believed: {doubt}")
            }
            Some(Err(NoList::Failed(failure))) => failure,
            None => LOST.to_owned(),
        };
        tracing::warn!(%failure, "no list of instruments; the last one stays in use");
        self.failure = Some(failure);
        None
    }
}

/// What a list is judged by.
struct Before {
    last: Arc<InstrumentList>,
    universe: Universe,
    store: Arc<Store>,
    held_max: usize,
    /// Lists were doubted for so long that this one is believed.
    is_believed: bool,
}

impl Before {
    fn judged(&self, fetched: DaysList) -> Fetched {
        // Without the store the universe alone judges.
        let held = self.store.held_symbols(None, self.held_max).unwrap_or_default();
        let needed = self.universe.symbols().iter().chain(&held);
        match doubt(&fetched.list, &self.last, needed, fetched.unread) {
            Some(doubt) if self.is_believed => {
                tracing::warn!(%doubt, "broker A's list is believed after some days");
                Ok(fetched)
            }
            Some(doubt) => Err(NoList::Doubted(fetched.list.as_of(), doubt)),
            None => Ok(fetched),
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
    let (mut rows, mut unread) = (Vec::new(), 0);
    for exchange in [Exchange::Nse, Exchange::Bse] {
        let call = || lead.call(Source::BrokerA, || broker_a.instruments(exchange));
        let list = paced(call).map_err(|error| NoList::Failed(error.to_string()))?;
        unread += list.skipped;
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
    let list = list.map_err(|error| NoList::Failed(error.to_string()))?;
    Ok(DaysList { list, tokens, unread })
}
