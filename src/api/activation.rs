//! `POST /brokera/activate`, `POST /brokerb/activate`: the administrator exchanges the code of a
//! login for the server's shared token.
//!
//! The exchange runs on the lane for users' calls to that broker, which is separate from the
//! feed's, and the handler parks. The code and the secret are in wiped memory for the length of the
//! call. The feed uses the new token from its next call on, because both read the same token slot.

use std::sync::Arc;

use crate::api::call::{Call, Handled};
use crate::api::replies::{reply_with, show};
use crate::api::state::State;
use crate::base::Broker;
use crate::brokers::session::token::TokenStatus;
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness};
use crate::http::Response;
use crate::rt::moving::Parker;
use crate::views::account::{BrokerAStatus, BrokerBStatus};
use crate::views::values::Instant;

/// Longest wait for the service's own rate limit towards the broker, a tenth of a second a call,
/// since another call may just have been made. Less than a job may wait in the lane's queue.
const PACE_WAIT_MS_MAX: u64 = 1_000;

/// `POST /brokera/activate` with `request_token`.
pub(crate) fn broker_a(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let administration = &state.administration;
    let broker = Arc::clone(&state.broker_a);
    let secrets = administration.secrets.load_full();
    let secret = secrets.broker_a.as_ref();
    let lane = &state.broker_a_lane;
    let status = administration.activate(call.request, Broker::A, secret, lane, move |code| {
        with_rate_limit_retries(|| broker.activate(code))
    })?;
    reply_with(200, &of_broker_a(&status), response);
    Ok(())
}

/// `POST /brokerb/activate` with `api_session`.
pub(crate) fn broker_b(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let administration = &state.administration;
    let broker = Arc::clone(&state.broker_b);
    let secrets = administration.secrets.load_full();
    let secret = secrets.broker_b.as_ref();
    let lane = &state.broker_b_lane;
    let status = administration
        .activate(call.request, Broker::B, secret, lane, move |code| broker.activate(code))?;
    reply_with(200, &of_broker_b(&status), response);
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

// ---- Broker status
//
// `GET /brokera/status`, `GET /brokerb/status`: the server's shared broker tokens, as of this
// instant.

/// `GET /brokera/status`. Computed from the current state of the token, so that a refusal by the
/// broker, or its expiry at 06:00, shows at once.
pub(crate) fn broker_a_status(
    state: &State,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Handled {
    show(&of_broker_a(&state.broker_a_token.status(state.clock.now())), call, response)
}

/// `GET /brokerb/status`, of broker B's session, which has no token type.
pub(crate) fn broker_b_status(
    state: &State,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Handled {
    show(&of_broker_b(&state.broker_b.status()), call, response)
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
