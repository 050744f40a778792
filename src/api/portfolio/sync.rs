//! `POST /api/portfolio/sync` and `/brokerb-sync`: a user's credentials, used once, for one call of
//! the broker's client. They live in wiped memory until that call ends, and nowhere else.
//!
//! The handler parks for the user's turn, for the broker's lane and for the store. A late sync is
//! abandoned before anything is written.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::api::body::Fields;
use crate::api::errors::{
    BrokerRoute, broker_problem, broker_timed_out, broker_user_changed, in_progress,
    no_holdings_sent, sync_busy, too_many_attempts,
};
use crate::api::portfolio::answer::not_done;
use crate::api::state::{Call, Handled, State, reply_with};
use crate::auth::throttle::{Key, SharedAttempt};
use crate::base::{Broker, Clock, Holding, MarketDay, Quote, Synced, clock, rng};
use crate::brokers::broker_a::{Attempt, OpenSession};
use crate::brokers::{BrokerError, BrokerErrorKind, Credentials, code_names};
use crate::cache::Peek;
use crate::http::{Problem, Response};
use crate::ops::Counter;
use crate::portfolio::{
    self, Brokers, Change, Difference, Reconciliation as Compared, Stood, SyncOutcome, check,
};
use crate::rt::coroutines::Parker;
use crate::store::{
    AccountId, Before, Derive, NewPortfolio, Portfolio, SessionBefore, StoreError, Turn,
};
use crate::views::holdings::PortfolioDeleted;
use crate::views::sync::{
    ChangedHolding, CountedHolding, PositionCounts, Reconciliation, RowName, SuspectedAction,
    SyncChanges, SyncReport, SyncWarning, SyncedBrokerA, SyncedBrokerB,
};
use crate::views::values::{Exact, Instant, Money, Quantity, Simulated};

/// Longest value of a credential; broker A's are 32 characters, broker B's not documented.
const CREDENTIAL_CHARS_MAX: usize = 512;

/// Longest wait for a thread that ends a session.
const SESSION_QUEUE_WAIT_MS: u64 = 1_000;

const SHARED_TOKEN: SyncWarning = SyncWarning {
    code: "shared_token_may_have_ended",
    detail: "The API key is the server's own. If the login was the server's account too, its \
             shared broker A token has ended and live prices come from elsewhere until it is \
             set again.",
};

/// `POST /api/portfolio/sync`.
pub(crate) fn broker_a(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    sync(state, call, reply, Broker::A)
}

/// `POST /api/portfolio/brokerb-sync`.
pub(crate) fn broker_b(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    sync(state, call, reply, Broker::B)
}

fn sync(state: &State, call: &Call<'_>, reply: &mut Response<'_>, broker: Broker) -> Handled {
    let id = call.caller().id;
    let (credentials, confirmed) = fields(call, broker)?;
    let portfolio = &state.portfolio;
    let keys = [Key::User(id.0)];
    portfolio.attempts.admit(&keys).map_err(too_many_attempts)?;
    let attempt = portfolio.attempts.shared_attempt(&keys);
    let own_key = broker == Broker::A && state.portfolio.is_own_key(&credentials.api_key);
    let Stored { synced_ms, simulated, broker_user, outcome } = in_turn(state, id, |turn| {
        // Dropped with the turn: after the write, for every answer.
        let mut opened = Opened { state, own_key, session: None };
        let synced = fetched(state, broker, turn, (credentials, attempt), &mut opened)?;
        stored(state, broker, turn, synced, confirmed)
    })?;
    if let Some(overflow) = outcome.unvalued {
        tracing::error!(user = id.0, %overflow, "a portfolio could not be valued");
    }
    let [_, positions_count] = outcome.positions.net;
    let now = SyncedNow {
        at: Instant::of_ms(synced_ms),
        warnings: if own_key { vec![SHARED_TOKEN] } else { Vec::new() },
        simulated,
        broker_user: broker_user.as_deref(),
    };
    match broker {
        Broker::A => {
            let counts = SyncedBrokerA { net_positions_count: positions_count };
            reply_with(200, &report(broker, &outcome, counts, now), reply);
        }
        Broker::B => {
            let counts = SyncedBrokerB { positions_count };
            reply_with(200, &report(broker, &outcome, counts, now), reply);
        }
    }
    Ok(())
}

/// A sync that was stored.
struct Stored {
    synced_ms: i64,
    simulated: bool,
    broker_user: Option<String>,
    outcome: SyncOutcome,
}

/// What a request has confirmed, which a sync otherwise refuses.
#[derive(Clone, Copy)]
struct Confirmed {
    /// The rows may belong to another person at the broker than before.
    replaces_broker_user: bool,
    /// The broker's holdings may be replaced by none.
    replaces_with_none: bool,
}

/// Stores a broker's rows. Rows of another person at the broker than in the previous sync, and an
/// empty list in place of holdings, are stored only if the request has confirmed it.
fn stored(
    state: &State,
    broker: Broker,
    turn: &Turn,
    synced: Synced,
    Confirmed { replaces_broker_user, replaces_with_none }: Confirmed,
) -> Result<Stored, Problem> {
    let now = state.clock.now();
    let (synced_ms, simulated) = (now.as_millisecond(), synced.simulated);
    let broker_user = synced.broker_user.clone();
    let day = market_day(state, now);
    let closes_of = day.last_close.or(day.close_before_open);
    let closes_of = closes_of.map(|close| clock::zoned(close).date());
    let closes_before_of = day.session_before.and_then(|date| {
        let closed_ms = state.calendar.load().official_close(date)?.as_millisecond();
        Some(SessionBefore { date, closed_ms })
    });
    let derive: Derive = Box::new(move |Before { portfolio, closes, closes_before }, synced| {
        let Portfolio { holdings, positions, syncs } = portfolio;
        let brokers: Brokers = syncs.iter().map(|sync| sync.broker).collect();
        let stood = Stood { brokers, holdings, positions, closes, closes_before };
        portfolio::derive(broker, &day, stood, synced)
    });
    let new = NewPortfolio {
        broker,
        synced_ms,
        synced,
        closes_of,
        closes_before_of,
        derive,
        replaces_broker_user,
        replaces_with_none,
    };
    let outcome = state.store.replace_portfolio(turn, new);
    // Done after a failure too, because an abandoned write may have happened.
    state.portfolio.answers.invalidate(turn.user.0);
    let outcome = outcome.map_err(|error| match error {
        StoreError::OtherBrokerUser { kept } => {
            broker_user_changed(broker, &kept, broker_user.as_deref().unwrap_or_default())
        }
        StoreError::NoHoldings { holdings } => no_holdings_sent(broker, holdings),
        error => error.into(),
    })?;
    Ok(Stored { synced_ms, simulated, broker_user, outcome })
}

/// The market's day, and whether the indices stand on it.
fn market_day(state: &State, now: Timestamp) -> MarketDay {
    let (day, now_mono_ms) = (state.market_day(now), state.clock.monotonic_ms());
    let leads = state.indices.leads().into_iter();
    let shown = leads.filter_map(|lead| match state.l1.peek(lead.symbol.as_str(), now_mono_ms) {
        Peek::Known { quote, .. } => Some(quote),
        _ => None,
    });
    let shown: Vec<Quote> = shown.collect();
    MarketDay { stood_at: state.calendar.load().stood_at(&day, &shown), ..day }
}

/// The credentials, and what is confirmed.
fn fields(call: &Call<'_>, broker: Broker) -> Result<(Credentials, Confirmed), Problem> {
    let mut fields = Fields::of(call.request)?;
    let [_, code] = code_names(broker);
    let credentials = Credentials {
        user: call.caller().id.0,
        client: call.request.client_address(),
        api_key: fields.secret("api_key", CREDENTIAL_CHARS_MAX),
        api_secret: fields.secret("api_secret", CREDENTIAL_CHARS_MAX),
        one_time_code: fields.secret(code, CREDENTIAL_CHARS_MAX),
    };
    let confirmed = Confirmed {
        replaces_broker_user: fields.flag("replace_broker_user"),
        replaces_with_none: fields.flag("replace_with_none"),
    };
    fields.done()?;
    Ok((credentials, confirmed))
}

/// The session that a sync opened at broker A. On drop a lane ends it, and no request waits for
/// that. A session of the server's own app is kept, because its token may be the same.
struct Opened<'a> {
    state: &'a State,
    own_key: bool,
    session: Option<OpenSession>,
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        if self.own_key {
            return session.keep();
        }
        let broker = Arc::clone(&self.state.broker_a);
        let job = move || broker.end(session);
        // A full lane drops the job with the session, which is counted.
        let _ = self.state.broker_a_sessions_lane.submit(SESSION_QUEUE_WAIT_MS, job);
    }
}

/// The broker's rows, with its codes resolved to tickers. The job owns the credentials: they are
/// wiped when it ends, or when it is dropped unrun.
fn fetched(
    state: &State,
    broker: Broker,
    turn: &Turn,
    (credentials, attempt): (Credentials, Option<SharedAttempt>),
    opened: &mut Opened<'_>,
) -> Result<Synced, Problem> {
    let securities = state.portfolio.securities.load_full();
    let finish = move |synced: Result<Synced, BrokerError>| {
        let mut synced = synced?;
        check(&synced).map_err(|overflow| {
            BrokerError::new(broker.name(), BrokerErrorKind::Malformed, overflow.to_string())
        })?;
        securities.resolve(&mut synced);
        Ok::<_, BrokerError>(synced)
    };
    let deadline_ms = state.portfolio.sync_deadline_ms;
    // Checked together with the other nodes before the code is used.
    let count = move || attempt.as_ref().map_or(Ok(()), SharedAttempt::count);
    let submitted = match broker {
        Broker::A => {
            let client = Arc::clone(&state.broker_a);
            let job = move || {
                count()?;
                let Attempt { result, session } = client.sync(&credentials);
                Ok((finish(result), session))
            };
            state.broker_a_lane.submit(deadline_ms, job)
        }
        Broker::B => {
            let client = Arc::clone(&state.broker_b);
            let job = move || {
                count()?;
                Ok((finish(client.sync(&credentials)), None))
            };
            state.broker_b_lane.submit(deadline_ms, job)
        }
    };
    let beside = || extend(state, turn);
    match submitted.map_err(|_| sync_busy())?.wait_beside(Turn::EXTENDED_EACH_MS, beside) {
        Ok(Err(throttled)) => {
            state.portfolio.attempts.count_refusal();
            Err(too_many_attempts(throttled))
        }
        Ok(Ok((synced, session))) => {
            opened.session = session;
            synced.map_err(|error| broker_problem(error, broker, BrokerRoute::Sync))
        }
        Err(error) => {
            let late = || broker_timed_out(broker, BrokerRoute::Sync);
            Err(not_done(error, sync_busy, late))
        }
    }
}

// ---- Turn
//
// A user's turn to change the portfolio. Syncs and deletions run one after the other: on this node
// by the user's lock, then on all nodes that share its database.

/// Mean interval between two tries for a turn that another node has.
const ASKED_EACH_MS: u64 = 100;

/// Does `work` in the user's turn. Parks while other requests have the turn, for at most the time
/// of a sync. A turn whose end is not stored, or that a panic leaves behind, expires.
pub(super) fn in_turn<T>(
    state: &State,
    id: AccountId,
    work: impl FnOnce(&Turn) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let wait_ms = state.portfolio.sync_deadline_ms;
    let until_ms = state.clock.monotonic_ms().saturating_add(wait_ms);
    let _lock = state.portfolio.locks.take(id.0, wait_ms).map_err(|Crowded| in_progress())?;
    let turn = take(state, id, until_ms)?;
    let done = work(&turn);
    if let Err(error) = state.store.end_turn(&turn) {
        tracing::warn!(user = id.0, %error, "user's write lock not released; it expires by itself");
    }
    done
}

fn take(state: &State, id: AccountId, until_ms: u64) -> Result<Turn, Problem> {
    loop {
        if let Some(turn) = state.store.take_turn(id)? {
            return Ok(turn);
        }
        let left_ms = until_ms.saturating_sub(state.clock.monotonic_ms());
        if left_ms == 0 {
            state.portfolio.locks.refused.increment();
            return Err(in_progress());
        }
        Parker::current().park(rng::jittered_ms(ASKED_EACH_MS).min(left_ms));
    }
}

/// Extends the turn while its work goes on. If the turn was lost, the store refuses the write.
pub(super) fn extend(state: &State, turn: &Turn) {
    match state.store.extend_turn(turn) {
        Ok(true) => {}
        Ok(false) => tracing::warn!(user = turn.user.0, "a turn ran out and was taken"),
        Err(error) => tracing::warn!(user = turn.user.0, %error, "a turn was not extended"),
    }
}

// ---- User lock
//
// One change at a time per user: a sync or a deletion waits, parked, for the one before it.
//
// Runs on the edge. The lock is held for a look-up, never over a wait. A user may have few
// requests waiting, each until its deadline; the user's lock is released when its handler ends.

/// Requests of one user that may wait: both brokers' syncs pressed twice.
const WAITING_PER_USER_MAX: usize = 3;

/// Another request of the user is under way, and too many wait or this one waited too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowded;

/// The locks of all users.
pub struct UserLocks {
    clock: Clock,
    /// Users whose lock is taken, with the requests that wait for it, oldest first.
    users: Mutex<HashMap<i64, VecDeque<Waiter>>>,
    /// Requests refused since the start, also those that waited for another node.
    pub refused: Counter,
}

struct Waiter {
    parker: Parker,
    /// Set under the lock.
    granted: Arc<AtomicBool>,
}

/// A user's lock. Dropping it passes it to the request that has waited longest.
pub struct UserLock<'a> {
    locks: &'a UserLocks,
    user: i64,
}

impl UserLocks {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, users: Mutex::default(), refused: Counter::new() }
    }

    /// Takes the user's lock. Parks while another request has it, for at most `wait_ms`.
    ///
    /// # Errors
    /// [`Crowded`].
    pub fn take(&self, user: i64, wait_ms: u64) -> Result<UserLock<'_>, Crowded> {
        let Some((parker, granted)) = self.queue(user).inspect_err(|_| self.refused.increment())?
        else {
            return Ok(UserLock { locks: self, user });
        };
        let until_ms = self.clock.monotonic_ms().saturating_add(wait_ms);
        while !granted.load(Ordering::SeqCst) {
            let left_ms = until_ms.saturating_sub(self.clock.monotonic_ms());
            let in_time = left_ms > 0 && parker.park(left_ms);
            if !in_time && self.leave(user, &granted) {
                self.refused.increment();
                return Err(Crowded);
            }
        }
        Ok(UserLock { locks: self, user })
    }

    /// `None` if the lock was free and is now taken.
    fn queue(&self, user: i64) -> Result<Option<(Parker, Arc<AtomicBool>)>, Crowded> {
        let mut users = self.users.lock();
        let Some(waiting) = users.get_mut(&user) else {
            users.insert(user, VecDeque::new());
            return Ok(None);
        };
        if waiting.len() >= WAITING_PER_USER_MAX {
            return Err(Crowded);
        }
        let (parker, granted) = (Parker::current(), Arc::new(AtomicBool::new(false)));
        waiting.push_back(Waiter { parker: parker.clone(), granted: Arc::clone(&granted) });
        Ok(Some((parker, granted)))
    }

    /// Stops waiting; false if the lock was granted meanwhile.
    fn leave(&self, user: i64, granted: &Arc<AtomicBool>) -> bool {
        let mut users = self.users.lock();
        if granted.load(Ordering::SeqCst) {
            return false;
        }
        if let Some(waiting) = users.get_mut(&user) {
            waiting.retain(|waiter| !Arc::ptr_eq(&waiter.granted, granted));
        }
        true
    }

    /// Requests of all users that wait now.
    pub fn waiting(&self) -> usize {
        self.users.lock().values().map(VecDeque::len).sum()
    }
}

impl Drop for UserLock<'_> {
    fn drop(&mut self) {
        let mut users = self.locks.users.lock();
        let next = users.get_mut(&self.user).and_then(VecDeque::pop_front);
        match next {
            Some(waiter) => {
                waiter.granted.store(true, Ordering::SeqCst);
                drop(users);
                waiter.parker.unpark();
            }
            None => {
                users.remove(&self.user);
            }
        }
    }
}

// ---- Report
//
// The reply to a sync, from its bounded outcome.

/// The reply to `broker`'s sync, with `counts` under the broker's name for them.
pub(super) fn report<'a, Counts>(
    broker: Broker,
    outcome: &'a SyncOutcome,
    counts: Counts,
    synced: SyncedNow<'a>,
) -> SyncReport<'a, Counts> {
    let SyncedNow { at, warnings, simulated, broker_user } = synced;
    let suspected = outcome.suspected.rows.iter();
    let suspected =
        suspected.map(|(row, why)| SuspectedAction { row: named(row), reason: why.as_str() });
    SyncReport {
        holdings_count: outcome.holdings,
        counts,
        broker,
        broker_user,
        synced_at: at,
        changes: changes(outcome),
        unresolved_count: outcome.unresolved.count,
        unresolved: outcome.unresolved.rows.iter().map(String::as_str).collect(),
        suspected_corporate_actions: suspected.collect(),
        reconciliation: reconciliation(outcome.reconciliation),
        warnings: Some(warnings).filter(|warnings| !warnings.is_empty()),
        simulated: Simulated(simulated),
    }
}

/// Facts about a sync that its outcome does not have.
pub(super) struct SyncedNow<'a> {
    pub(super) at: Instant,
    pub(super) warnings: Vec<SyncWarning>,
    pub(super) simulated: bool,
    pub(super) broker_user: Option<&'a str>,
}

fn changes(outcome: &SyncOutcome) -> SyncChanges<'_> {
    let SyncOutcome { added, removed, changed, positions, .. } = outcome;
    SyncChanges {
        added_count: added.count,
        added: added.rows.iter().map(counted).collect(),
        removed_count: removed.count,
        removed: removed.rows.iter().map(counted).collect(),
        changed_count: changed.count,
        changed: changed.rows.iter().map(changed_holding).collect(),
        positions: PositionCounts { day: positions.day, net: positions.net },
    }
}

fn counted(row: &Holding) -> CountedHolding<'_> {
    CountedHolding { row: named(row), quantity: Quantity(row.quantity()) }
}

fn changed_holding((before, after): &(Holding, Holding)) -> ChangedHolding<'_> {
    let change = Change { before, after };
    ChangedHolding {
        row: named(after),
        quantity: change.quantity().map(|(from, to)| [Quantity(from), Quantity(to)]),
        average_price: change.average_price().map(|(from, to)| [from.map(Exact), to.map(Exact)]),
    }
}

fn named(row: &Holding) -> RowName<'_> {
    let Holding { exchange, tradingsymbol, isin, .. } = row;
    RowName { exchange, tradingsymbol, isin: isin.as_deref() }
}

fn reconciliation(compared: Compared) -> Reconciliation {
    match compared {
        Compared::NoBrokerFigure => Reconciliation {
            broker_pnl: None,
            our_pnl: None,
            difference: None,
            reason: Some("no_broker_figure"),
        },
        Compared::Compared { broker, ours, reason } => Reconciliation {
            broker_pnl: Some(Money(broker)),
            our_pnl: Some(Money(ours)),
            difference: Some(Money(ours.saturating_sub(broker))),
            reason: reason.map(Difference::as_str),
        },
    }
}

// ---- Delete
//
// `DELETE /api/portfolio/data`: deletes all synced data for good; the journal stays.

/// Parks for a running sync of the same user, which would otherwise restore the data, and for the
/// store.
pub(crate) fn delete(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let id = call.caller().id;
    state.admit_write(call.caller())?;
    let deleted = in_turn(state, id, |turn| {
        let deleted = state.store.delete_portfolio(turn);
        // Done after a failure too, because an abandoned write may have happened.
        state.portfolio.answers.invalidate(id.0);
        Ok(deleted?)
    })?;
    let message = "All portfolio data has been deleted.";
    reply_with(200, &PortfolioDeleted { message, deleted }, reply);
    Ok(())
}

#[cfg(test)]
mod user_lock_tests {
    use std::sync::mpsc;

    use super::*;
    use crate::rt::threads::spawn;

    #[test]
    fn a_lock_is_taken_by_one_request_after_the_other_per_user() {
        let locks = Arc::new(UserLocks::new(Clock::system()));
        let first = locks.take(1, 0).unwrap();
        let other_user = locks.take(2, 0).unwrap();
        let (send, receive) = mpsc::channel();
        let inner = Arc::clone(&locks);
        crate::rt::coroutines::spawn(move || {
            let lock = inner.take(1, 60_000);
            send.send(lock.is_ok()).unwrap();
        })
        .unwrap();
        while locks.waiting() == 0 {
            std::thread::yield_now();
        }
        assert!(receive.try_recv().is_err());
        drop(first);
        assert!(receive.recv().unwrap());
        drop(other_user);
        while !locks.users.lock().is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn waiting_ends_and_is_bounded() {
        let locks = Arc::new(UserLocks::new(Clock::system()));
        let first = locks.take(1, 0).unwrap();
        assert!(locks.take(1, 0).is_err());
        assert!(locks.take(1, 20).is_err());
        assert_eq!((locks.waiting(), locks.refused.value()), (0, 2));
        let waiters: Vec<_> = (0..WAITING_PER_USER_MAX)
            .map(|_| {
                let locks = Arc::clone(&locks);
                spawn("waits", move || locks.take(1, 60_000).is_ok()).unwrap()
            })
            .collect();
        while locks.waiting() < WAITING_PER_USER_MAX {
            std::thread::yield_now();
        }
        assert!(locks.take(1, 60_000).is_err(), "one more than may wait");
        drop(first);
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        assert!(locks.take(1, 0).is_ok());
    }

    #[test]
    fn no_two_hold_a_lock() {
        let locks = Arc::new(UserLocks::new(Clock::system()));
        let inside = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (locks, inside) = (Arc::clone(&locks), Arc::clone(&inside));
                spawn("takes", move || {
                    let mut taken = 0;
                    while taken < 300 {
                        let Ok(_lock) = locks.take(1, 60_000) else { continue };
                        assert!(!inside.swap(true, Ordering::SeqCst));
                        assert!(inside.swap(false, Ordering::SeqCst));
                        taken += 1;
                    }
                })
                .unwrap()
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod report_tests;
