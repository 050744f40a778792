//! `POST /brokera/activate`, `POST /brokerb/activate`: the administrator exchanges the code of a
//! login for the server's shared token.
//!
//! The exchange runs on the lane of users' calls to that broker, apart from the feed's; the handler
//! parks. The code and the secret live in wiped memory for the length of the call. The feed takes
//! the new token with its next call: both read the same slot.

use std::sync::Arc;

use arc_swap::ArcSwap;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::body::Fields;
use super::broker_status::{send_broker_a, send_broker_b};
use super::call::Call;
use super::errors::{BrokerRoute, activation_busy, broker_problem, broker_timed_out};
use super::state::State;
use crate::base::{Broker, Clock};
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness};
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
        broker: Broker,
        exchange: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let ticket = lane.submit(self.deadline_ms, exchange).map_err(|_| activation_busy())?;
        match ticket.wait() {
            Ok(result) => result,
            Err(LaneError::Late) => Err(broker_timed_out(broker, BrokerRoute::Activation)),
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
    let status = administration.run(&state.broker_a_lane, Broker::A, move || {
        let activated = in_turn(|| broker.activate(code.expose_secret()));
        activated.map_err(|error| broker_problem(error, Broker::A, BrokerRoute::Activation))
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
    let broker = Arc::clone(&state.broker_b);
    let status = administration.run(&state.broker_b_lane, Broker::B, move || {
        let activated = broker.activate(code.expose_secret());
        activated.map_err(|error| broker_problem(error, Broker::B, BrokerRoute::Activation))
    })?;
    send_broker_b(&status, reply);
    Ok(())
}

/// Calls again where our own pace stopped the call, which has then not been made. Blocks between,
/// for at most [`PACE_WAIT_MS_MAX`] in all.
fn in_turn<T>(mut exchange: impl FnMut() -> Result<T, BrokerError>) -> Result<T, BrokerError> {
    let mut left_ms = PACE_WAIT_MS_MAX;
    loop {
        let result = exchange();
        let Err(BrokerError { kind: BrokerErrorKind::NotReady(Readiness::Paced(wait)), .. }) =
            &result
        else {
            return result;
        };
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn paced(ms: u64) -> BrokerError {
        BrokerError::not_ready("test", Readiness::Paced(Duration::from_millis(ms)))
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
}
