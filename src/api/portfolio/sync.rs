//! `POST /api/portfolio/sync` and `/brokerb-sync`: a user's credentials, used once, for one call of
//! the broker's client. They live in wiped memory until that call ends, and nowhere else.
//!
//! The handler parks for the user's turn, for the broker's lane and for the store. A late sync is
//! abandoned before anything is written.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::body::Fields;
use crate::api::broker_errors::{BrokerRoute, broker_problem, broker_timed_out};
use crate::api::call::{Call, Handled};
use crate::api::lane::not_done;
use crate::api::portfolio::opened_session::OpenedSession;
use crate::api::portfolio::report::{SyncedNow, report};
use crate::api::portfolio::synced_trades::synced_trades;
use crate::api::portfolio::user_locks::Crowded;
use crate::api::portfolio_errors::{
    broker_user_changed, in_progress, no_holdings_sent, sync_busy, too_many_attempts,
};
use crate::api::replies::reply_with;
use crate::api::state::{BrokerAccess, State};
use crate::api::trades::SyncedBy;
use crate::auth::throttle::{Key, SharedAttempt};
use crate::base::{Account, Broker, MarketDay, Quote, Synced, clock, rng};
use crate::brokers::{Attempt, BrokerError, BrokerErrorKind, Credentials, login_at};
use crate::cache::Peek;
use crate::http::{Problem, Response};
use crate::portfolio::{SyncOutcome, check};
use crate::rt::moving::Parker;
use crate::store::{AccountId, NewPortfolio, SessionBefore, StoreError, Turn, deriving};
use crate::views::holdings::PortfolioDeleted;
use crate::views::sync::{NetPositions, OpenPositions, SyncWarning};
use crate::views::values::Instant;

/// Longest value of a credential; broker A's are 32 characters, broker B's not documented.
const CREDENTIAL_CHARS_MAX: usize = 512;

const SHARED_TOKEN: SyncWarning = SyncWarning {
    code: "shared_token_may_have_ended",
    detail: "The API key is the server's own. If the login was the server's account too, its \
             shared broker A token has ended and live prices come from elsewhere until it is \
             set again.",
};

/// `POST /api/portfolio/sync`, `POST /api/portfolio/brokerb-sync`.
pub(crate) fn sync(
    broker: Broker,
    state: &State,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Handled {
    let id = call.caller().id;
    let (credentials, confirmed) = fields(call, broker)?;
    let portfolio = &state.portfolio;
    let keys = [Key::User(id.0)];
    portfolio.attempts.admit(&keys).map_err(too_many_attempts)?;
    let attempt = portfolio.attempts.shared_attempt(&keys);
    let own_key = broker == Broker::A && state.portfolio.is_own_key(&credentials.api_key);
    let (done, trades) = in_turn(state, id, |turn| {
        // Dropped after the write, for every answer.
        let mut opened = OpenedSession::none(&state.brokers[broker], own_key);
        let synced = fetched(state, broker, turn, (credentials, attempt), &mut opened)?;
        let done = stored(state, broker, turn, synced, confirmed)?;
        let by = SyncedBy {
            user: id,
            broker,
            broker_user: done.broker_user.clone(),
        };
        let trades = synced_trades(state, by, opened, || extend(state, turn));
        Ok((done, trades))
    })?;
    let Stored {
        synced_ms,
        simulated,
        broker_user,
        outcome,
    } = done;
    if let Some(overflow) = outcome.unvalued {
        tracing::error!(user = id.0, %overflow, "a portfolio could not be valued");
    }
    let [_, positions_count] = outcome.positions.net;
    let now = SyncedNow {
        at: Instant::of_ms(synced_ms),
        warnings: if own_key {
            vec![SHARED_TOKEN]
        } else {
            Vec::new()
        },
        trades,
        simulated,
        broker_user: broker_user.as_deref(),
    };
    if broker.has_day_positions() {
        let counts = NetPositions {
            net_positions_count: positions_count,
        };
        reply_with(200, &report(broker, &outcome, counts, now), response);
    } else {
        let counts = OpenPositions { positions_count };
        reply_with(200, &report(broker, &outcome, counts, now), response);
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
    Confirmed {
        replaces_broker_user,
        replaces_with_none,
    }: Confirmed,
) -> Result<Stored, Problem> {
    let now = state.clock.now();
    let synced_ms = now.as_millisecond();
    let simulated = synced.simulated;
    let broker_user = synced.broker_user.clone();
    let day = market_day(state, now);
    let closes_of = day.last_close.or(day.close_before_open);
    let closes_of = closes_of.map(|close| clock::zoned(close).date());
    let closes_before_of = day.session_before.and_then(|date| {
        let closed_ms = state.calendar.load().official_close(date)?.as_millisecond();
        Some(SessionBefore { date, closed_ms })
    });
    let account = Account::at(broker);
    let new = NewPortfolio {
        account,
        synced_ms,
        synced,
        closes_of,
        closes_before_of,
        derive: deriving(account, day),
        replaces_broker_user,
        replaces_with_none,
    };
    let outcome = state.store.replace_portfolio(turn, new);
    // Done after a failure too, because an abandoned write may have happened.
    state.portfolio.responses.invalidate(turn.user.0);
    let outcome = outcome.map_err(|error| match error {
        StoreError::OtherBrokerUser { kept } => {
            broker_user_changed(broker, &kept, broker_user.as_deref().unwrap_or_default())
        }
        StoreError::NoHoldings { holdings } => no_holdings_sent(broker, holdings),
        error => error.into(),
    })?;
    Ok(Stored {
        synced_ms,
        simulated,
        broker_user,
        outcome,
    })
}

/// The market's day, and whether the indices stand on it.
fn market_day(state: &State, now: Timestamp) -> MarketDay {
    let day = state.market_day(now);
    let now_mono_ms = state.clock.monotonic_ms();
    let leads = state.indices.leads().into_iter();
    let shown = leads.filter_map(|lead| match state.l1.peek(lead.symbol.as_str(), now_mono_ms) {
        Peek::Known { quote, .. } => Some(quote),
        _ => None,
    });
    let shown: Vec<Quote> = shown.collect();
    MarketDay {
        stood_at: state.calendar.load().stood_at(&day, &shown),
        ..day
    }
}

/// The credentials, and what is confirmed.
fn fields(call: &Call<'_>, broker: Broker) -> Result<(Credentials, Confirmed), Problem> {
    let mut fields = Fields::of(call.request)?;
    let [_, code] = login_at(broker).code_names;
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

/// The broker's rows, with its codes resolved to tickers. The job owns the credentials: they are
/// wiped when it ends, or when it is dropped unrun.
fn fetched(
    state: &State,
    broker: Broker,
    turn: &Turn,
    (credentials, attempt): (Credentials, Option<SharedAttempt>),
    opened: &mut OpenedSession,
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
    let BrokerAccess { client, lane, .. } = &state.brokers[broker];
    let client = Arc::clone(client);
    let submitted = lane.submit(deadline_ms, move || {
        count()?;
        let Attempt { result, session } = client.sync(&credentials);
        Ok((finish(result), session))
    });
    let beside = || extend(state, turn);
    match submitted
        .map_err(|_| sync_busy())?
        .wait_beside(Turn::EXTENDED_EACH_MS, beside)
    {
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
    let _lock = state
        .portfolio
        .locks
        .take(id.0, wait_ms)
        .map_err(|Crowded| in_progress())?;
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
        Ok(false) => tracing::warn!(
            user = turn.user.0,
            "user's write lock expired before the work ended, and another node took it"
        ),
        Err(error) => tracing::warn!(user = turn.user.0, %error, "user's write lock not extended"),
    }
}

// ---- Delete
//
// `DELETE /api/portfolio/data`: deletes all synced data for good; the journal stays.

/// Parks for a running sync of the same user, which would otherwise restore the data, and for the
/// store.
pub(crate) fn delete(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let id = call.caller().id;
    state.admit_write(call.caller())?;
    let deleted = in_turn(state, id, |turn| {
        let deleted = state.store.delete_portfolio(turn);
        // Done after a failure too, because an abandoned write may have happened.
        state.portfolio.responses.invalidate(id.0);
        Ok(deleted?)
    })?;
    let message = "All portfolio data has been deleted.";
    reply_with(200, &PortfolioDeleted { message, deleted }, response);
    Ok(())
}
