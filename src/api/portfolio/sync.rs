//! `POST /api/portfolio/sync` and `/brokerb-sync`: a user's credentials, used once, for one call of
//! the broker's client. They live in wiped memory until that call ends, and nowhere else.
//!
//! The handler parks for the user's turn, for the broker's lane and for the store. A sync that is
//! late is given up before anything is written.

use std::sync::Arc;

use super::report::{self, SyncedNow};
use super::turn::{extend, in_turn};
use crate::api::body::Fields;
use crate::api::call::Call;
use crate::api::errors::{
    BrokerRoute, broker_problem, broker_timed_out, broker_user_changed, sync_busy,
    too_many_attempts,
};
use crate::api::report::reply_with;
use crate::api::state::State;
use crate::base::{Broker, Synced, ist};
use crate::brokers::broker_a::{Attempt, OpenSession};
use crate::brokers::{BrokerError, BrokerErrorKind, Credentials};
use crate::http::{Problem, Response};
use crate::limits::shared::SharedAttempt;
use crate::limits::throttle::Key;
use crate::portfolio::{self, Brokers, Stood, SyncOutcome, check};
use crate::rt::LaneError;
use crate::store::{Before, Derive, NewPortfolio, Portfolio, StoreError, Turn};
use crate::views::sync::{SyncWarning, SyncedBrokerA, SyncedBrokerB};
use crate::views::values::Instant;

/// Longest value of a credential; broker A's are 32 characters, broker B's not documented.
const CREDENTIAL_CHARS_MAX: usize = 512;

/// How long a session that is to be ended may wait for a thread.
const SESSION_QUEUE_WAIT_MS: u64 = 1_000;

const SHARED_TOKEN: SyncWarning = SyncWarning {
    code: "shared_token_may_have_ended",
    detail: "The API key is the server's own. If the login was the server's account too, its \
             shared broker A token has ended and live prices come from elsewhere until it is \
             set again.",
};

/// `POST /api/portfolio/sync`.
pub fn broker_a(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    sync(state, call, reply, Broker::A)
}

/// `POST /api/portfolio/brokerb-sync`.
pub fn broker_b(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    sync(state, call, reply, Broker::B)
}

fn sync(
    state: &State,
    call: &Call<'_>,
    reply: &mut Response<'_>,
    broker: Broker,
) -> Result<(), Problem> {
    let id = call.caller().id;
    let (credentials, replaces_broker_user) = fields(call, broker)?;
    let portfolio = &state.portfolio;
    let keys = [Key::User(id.0)];
    portfolio.attempts.admit(&keys).map_err(too_many_attempts)?;
    let attempt = portfolio.attempts.shared_attempt(&keys);
    let own_key = broker == Broker::A && state.portfolio.is_own_key(&credentials.api_key);
    let Stored { synced_ms, simulated, broker_user, outcome } = in_turn(state, id, |turn| {
        // Ends when the turn does: after the store, whatever the answer is.
        let mut opened = Opened { state, own_key, session: None };
        let synced = fetched(state, broker, turn, (credentials, attempt), &mut opened)?;
        stored(state, broker, turn, synced, replaces_broker_user)
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
            reply_with(200, &report::report(broker, &outcome, counts, now), reply);
        }
        Broker::B => {
            let counts = SyncedBrokerB { positions_count };
            reply_with(200, &report::report(broker, &outcome, counts, now), reply);
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

/// Stores what a broker sent. Of another person at the broker than the sync before it is stored
/// only if the request says so.
fn stored(
    state: &State,
    broker: Broker,
    turn: &Turn,
    synced: Synced,
    replaces_broker_user: bool,
) -> Result<Stored, Problem> {
    let now = state.clock.now();
    let (synced_ms, simulated) = (now.as_millisecond(), synced.simulated);
    let broker_user = synced.broker_user.clone();
    let day = state.market_day(now);
    let closes_of = day.last_close.or(day.close_before_open);
    let closes_of = closes_of.map(|close| ist::zoned(close).date());
    let derive: Derive = Box::new(move |Before { portfolio, closes }, synced| {
        let Portfolio { holdings, positions, syncs } = portfolio;
        let brokers: Brokers = syncs.iter().map(|sync| sync.broker).collect();
        portfolio::derive(broker, &day, Stood { brokers, holdings, positions, closes }, synced)
    });
    let new = NewPortfolio { broker, synced_ms, synced, closes_of, derive, replaces_broker_user };
    let outcome = state.store.replace_portfolio(turn, new);
    // Whatever became of it: a write that was given up may have happened.
    state.portfolio.answers.invalidate(turn.user.0);
    let outcome = outcome.map_err(|error| match error {
        StoreError::OtherBrokerUser { kept } => {
            broker_user_changed(broker, &kept, broker_user.as_deref().unwrap_or_default())
        }
        error => error.into(),
    })?;
    Ok(Stored { synced_ms, simulated, broker_user, outcome })
}

/// The credentials, and whether the rows may be of another person at the broker than before.
fn fields(call: &Call<'_>, broker: Broker) -> Result<(Credentials, bool), Problem> {
    let mut fields = Fields::of(&call.request)?;
    let code = match broker {
        Broker::A => "request_token",
        Broker::B => "api_session",
    };
    let credentials = Credentials {
        user: call.caller().id.0,
        client: call.request.client_address(),
        api_key: fields.secret("api_key", CREDENTIAL_CHARS_MAX),
        api_secret: fields.secret("api_secret", CREDENTIAL_CHARS_MAX),
        one_time_code: fields.secret(code, CREDENTIAL_CHARS_MAX),
    };
    let replaces_broker_user = fields.flag("replace_broker_user");
    fields.done()?;
    Ok((credentials, replaces_broker_user))
}

/// The session that a sync opened at broker A. Dropped, it is given to a lane to be ended, for
/// which nobody waits; one of the server's own app lives on, because its token may be the same.
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
        // A lane that is full drops the job, and with it the session, which counts that.
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
    let securities = state.portfolio.securities();
    let finish = move |synced: Result<Synced, BrokerError>| {
        let mut synced = synced?;
        check(&synced).map_err(|overflow| {
            BrokerError::new(broker.name(), BrokerErrorKind::Malformed, overflow.to_string())
        })?;
        securities.resolve(&mut synced);
        Ok::<_, BrokerError>(synced)
    };
    let deadline_ms = state.portfolio.sync_deadline_ms;
    // With those of the other nodes, before the code is used.
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
        Err(LaneError::Late) => Err(broker_timed_out(broker, BrokerRoute::Sync)),
        Err(LaneError::Closed) => Err(sync_busy()),
        Err(error @ LaneError::Panicked) => Err(Problem::internal().because(error)),
    }
}
