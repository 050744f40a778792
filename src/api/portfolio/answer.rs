//! Reads a user's portfolio, computes the response on a lane, and keeps it.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::civil::Date;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::api::portfolio::export::Exports;
use crate::api::portfolio::user_locks::UserLocks;
use crate::api::portfolio_errors::portfolio_busy;
use crate::api::state::{Call, Handled, State};
use crate::auth::throttle::Throttle;
use crate::base::{Broker, Clock};
use crate::brokers::settings::UpstreamSettings;
use crate::cache::{Responses, View};
use crate::http::{Problem, Response};
use crate::portfolio::{Securities, Summary};
use crate::rt::{Lane, LaneError};
use crate::store::{AccountId, Portfolio, Store, StoreError};
use crate::views::holdings::{SyncTimes, Totals};
use crate::views::values::{Day, Instant, Money, Percent};

/// Longest wait of a user's sync for a thread. Its own time limit begins after that.
pub(super) const SYNC_QUEUE_WAIT_MS: u64 = 10_000;

/// Longest wait for the computation of a response after its rows were read.
pub(super) const COMPUTE_DEADLINE_MS: u64 = 2_000;

/// Sends `view` from the cache. A missing response is computed by `write` on the portfolio lane,
/// from the rows that `read` gets from the store; the request parks for both. The lane's threads
/// never wait for the store, so a slow disk does not delay requests whose rows are read. If there
/// are several nodes, each first asks the store whether its cached response is current. If the
/// store does not reply in time, that is an error; an old response is never sent.
pub(super) fn answer<Rows: Send + 'static>(
    state: &State,
    call: &Call<'_>,
    reply: &mut Response<'_>,
    view: View,
    read: impl FnOnce(&Store, AccountId) -> Result<Rows, StoreError>,
    write: impl FnOnce(&Rows) -> Result<Vec<u8>, Problem> + Send + 'static,
) -> Handled {
    let id = call.caller().id;
    let answers = &state.portfolio.answers;
    if state.auth.is_shared() {
        // Another node may have written since the response was cached.
        answers.expect(id.0, state.store.portfolio_version(id)?);
    }
    let kept = answers.find(id.0, view, state.clock.monotonic_ms());
    let answer = match kept {
        Some(answer) => answer,
        None => {
            // Taken before the read, so that a later change invalidates the token.
            let token = answers.fill_token(id.0);
            let rows = read(&state.store, id)?;
            let answers = Arc::clone(answers);
            let clock = state.clock.clone();
            compute(state, move || {
                let answer = Responses::make(&write(&rows)?);
                answers.keep(&token, view, &answer, clock.monotonic_ms());
                Ok(answer)
            })?
        }
    };
    let request = call.request;
    reply.send_document(answer.select(request.accept_encoding(), request.preconditions())?);
    Ok(())
}

/// Runs `work` on the portfolio lane and parks until it has ended. A job in the lane's queue holds
/// its rows, some tens of KiB for a usual portfolio.
pub(in crate::api) fn compute<T: Send + 'static>(
    state: &State,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    on(&state.portfolio.lane, COMPUTE_DEADLINE_MS, portfolio_busy, portfolio_busy, work)
}

/// Runs `work` on `lane` and parks until it has ended. The answer is `busy` if the lane is full or
/// closing, and `late` if the deadline passes.
pub(in crate::api) fn on<T: Send + 'static>(
    lane: &Lane,
    deadline_ms: u64,
    busy: fn() -> Problem,
    late: impl FnOnce() -> Problem,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match lane.submit(deadline_ms, work).map_err(|_| busy())?.wait() {
        Ok(done) => done,
        Err(error) => Err(not_done(error, busy, late)),
    }
}

/// The answer if a job on a lane did not finish.
pub(super) fn not_done(
    error: LaneError,
    busy: fn() -> Problem,
    late: impl FnOnce() -> Problem,
) -> Problem {
    match error {
        LaneError::Late => late(),
        LaneError::Closed => busy(),
        LaneError::Panicked => Problem::internal().because(error),
    }
}

/// The last sync with each broker: its time, and whether it was simulated.
pub(super) struct Syncs {
    by_broker: HashMap<Broker, (Instant, bool)>,
    oldest: Option<Instant>,
}

impl Syncs {
    /// The syncs with both brokers; `oldest` is the oldest that `shown` accepts.
    pub(super) fn of(portfolio: &Portfolio, shown: impl Fn(Broker) -> bool) -> Self {
        let syncs = portfolio.syncs.iter();
        let shown = syncs.clone().filter(|sync| shown(sync.broker));
        let oldest = shown.map(|sync| sync.synced_ms).min().map(Instant::of_ms);
        let by_broker = syncs
            .map(|sync| (sync.broker, (Instant::of_ms(sync.synced_ms), sync.simulated)))
            .collect();
        Self { by_broker, oldest }
    }

    pub(super) fn synced_at(&self, broker: Broker) -> Option<Instant> {
        self.by_broker.get(&broker).map(|(at, _)| *at)
    }

    pub(super) fn simulated(&self, broker: Broker) -> bool {
        self.by_broker.get(&broker).is_some_and(|(_, simulated)| *simulated)
    }
}

/// The totals, the number of holdings that each leaves out, and the age of the data. `day` is the
/// date of `day_pnl`.
pub(super) fn totals(summary: &Summary, day: Option<Date>, syncs: &Syncs) -> Totals {
    Totals {
        total_invested: Money(summary.total_invested),
        total_current_value: Money(summary.total_current_value),
        total_pnl: Money(summary.total_pnl),
        total_pnl_pct: summary.total_pnl_pct.map(Percent),
        day_pnl: summary.day_pnl.map(Money),
        day_pnl_pct: summary.day_pnl_pct.map(Percent),
        day: day.map(Day),
        without_cost: summary.without_cost,
        without_price: summary.without_price,
        without_day_price: summary.without_day_price,
        without_close: summary.without_close,
        value_without_cost: Money(summary.value_without_cost),
        pledged_only: summary.pledged_only,
        mtf_only: summary.mtf_only,
        synced_at: syncs.oldest,
        synced: SyncTimes { a: syncs.synced_at(Broker::A), b: syncs.synced_at(Broker::B) },
        priced_from: summary.priced_from_ms.map(Instant::of_ms),
        priced_to: summary.priced_to_ms.map(Instant::of_ms),
    }
}

// ---- State
//
// State of the portfolio's handlers: lanes, locks and finished responses.

/// The state of the portfolio routes.
pub struct PortfolioState {
    pub answers: Arc<Responses>,
    /// The security master, which resolves a broker's codes to tickers.
    pub(crate) securities: ArcSwap<Securities>,
    /// Computes responses that are not in the cache.
    pub lane: Arc<Lane>,
    /// Writes exports.
    pub export_lane: Arc<Lane>,
    pub exports: Arc<Exports>,
    pub locks: UserLocks,
    /// Limits each user's attempts to sync, at both brokers together.
    pub attempts: Throttle,
    /// Time limit of one user's sync at a broker, including the wait for its lane.
    pub sync_deadline_ms: u64,
    /// Hash of the server's own broker A key.
    own_key: ArcSwapOption<[u8; 32]>,
}

impl PortfolioState {
    /// `own_key` is the key of the server's shared broker A token.
    pub(crate) fn new(
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
            locks: UserLocks::new(clock.clone()),
            attempts: Throttle::new(upstream.sync_attempts_per_minute, clock.clone()),
            sync_deadline_ms: upstream.sync_timeout_ms.saturating_add(SYNC_QUEUE_WAIT_MS),
            own_key: ArcSwapOption::new(own_key.map(hashed).map(Arc::new)),
        }
    }

    /// Whether a user's key is the server's own. Hashes are compared, because a partial match of
    /// hashes reveals nothing about the keys.
    pub(super) fn is_own_key(&self, key: &SecretString) -> bool {
        self.own_key.load_full().is_some_and(|own| *own == hashed(key))
    }

    /// Replaces the server's own key.
    pub(crate) fn set_own_key(&self, own_key: Option<&SecretString>) {
        self.own_key.store(own_key.map(hashed).map(Arc::new));
    }
}

fn hashed(key: &SecretString) -> [u8; 32] {
    Sha256::digest(key.expose_secret()).into()
}
