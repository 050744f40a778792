//! The daily instrument list and the list of derivatives: decides when they are due, and fetches
//! and judges them in a lane job. A list that is not believed is asked for again, and the last one
//! stays.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;

use super::context::WarmerContext;
use crate::base::{Exchange, Source, clock};
use crate::brokers::broker_a::Tokens;
use crate::brokers::broker_a::instruments::{DerivativesList, Listed};
use crate::brokers::{BrokerA, BrokerError, BrokerErrorKind, Readiness};
use crate::market::list_belief::doubt;
use crate::market::search::Named;
use crate::market::{InstrumentList, Origin, Underlyings, Universe};
use crate::nodes::Lead;
use crate::rt::lanes::{LOST, Outcomes};
use crate::rt::moving;
use crate::store::Store;

/// Broker A rebuilds its file about 08:30 IST.
const READY_AT_S: i64 = 8 * 3600 + 30 * 60;

/// Minimum interval between two attempts with the same token.
const RETRY_MS: u64 = 5 * 60_000;

/// Deadline of a fetch: three files of some megabytes.
const FETCH_DEADLINE_MS: u64 = 90_000;

/// Maximum total wait for the broker's rate limit of one call. The files' calls and the quote polls
/// share it, and a poll may come first again and again.
const PACE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A list that is doubted for this many days is believed: then the exchange's list has changed.
const DOUBTED_DAYS_MAX: i32 = 3;

/// A day's list that was fetched.
pub(crate) struct DaysList {
    /// With the shares that have derivatives: those of the day, or of the last list.
    list: InstrumentList,
    /// Broker A's tokens of the universe.
    tokens: Tokens,
    /// Rows that could not be read.
    unread: u64,
    /// Why the derivatives are those of the last list.
    old_derivatives: Option<NoList>,
}

/// Why a fetch brought no list.
#[derive(Debug)]
pub(crate) enum NoList {
    Failed(String),
    /// It came on this date, and is not believed for this reason.
    Doubted(Date, String),
}

impl NoList {
    fn of(error: &BrokerError) -> Self {
        Self::Failed(error.to_string())
    }
}

pub(crate) type Fetched = Result<DaysList, NoList>;

/// Owner of the fetch's state.
pub(crate) struct InstrumentsTask {
    outcomes: Outcomes<Box<Fetched>>,
    pub in_flight: bool,
    /// Monotonic time of the last attempt, and the time at which its token was set.
    asked: Option<(u64, Timestamp)>,
    pub failure: Option<String>,
    /// The date since which each list was doubted, and each list of derivatives.
    doubted_since: Option<Date>,
    derivatives_doubted_since: Option<Date>,
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
            derivatives_doubted_since: None,
            unread: 0,
        }
    }

    /// Starts a fetch if a usable token exists and either the list is of an earlier day, or broker
    /// A's tokens of some symbols are unknown because the list was restored, or the list of
    /// derivatives alone is of an earlier day. A new token starts one at once. The fetch adds to
    /// `tokens`.
    pub(super) fn poll(
        &mut self,
        context: &WarmerContext,
        tokens: &Tokens,
        tokens_learned: bool,
        now_mono_ms: u64,
    ) {
        let now = context.clock.now();
        let list = context.instruments.load();
        let as_of = list_date(now);
        let is_current = list.origin() == Origin::BrokerA
            && list.as_of() >= as_of
            && (tokens_learned || tokens.lacking().is_empty());
        let has_derivatives = list.underlyings().as_of().is_some_and(|of| of >= as_of);
        drop(list);
        if self.in_flight || is_current && has_derivatives {
            return;
        }
        let Ok(token) = context.token.usable(now) else {
            return;
        };
        let token_set_at = token.given.set_at;
        let rested = self.asked.is_none_or(|(at_mono_ms, of_token)| {
            of_token != token_set_at || now_mono_ms - at_mono_ms >= RETRY_MS
        });
        if !rested {
            return;
        }
        self.asked = Some((now_mono_ms, token_set_at));
        let tokens = tokens.clone();
        let broker_a = Arc::clone(&context.broker_a);
        let lead = context.lead.clone();
        let is_believed = |doubted_since: Option<Date>| {
            let days = doubted_since.and_then(|since| as_of.since(since).ok());
            days.is_some_and(|span| span.get_days() >= DOUBTED_DAYS_MAX)
        };
        let before = Before {
            last: context.instruments.load_full(),
            universe: context.universe.clone(),
            store: Arc::clone(&context.store),
            held_max: context.close.symbols_max,
            is_believed: is_believed(self.doubted_since),
            derivatives_are_believed: is_believed(self.derivatives_doubted_since),
        };
        let unread = self.unread;
        self.in_flight = true;
        // A refused job is reported and logged like any other failure.
        let _ = self
            .outcomes
            .submit(&context.broker_a_lane, FETCH_DEADLINE_MS, move || {
                let fetched = match is_current {
                    true => Ok(before.again(tokens, unread)),
                    false => {
                        fetch(&broker_a, &lead, tokens, as_of).and_then(|list| before.judged(list))
                    }
                };
                Box::new(fetched.map(|list| before.with_derivatives(list, &broker_a, &lead, as_of)))
            });
    }

    /// Takes the result of a fetch; `None` if the current list stays in use.
    pub(super) fn ended(
        &mut self,
        fetched: Option<Box<Fetched>>,
    ) -> Option<(InstrumentList, Tokens)> {
        self.in_flight = false;
        let failure = match fetched.map(|fetched| *fetched) {
            Some(Ok(DaysList {
                list,
                tokens,
                unread,
                old_derivatives,
            })) => {
                self.failure = old_derivatives.map(|why| self.old_derivatives(why));
                if self.failure.is_none() {
                    self.derivatives_doubted_since = None;
                }
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
        tracing::warn!(%failure, "no list of instruments from broker A; the last one stays in use");
        self.failure = Some(failure);
        None
    }

    fn old_derivatives(&mut self, why: NoList) -> String {
        let failure = match why {
            NoList::Failed(failure) => format!("broker A's list of derivatives: {failure}"),
            NoList::Doubted(on, doubt) => {
                self.derivatives_doubted_since.get_or_insert(on);
                format!("broker A's list of derivatives is not believed: {doubt}")
            }
        };
        tracing::warn!(%failure, "which shares have derivatives is taken from the last list");
        failure
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
    derivatives_are_believed: bool,
}

impl Before {
    fn judged(&self, fetched: DaysList) -> Fetched {
        // Without the store the universe alone judges.
        let held = self
            .store
            .held_symbols(None, self.held_max)
            .unwrap_or_default();
        let needed = self.universe.symbols().iter().chain(&held);
        match doubt(&fetched.list, &self.last, needed, fetched.unread) {
            Some(doubt) if self.is_believed => {
                tracing::warn!(
                    %doubt,
                    "broker A's doubtful list of instruments has come for days and is used now"
                );
                Ok(fetched)
            }
            Some(doubt) => Err(NoList::Doubted(fetched.list.as_of(), doubt.to_string())),
            None => Ok(fetched),
        }
    }

    /// The list in force, for which derivatives alone are fetched.
    fn again(&self, tokens: Tokens, unread: u64) -> DaysList {
        let list = InstrumentList::clone(&self.last);
        DaysList {
            list,
            tokens,
            unread,
            old_derivatives: None,
        }
    }

    /// Adds the shares with derivatives: of the day, or else of the last list.
    fn with_derivatives(
        &self,
        fetched: DaysList,
        broker_a: &BrokerA,
        lead: &Lead,
        as_of: Date,
    ) -> DaysList {
        let call = || lead.call(Source::BrokerA, || broker_a.derivatives());
        let read = paced(call).map_err(|error| NoList::of(&error));
        let (underlyings, old_derivatives) = match read.and_then(|list| self.believed(list, as_of))
        {
            Ok(underlyings) => (underlyings, None),
            Err(why) => (self.last.underlyings().clone(), Some(why)),
        };
        DaysList {
            list: fetched.list.with_underlyings(underlyings),
            old_derivatives,
            ..fetched
        }
    }

    fn believed(&self, list: DerivativesList, as_of: Date) -> Result<Underlyings, NoList> {
        let DerivativesList {
            underlyings,
            rows,
            skipped,
        } = list;
        tracing::info!(shares = underlyings.len(), rows, skipped, "derivatives fetched");
        let underlyings = Underlyings::of_list(underlyings, as_of);
        match underlyings.doubt(self.last.underlyings(), skipped, rows) {
            Some(doubt) if self.derivatives_are_believed => {
                tracing::warn!(
                    %doubt,
                    "broker A's doubtful list of derivatives has come for days and is used now"
                );
                Ok(underlyings)
            }
            Some(doubt) => Err(NoList::Doubted(as_of, doubt.to_string())),
            None => Ok(underlyings),
        }
    }
}

/// The date of the newest list that the broker can have published.
fn list_date(now: Timestamp) -> Date {
    let zoned = clock::zoned(now);
    let seconds = i64::from(zoned.hour()) * 3600 + i64::from(zoned.minute()) * 60;
    let today = zoned.date();
    if seconds >= READY_AT_S {
        today
    } else {
        today.yesterday().unwrap_or(today)
    }
}

/// Repeats a call while the broker's rate limit delays it, up to `PACE_WAIT_MAX` in all.
fn paced<T>(call: impl Fn() -> Result<T, BrokerError>) -> Result<T, BrokerError> {
    let parker = moving::Parker::current();
    let mut left = PACE_WAIT_MAX;
    loop {
        match call() {
            Err(BrokerError {
                kind: BrokerErrorKind::NotReady(Readiness::Paced(wait)),
                ..
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
    let mut unread = 0;
    for exchange in [Exchange::Nse, Exchange::Bse] {
        let call = || lead.call(Source::BrokerA, || broker_a.instruments(exchange));
        let list = paced(call).map_err(|error| NoList::of(&error))?;
        unread += list.skipped;
        tracing::info!(
            exchange = exchange.as_str(),
            listed = list.listed.len(),
            skipped = list.skipped,
            "instruments fetched"
        );
        tokens.learn(exchange, &list);
        let named = |listed: Listed| Named {
            symbol: listed.symbol,
            name: listed.name,
        };
        rows.extend(list.listed.into_iter().map(named));
    }
    let list = InstrumentList::from_rows(rows, Origin::BrokerA, as_of);
    let list = list.map_err(|error| NoList::Failed(error.to_string()))?;
    Ok(DaysList {
        list,
        tokens,
        unread,
        old_derivatives: None,
    })
}
