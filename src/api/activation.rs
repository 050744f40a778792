//! `POST /brokera/activate`, `POST /brokerb/activate`: the administrator exchanges the code of a
//! login for the server's shared token.
//!
//! The exchange runs on the lane for users' calls to that broker, which is separate from the
//! feed's, and the handler parks. The code and the secret are in wiped memory for the length of the
//! call. The feed uses the new token from its next call on, because both read the same token slot.

use std::sync::Arc;

use crate::api::call::{Call, Handled};
use crate::api::replies::{reply_with, show};
use crate::api::state::{BrokerAccess, State};
use crate::base::Broker;
use crate::brokers::session::token::TokenStatus;
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness};
use crate::http::Response;
use crate::rt::moving::Parker;
use crate::views::account::{BrokerAStatus, SessionStatus};
use crate::views::values::Instant;

/// Longest wait for the service's own rate limit towards the broker, a tenth of a second a call,
/// since another call may just have been made. Less than a job may wait in the lane's queue.
const PACE_WAIT_MS_MAX: u64 = 1_000;

/// `POST /brokera/activate` with `request_token`, `POST /brokerb/activate` with `api_session`.
pub(crate) fn activate(
    broker: Broker,
    state: &State,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Handled {
    let BrokerAccess { client, lane, .. } = &state.brokers[broker];
    let client = Arc::clone(client);
    let exchange = move |code: &str| with_rate_limit_retries(|| client.activate(code));
    let status = state
        .administration
        .activate(call.request, broker, lane, exchange)?;
    match TokenView::of(&status) {
        TokenView::Typed(view) => reply_with(200, &view, response),
        TokenView::Plain(view) => reply_with(200, &view, response),
    }
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
        let Err(BrokerError {
            kind: BrokerErrorKind::NotReady(Readiness::Paced(wait)),
            ..
        }) = &result
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

/// `GET /brokera/status`, `GET /brokerb/status`. Computed from the current state of the token, so
/// that a refusal by the broker, or its expiry, shows at once.
pub(crate) fn status(
    broker: Broker,
    state: &State,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Handled {
    match TokenView::of(
        &state.brokers[broker]
            .client
            .token()
            .status(state.clock.now()),
    ) {
        TokenView::Typed(view) => show(&view, call, response),
        TokenView::Plain(view) => show(&view, call, response),
    }
}

/// The document of a token, with or without a type.
enum TokenView {
    Typed(BrokerAStatus),
    Plain(SessionStatus),
}

impl TokenView {
    fn of(status: &TokenStatus) -> Self {
        let TokenStatus {
            initialized,
            valid,
            token_type,
            ..
        } = *status;
        let set_at = status.set_at.map(Instant);
        let expires_at = status.expires_at.map(Instant);
        match token_type {
            Some(token_type) => Self::Typed(BrokerAStatus {
                initialized,
                valid,
                token_type,
                set_at,
                expires_at,
            }),
            None => Self::Plain(SessionStatus {
                initialized,
                valid,
                set_at,
                expires_at,
            }),
        }
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
