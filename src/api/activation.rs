//! `POST /brokera/activate`, `POST /brokerb/activate`: the administrator exchanges the code of a
//! login for the server's shared token.
//!
//! The exchange runs on the lane for users' calls to that broker, which is separate from the
//! feed's, and the handler parks. The code and the secret are in wiped memory for the length of the
//! call. The feed uses the new token from its next call on, because both read the same token slot.

use std::sync::Arc;

use arc_swap::ArcSwap;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::api::body::Fields;
use crate::api::broker_errors::{BrokerRoute, broker_problem, broker_timed_out};
use crate::api::errors::too_early;
use crate::api::portfolio::on;
use crate::api::portfolio_errors::activation_busy;
use crate::api::state::{Call, Handled, State, reply_with, show};
use crate::auth::throttle::{Key, Throttle};
use crate::base::{Broker, Clock};
use crate::brokers::session::token::TokenStatus;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness, code_names};
use crate::http::{Problem, Request, Response};
use crate::rt::Lane;
use crate::rt::moving::Parker;
use crate::views::account::{BrokerAStatus, BrokerBStatus};
use crate::views::values::Instant;

/// Wrong secrets that an address may send at once, and again each minute. An administrator sends
/// none.
const ATTEMPTS_PER_MINUTE: u32 = 5;

/// The limit of a secret in the settings.
const SECRET_CHARS_MAX: usize = 4_096;
/// Real codes have some tens of characters.
const CODE_CHARS_MAX: usize = 256;

/// Time in the lane's queue on top of the longest exchange.
const QUEUE_MS: u64 = 2_000;

/// Longest wait for the service's own rate limit towards the broker, a tenth of a second a call,
/// since another call may just have been made. Less than [`QUEUE_MS`].
const PACE_WAIT_MS_MAX: u64 = 1_000;

/// The administrator's secret for each broker, if one is set.
pub(crate) struct AdminSecrets {
    pub broker_a: Option<SecretString>,
    pub broker_b: Option<SecretString>,
}

/// Recognises the administrator and runs activations.
pub(crate) struct Administration {
    pub(crate) secrets: ArcSwap<AdminSecrets>,
    attempts: Throttle,
    deadline_ms: u64,
}

impl Administration {
    /// The administrator is recognised by `secrets`. An activation may take as long as a call to a
    /// broker.
    pub(crate) fn new(secrets: AdminSecrets, upstream: &UpstreamSettings, clock: Clock) -> Self {
        Self {
            secrets: ArcSwap::from_pointee(secrets),
            attempts: Throttle::new(ATTEMPTS_PER_MINUTE, clock),
            deadline_ms: upstream.total_timeout_ms.max(upstream.sync_timeout_ms) + QUEUE_MS,
        }
    }

    /// Fails unless the request comes from the administrator: it has the secret or, if none is set,
    /// comes from a program on this machine.
    fn admit(
        &self,
        request: &Request<'_>,
        fields: &mut Fields<'_>,
        secret: Option<&SecretString>,
    ) -> Result<(), Problem> {
        let Some(secret) = secret else {
            let detail = "Without an administrator's secret in the settings only a program on the \
                          server's own machine may do this.";
            let refused = || Problem::new(403, "admin_local_only", detail);
            return request.is_direct_local().then_some(()).ok_or_else(refused);
        };
        let address = Key::Address(request.client_address());
        self.attempts.admit(&[address]).map_err(|throttled| {
            let detail = "Too many attempts from this address.";
            too_early("too_many_attempts", detail, throttled)
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

    /// Runs `exchange` on the lane of `broker`, with the one-time code of the administrator's
    /// request, and parks until it has ended.
    fn activate(
        &self,
        call: &Call<'_>,
        broker: Broker,
        secret: Option<&SecretString>,
        lane: &Lane,
        exchange: impl FnOnce(&str) -> Result<TokenStatus, BrokerError> + Send + 'static,
    ) -> Result<TokenStatus, Problem> {
        let mut fields = Fields::of(call.request)?;
        self.admit(call.request, &mut fields, secret)?;
        let [_, name] = code_names(broker);
        let code = fields.secret(name, CODE_CHARS_MAX);
        fields.done()?;
        let late = || broker_timed_out(broker, BrokerRoute::Activation);
        let exchange = move || Ok(exchange(code.expose_secret()));
        let activated = on(lane, self.deadline_ms, activation_busy, late, exchange)?;
        activated.map_err(|error| broker_problem(error, broker, BrokerRoute::Activation))
    }
}

/// `POST /brokera/activate` with `request_token`.
pub(crate) fn broker_a(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let administration = &state.administration;
    let broker = Arc::clone(&state.broker_a);
    let secrets = administration.secrets.load_full();
    let secret = secrets.broker_a.as_ref();
    let lane = &state.broker_a_lane;
    let status = administration.activate(call, Broker::A, secret, lane, move |code| {
        with_rate_limit_retries(|| broker.activate(code))
    })?;
    reply_with(200, &of_broker_a(&status), reply);
    Ok(())
}

/// `POST /brokerb/activate` with `api_session`.
pub(crate) fn broker_b(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let administration = &state.administration;
    let broker = Arc::clone(&state.broker_b);
    let secrets = administration.secrets.load_full();
    let secret = secrets.broker_b.as_ref();
    let lane = &state.broker_b_lane;
    let status = administration
        .activate(call, Broker::B, secret, lane, move |code| broker.activate(code))?;
    reply_with(200, &of_broker_b(&status), reply);
    Ok(())
}

/// Calls `exchange`, again if the service's own rate limit refused it, in which case no call was
/// made. Blocks between calls, for at most [`PACE_WAIT_MS_MAX`] in all.
fn with_rate_limit_retries<T>(
    mut exchange: impl FnMut() -> Result<T, BrokerError>,
) -> Result<T, BrokerError> {
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

/// Compares digests in constant time, so that the time taken shows neither the secret nor its
/// length.
fn same(given: &str, secret: &str) -> bool {
    let given = Sha256::digest(given);
    let secret = Sha256::digest(secret);
    given.as_slice().ct_eq(secret.as_slice()).into()
}

// ---- Broker status
//
// `GET /brokera/status`, `GET /brokerb/status`: the server's shared broker tokens, as of this
// instant.

/// `GET /brokera/status`. Computed from the current state of the token, so that a refusal by the
/// broker, or its expiry at 06:00, shows at once.
pub(crate) fn broker_a_status(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    show(&of_broker_a(&state.broker_a_token.status(state.clock.now())), call, reply)
}

/// `GET /brokerb/status`, of broker B's session, which has no token type.
pub(crate) fn broker_b_status(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    show(&of_broker_b(&state.broker_b.status()), call, reply)
}

fn of_broker_a(status: &TokenStatus) -> BrokerAStatus {
    BrokerAStatus {
        initialized: status.initialized,
        valid: status.valid,
        token_type: status.token_type,
        set_at: status.set_at.map(Instant),
        expires_at: status.expires_at.map(Instant),
    }
}

fn of_broker_b(status: &TokenStatus) -> BrokerBStatus {
    BrokerBStatus {
        initialized: status.initialized,
        valid: status.valid,
        set_at: status.set_at.map(Instant),
        expires_at: status.expires_at.map(Instant),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn paced(ms: u64) -> BrokerError {
        BrokerError::not_ready("test", Readiness::Paced(Duration::from_millis(ms)))
    }

    #[test]
    fn a_call_over_our_own_rate_limit_is_retried_for_a_bounded_time() {
        let mut calls = 0;
        let turn = with_rate_limit_retries(|| {
            calls += 1;
            if calls < 3 { Err(paced(1)) } else { Ok(calls) }
        });
        assert_eq!(turn.ok(), Some(3));
        let mut calls = 0;
        let refused = with_rate_limit_retries::<()>(|| {
            calls += 1;
            Err(paced(PACE_WAIT_MS_MAX + 1))
        });
        assert!(refused.is_err() && calls == 1);
        // The number of attempts is limited too.
        let mut calls = 0;
        assert!(
            with_rate_limit_retries::<()>(|| {
                calls += 1;
                Err(paced(PACE_WAIT_MS_MAX / 4))
            })
            .is_err()
        );
        assert_eq!(calls, 5);
    }
}
