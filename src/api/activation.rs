//! `POST /brokera/activate`, `POST /brokerb/activate`: the administrator exchanges the code of a
//! login for the server's shared token.
//!
//! The exchange runs on the lane of users' calls to that broker, apart from the feed's; the handler
//! parks. The code and the secret live in wiped memory for the length of the call. The feed takes
//! the new token with its next call: both read the same slot.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::body::Fields;
use super::broker_status::{send_broker_a, send_broker_b};
use super::call::Call;
use super::portfolio::{account_trouble, redirected};
use super::state::State;
use crate::base::{Broker, Clock};
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{FeedError, Readiness, SyncError};
use crate::http::{Problem, Request, Response};
use crate::limits::throttle::{Key, Throttle};
use crate::rt::coroutines::Parker;
use crate::rt::{Lane, LaneError};

/// Wrong guesses an address may make at once, and again each minute. An administrator makes none.
const ATTEMPTS_PER_MINUTE: u32 = 5;

/// As long as a secret of the settings may be.
const SECRET_CHARS_MAX: usize = 4_096;
/// Real ones have some tens.
const CODE_CHARS_MAX: usize = 256;

/// Time in the lane's queue on top of the longest exchange.
const QUEUE_MS: u64 = 2_000;

/// Longest wait for the service's own pace towards the broker, a tenth of a second a call: another
/// call may just have gone out. Within [`QUEUE_MS`].
const PACE_WAIT_MS_MAX: u64 = 1_000;

/// When to try again after a full lane or an answer that did not come.
const RETRY_AFTER_S: u64 = 1;

/// The administrator's secret of each broker, where there is one.
pub struct AdminSecrets {
    pub broker_a: Option<SecretString>,
    pub broker_b: Option<SecretString>,
}

/// Who the administrator is, and how activation is done.
pub struct Administration {
    secrets: ArcSwap<AdminSecrets>,
    attempts: Throttle,
    deadline_ms: u64,
}

impl Administration {
    /// Knows the administrator by `secrets`; an activation takes as long as a call may.
    pub fn new(secrets: AdminSecrets, upstream: &UpstreamSettings, clock: Clock) -> Self {
        Self {
            secrets: ArcSwap::from_pointee(secrets),
            attempts: Throttle::new(ATTEMPTS_PER_MINUTE, clock),
            deadline_ms: upstream.total_timeout_ms.max(upstream.sync_timeout_ms) + QUEUE_MS,
        }
    }

    /// Puts other secrets in force.
    pub fn set_secrets(&self, secrets: AdminSecrets) {
        self.secrets.store(Arc::new(secrets));
    }

    fn secrets(&self) -> Arc<AdminSecrets> {
        self.secrets.load_full()
    }

    /// Whether the request comes from the administrator: it has the secret, or, where none is set,
    /// is of a program on this machine.
    fn admit(
        &self,
        request: &Request<'_>,
        fields: &mut Fields<'_>,
        secret: Option<&SecretString>,
    ) -> Result<(), Problem> {
        let Some(secret) = secret else {
            return if request.is_direct_local() { Ok(()) } else { Err(local_only()) };
        };
        let address = Key::Address(request.client_address());
        self.attempts.admit(&[address]).map_err(|throttled| {
            let detail = "Too many attempts from this address.";
            let problem = Problem::new(429, "too_many_attempts", detail);
            problem.with("Retry-After", throttled.retry_after_ms.div_ceil(1_000).to_string())
        })?;
        let given = fields.optional_secret("secret", SECRET_CHARS_MAX).unwrap_or_default();
        if !same(&given, secret.expose_secret()) {
            tracing::warn!(client = ?request.client_address(), "wrong administrator's secret");
            let detail = "The administrator's secret is missing or wrong.";
            return Err(Problem::new(403, "admin_secret_invalid", detail));
        }
        self.attempts.forgive(address);
        Ok(())
    }

    /// Runs `exchange` on `lane` and parks until it has ended.
    fn run<T: Send + 'static>(
        &self,
        lane: &Lane,
        exchange: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let ticket = lane.submit(self.deadline_ms, exchange).map_err(|_| {
            let detail = "Too many calls to the broker are under way.";
            Problem::unavailable("upstream_busy", detail, RETRY_AFTER_S)
        })?;
        match ticket.wait() {
            Ok(result) => result,
            Err(LaneError::Late) => Err(timed_out()),
            Err(error @ (LaneError::Panicked | LaneError::Closed)) => {
                Err(Problem::internal().because(error))
            }
        }
    }
}

/// `POST /brokera/activate` with `request_token`.
pub fn broker_a(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let administration = &state.administration;
    let mut fields = Fields::of(&call.request)?;
    administration.admit(&call.request, &mut fields, administration.secrets().broker_a.as_ref())?;
    let code = fields.secret("request_token", CODE_CHARS_MAX);
    fields.done()?;
    let broker = Arc::clone(&state.broker_a);
    let status = administration.run(&state.broker_a_lane, move || {
        in_turn(|| broker.activate(code.expose_secret())).map_err(of_feed)
    })?;
    send_broker_a(&status, reply);
    Ok(())
}

/// `POST /brokerb/activate` with `api_session`.
pub fn broker_b(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let administration = &state.administration;
    let mut fields = Fields::of(&call.request)?;
    administration.admit(&call.request, &mut fields, administration.secrets().broker_b.as_ref())?;
    let code = fields.secret("api_session", CODE_CHARS_MAX);
    fields.done()?;
    if !state.broker_b.configured() {
        return Err(not_configured());
    }
    let broker = Arc::clone(&state.broker_b);
    let status = administration.run(&state.broker_b_lane, move || {
        broker.activate(code.expose_secret()).map_err(of_sync)
    })?;
    send_broker_b(&status, reply);
    Ok(())
}

/// Calls again where our own pace stopped the call, which has then not been made. Blocks between,
/// for at most [`PACE_WAIT_MS_MAX`] in all.
fn in_turn<T>(mut exchange: impl FnMut() -> Result<T, FeedError>) -> Result<T, FeedError> {
    let mut left_ms = PACE_WAIT_MS_MAX;
    loop {
        let result = exchange();
        let Err(FeedError::NotReady(Readiness::Paced(wait))) = &result else { return result };
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        if wait_ms > left_ms {
            return result;
        }
        left_ms -= wait_ms;
        Parker::current().park(wait_ms);
    }
}

/// Compares digests: their length says nothing of the secret's, and the time nothing of either.
fn same(given: &str, secret: &str) -> bool {
    let (given, secret) = (Sha256::digest(given), Sha256::digest(secret));
    given.as_slice().ct_eq(secret.as_slice()).into()
}

fn local_only() -> Problem {
    let detail = "Without an administrator's secret in the settings only a program on the \
                  server's own machine may do this.";
    Problem::new(403, "admin_local_only", detail)
}

/// A conflict with the server's state: asking again does not help, the settings have to change.
fn not_configured() -> Problem {
    let detail = "The server's settings have no API key and secret for this broker.";
    Problem::new(409, "broker_not_configured", detail)
}

fn code_refused() -> Problem {
    let detail = "The broker does not accept the code: wrong, used or expired.";
    Problem::new(401, "broker_session_invalid", detail).with("WWW-Authenticate", "Bearer")
}

fn rate_limited(wait: Duration) -> Problem {
    let s = whole_seconds(wait);
    let detail = format!(
        "The broker takes only so many calls, and this service keeps to that: the code was not \
         judged. Try again in {s} s."
    );
    after(Problem::new(429, "broker_rate_limited", detail), Some(wait))
}

fn unavailable(wait: Option<Duration>) -> Problem {
    after(Problem::new(502, "broker_unavailable", "The broker cannot be reached."), wait)
}

fn timed_out() -> Problem {
    Problem::new(504, "broker_timeout", "The broker did not answer in time.")
}

fn nonsense() -> Problem {
    Problem::new(502, "broker_answer_invalid", "The broker's answer is not understood.")
}

fn not_permitted() -> Problem {
    let detail = "The broker does not accept the server's API key, or not from here; the log has \
                  the reason.";
    Problem::new(409, "broker_key_refused", detail)
}

fn after(problem: Problem, wait: Option<Duration>) -> Problem {
    match wait {
        Some(wait) => problem.with("Retry-After", whole_seconds(wait).to_string()),
        None => problem,
    }
}

fn whole_seconds(wait: Duration) -> u128 {
    wait.as_millis().div_ceil(1_000).max(1)
}

/// Broker A's failure; neither it nor [`of_sync`]'s repeats what was sent.
fn of_feed(error: FeedError) -> Problem {
    let problem = match &error {
        FeedError::Refused { .. } | FeedError::TokenDead { .. } => code_refused(),
        FeedError::NotReady(Readiness::Off) => not_configured(),
        FeedError::NotReady(Readiness::Paced(wait)) => rate_limited(*wait),
        FeedError::NotReady(Readiness::Open(wait)) => unavailable(Some(*wait)),
        FeedError::RateLimited { retry_after, .. } => rate_limited(*retry_after),
        FeedError::NoPermission { .. } => not_permitted(),
        FeedError::AccountTrouble { trouble, .. } => account_trouble(Broker::A.name(), *trouble),
        FeedError::TimedOut { .. } => timed_out(),
        FeedError::Malformed { .. } => nonsense(),
        FeedError::Redirected { .. } => redirected(Broker::A.name()),
        FeedError::NotReady(Readiness::Ready | Readiness::NoToken | Readiness::NoPermission)
        | FeedError::Unreachable { .. }
        | FeedError::Upstream { .. } => unavailable(None),
    };
    problem.because(error)
}

fn of_sync(error: SyncError) -> Problem {
    let problem = match &error {
        SyncError::CodeRefused(_) => code_refused(),
        SyncError::KeyRefused(_) | SyncError::NotPermitted(_) | SyncError::AddressRefused(_) => {
            not_permitted()
        }
        SyncError::AccountTrouble(trouble) => account_trouble(Broker::B.name(), *trouble),
        SyncError::RateLimited(wait) | SyncError::KeySpent(wait) => rate_limited(*wait),
        SyncError::TimedOut => timed_out(),
        SyncError::Unavailable { retry_after, .. } => unavailable(*retry_after),
        SyncError::Malformed(_) => nonsense(),
        SyncError::Redirected => redirected(Broker::B.name()),
    };
    problem.because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paced(ms: u64) -> FeedError {
        FeedError::NotReady(Readiness::Paced(Duration::from_millis(ms)))
    }

    #[test]
    fn our_own_pace_is_waited_for_but_not_long() {
        let mut calls = 0;
        let turn = in_turn(|| {
            calls += 1;
            if calls < 3 { Err(paced(1)) } else { Ok(calls) }
        });
        assert_eq!(turn.ok(), Some(3));
        let mut calls = 0;
        let refused = in_turn::<()>(|| {
            calls += 1;
            Err(paced(PACE_WAIT_MS_MAX + 1))
        });
        assert!(refused.is_err() && calls == 1);
        // Nor many times.
        let mut calls = 0;
        assert!(
            in_turn::<()>(|| {
                calls += 1;
                Err(paced(PACE_WAIT_MS_MAX / 4))
            })
            .is_err()
        );
        assert_eq!(calls, 5);
    }

    #[test]
    fn who_is_to_wait_is_told_whose_pace_it_is_and_how_long() {
        let problem = of_feed(paced(29_500));
        assert_eq!((problem.status, problem.code), (429, "broker_rate_limited"));
        assert!(problem.detail.contains("this service keeps to that"), "{}", problem.detail);
        assert!(problem.detail.ends_with("Try again in 30 s."), "{}", problem.detail);
        assert!(
            problem
                .headers
                .iter()
                .any(|(name, value)| (*name, value.as_ref()) == ("Retry-After", "30"))
        );
    }
}
