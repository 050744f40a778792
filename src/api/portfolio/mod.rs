//! `/api/portfolio/*` of a user: syncs, and what was synced last.
//!
//! Handlers run on the edge. Reads answer from [`Responses`] by a look-up and a copy; what is not
//! there is read, written and compressed on the portfolio lane, for which the request parks. Every
//! look-up names the caller's id: no route can reach another user's rows.

mod delete;
pub(crate) mod errors;
mod export;
pub(crate) mod export_limit;
mod holdings;
pub(crate) mod live_prices;
mod pnl;
mod positions;
mod report;
mod sync;
pub(crate) mod user_lock;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;
use jiff::civil::Date;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::json::Object;
use super::query::{invalid, one};
use super::{Call, State};
use crate::base::{Broker, Clock, ist};
use crate::cache::{Responses, View};
use crate::config::UpstreamSettings;
use crate::http::{Problem, Response};
use crate::limits::throttle::Throttle;
use crate::portfolio::{Overflow, Securities, Summary};
use crate::rt::{Lane, LaneError};
use crate::store::{AccountId, Portfolio, Store, StoreError};

pub use delete::delete;
pub use errors::{account_trouble, redirected};
pub use export::export;
pub use export_limit::Exports;
pub use holdings::holdings;
pub use pnl::pnl;
pub use positions::positions;
pub use sync::{broker_a, broker_b};
pub use user_lock::UserLocks;

/// How long a user's sync may wait for a thread before its own time begins.
const SYNC_QUEUE_WAIT_MS: u64 = 10_000;

/// Longest wait for an answer to be made: the store's own deadline and some work.
const MAKE_DEADLINE_MS: u64 = 4_000;

/// What the portfolio routes work with.
pub struct PortfolioState {
    pub answers: Arc<Responses>,
    securities: ArcSwap<Securities>,
    /// Makes answers that are not kept.
    pub lane: Arc<Lane>,
    /// Makes exports.
    pub export_lane: Arc<Lane>,
    pub exports: Arc<Exports>,
    pub turns: UserLocks,
    /// Syncs that each user tries, at whichever broker.
    pub attempts: Throttle,
    /// One user's sync at a broker, waiting for its lane included.
    pub sync_deadline_ms: u64,
    /// Of the server's own broker A key.
    own_key: ArcSwapOption<[u8; 32]>,
}

impl PortfolioState {
    /// `own_key` is the key of the server's shared broker A token.
    pub fn new(
        clock: &Clock,
        answers: Arc<Responses>,
        securities: Securities,
        lane: Arc<Lane>,
        export_lane: Arc<Lane>,
        upstream: &UpstreamSettings,
        own_key: Option<&SecretString>,
    ) -> Self {
        Self {
            answers,
            securities: ArcSwap::from_pointee(securities),
            lane,
            export_lane,
            exports: Arc::default(),
            turns: UserLocks::new(clock.clone()),
            attempts: Throttle::new(upstream.sync_attempts_per_minute, clock.clone()),
            sync_deadline_ms: upstream.sync_timeout_ms.saturating_add(SYNC_QUEUE_WAIT_MS),
            own_key: ArcSwapOption::new(own_key.map(hashed).map(Arc::new)),
        }
    }

    /// Whether a user's key is the server's own. Hashes are compared: how far two of them agree
    /// tells nothing about the keys.
    fn is_own_key(&self, key: &SecretString) -> bool {
        self.own_key.load_full().is_some_and(|own| *own == hashed(key))
    }

    /// Puts another key in the place of the server's own.
    pub fn set_own_key(&self, own_key: Option<&SecretString>) {
        self.own_key.store(own_key.map(hashed).map(Arc::new));
    }

    /// What turns a broker's codes into tickers, as of this moment.
    fn securities(&self) -> Arc<Securities> {
        self.securities.load_full()
    }

    /// Takes another security master into use, for syncs that begin from now on.
    pub fn set_securities(&self, securities: Securities) {
        self.securities.store(Arc::new(securities));
    }
}

fn hashed(key: &SecretString) -> [u8; 32] {
    Sha256::digest(key.expose_secret()).into()
}

/// Why an answer could not be made.
enum Unmade {
    Store(StoreError),
    Overflow(Overflow),
    /// Enough long exports are under way.
    Crowded,
    /// Longer than a document may be.
    TooLong,
}

impl From<export_limit::Crowded> for Unmade {
    fn from(export_limit::Crowded: export_limit::Crowded) -> Self {
        Self::Crowded
    }
}

impl From<StoreError> for Unmade {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Overflow> for Unmade {
    fn from(error: Overflow) -> Self {
        Self::Overflow(error)
    }
}

impl From<Unmade> for Problem {
    fn from(unmade: Unmade) -> Self {
        match unmade {
            Unmade::Store(error) => error.into(),
            Unmade::Overflow(error) => Problem::internal().because(error),
            Unmade::Crowded => errors::export_busy(),
            Unmade::TooLong => errors::export_too_long(),
        }
    }
}

/// Responses with `view`, kept or made by `make` from the store.
fn answer(
    state: &State,
    call: &Call<'_>,
    reply: &mut Response<'_>,
    view: View,
    make: impl FnOnce(&dyn Store, AccountId) -> Result<Vec<u8>, Unmade> + Send + 'static,
) -> Result<(), Problem> {
    let id = call.caller().id;
    let answers = &state.portfolio.answers;
    let kept = answers.find(id.0, view, state.clock.monotonic_ms());
    let answer = match kept {
        Some(answer) => answer,
        None => {
            let answers = Arc::clone(answers);
            let clock = state.clock.clone();
            on_lane(state, MAKE_DEADLINE_MS, move |store| {
                // Before the first read: what changes from here on makes the place worthless.
                let place = answers.place(id.0);
                let answer = Responses::make(&make(store, id)?);
                answers.keep(&place, view, &answer, clock.monotonic_ms());
                Ok(answer)
            })?
        }
    };
    let request = &call.request;
    reply.kept(answer.select(request.accept_encoding(), request.preconditions())?);
    Ok(())
}

/// Runs `work` on the portfolio lane and parks until it has ended.
fn on_lane<T: Send + 'static>(
    state: &State,
    deadline_ms: u64,
    work: impl FnOnce(&dyn Store) -> Result<T, Unmade> + Send + 'static,
) -> Result<T, Problem> {
    on(&state.portfolio.lane, state, deadline_ms, work)
}

/// The same on another lane.
fn on<T: Send + 'static>(
    lane: &Lane,
    state: &State,
    deadline_ms: u64,
    work: impl FnOnce(&dyn Store) -> Result<T, Unmade> + Send + 'static,
) -> Result<T, Problem> {
    let store = Arc::clone(&state.store);
    let submitted = lane.submit(deadline_ms, move || work(&*store));
    let ticket = submitted.map_err(|_| errors::portfolio_busy())?;
    match ticket.wait() {
        Ok(made) => Ok(made?),
        Err(LaneError::Late | LaneError::Closed) => Err(errors::portfolio_busy()),
        Err(error @ LaneError::Panicked) => Err(Problem::internal().because(error)),
    }
}

/// When and how each broker was synced.
struct Syncs {
    by_broker: HashMap<Broker, (String, bool)>,
    oldest: Option<String>,
}

impl Syncs {
    /// Of both brokers; the oldest of those that `shown` accepts.
    fn of(portfolio: &Portfolio, shown: impl Fn(Broker) -> bool) -> Self {
        let syncs = portfolio.syncs.iter();
        let shown = syncs.clone().filter(|sync| shown(sync.broker));
        let oldest = shown.map(|sync| sync.synced_ms).min().map(iso);
        let by_broker =
            syncs.map(|sync| (sync.broker, (iso(sync.synced_ms), sync.simulated))).collect();
        Self { by_broker, oldest }
    }

    fn synced_at(&self, broker: Broker) -> Option<&str> {
        self.by_broker.get(&broker).map(|(at, _)| at.as_str())
    }

    fn simulated(&self, broker: Broker) -> bool {
        self.by_broker.get(&broker).is_some_and(|(_, simulated)| *simulated)
    }
}

/// The members of a summary: the totals, how many holdings are left out of which, and how old all
/// this is. `day` is the date of `day_pnl`.
fn totals(object: &mut Object<'_>, summary: &Summary, day: Option<Date>, syncs: &Syncs) {
    object.money("total_invested", summary.total_invested);
    object.money("total_current_value", summary.total_current_value);
    object.money("total_pnl", summary.total_pnl);
    object.money("total_pnl_pct", summary.total_pnl_pct);
    object.money("day_pnl", summary.day_pnl);
    object.text_or_null("day", day.map(|day| day.to_string()).as_deref());
    object.count("without_cost", summary.without_cost as usize);
    object.count("without_price", summary.without_price as usize);
    object.count("without_close", summary.without_close as usize);
    object.money("value_without_cost", summary.value_without_cost);
    object.count("pledged_only", summary.pledged_only as usize);
    object.count("mtf_only", summary.mtf_only as usize);
    object.text_or_null("synced_at", syncs.oldest.as_deref());
    object.object("synced", |object| {
        for broker in [Broker::A, Broker::B] {
            object.text_or_null(broker.as_str(), syncs.synced_at(broker));
        }
    });
    object.text_or_null("priced_from", summary.priced_from_ms.map(iso).as_deref());
    object.text_or_null("priced_to", summary.priced_to_ms.map(iso).as_deref());
}

/// A time as the API writes it.
fn iso(ms: i64) -> String {
    ist::iso(Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// A query parameter, read by `read`; `None` where it is not given.
fn parameter<T>(
    call: &Call<'_>,
    name: &'static str,
    expected: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = one(call.request.query().unwrap_or_default(), name)? else { return Ok(None) };
    read(&text).map(Some).ok_or_else(|| invalid(name, expected))
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}
