//! `GET /brokera/status`, `GET /brokerb/status`: the server's shared broker tokens, as of this
//! instant.

use serde::Serialize;

use super::call::Call;
use super::report::reply_with;
use super::state::State;
use crate::brokers::session::token::TokenStatus;
use crate::http::document::coding::etag;
use crate::http::message::response::JSON;
use crate::http::{Problem, Response};
use crate::views::broker_status::{BrokerAStatus, BrokerBStatus};
use crate::views::json;
use crate::views::values::Instant;

const NO_STORE: (&str, &str) = ("Cache-Control", "no-store");

/// `GET /brokera/status`. Computed from the current state of the token, so that a refusal by the
/// broker, or its expiry at 06:00, shows at once.
pub fn broker_a_status(
    state: &State,
    call: &Call<'_>,
    reply: &mut Response<'_>,
) -> Result<(), Problem> {
    show(&of_broker_a(&state.broker_a_token.status(state.clock.now())), call, reply)
}

/// `GET /brokerb/status`, of broker B's session, which has no token type.
pub fn broker_b_status(
    state: &State,
    call: &Call<'_>,
    reply: &mut Response<'_>,
) -> Result<(), Problem> {
    show(&of_broker_b(&state.broker_b.status()), call, reply)
}

pub(crate) fn send_broker_a(status: &TokenStatus, reply: &mut Response<'_>) {
    reply_with(200, &of_broker_a(status), reply);
}

pub(crate) fn send_broker_b(status: &TokenStatus, reply: &mut Response<'_>) {
    reply_with(200, &of_broker_b(status), reply);
}

/// Sends `view` as of this instant, with its `ETag`.
pub(super) fn show(
    view: &impl Serialize,
    call: &Call<'_>,
    reply: &mut Response<'_>,
) -> Result<(), Problem> {
    json::write(reply.body(), view);
    let etag = etag(reply.written());
    let verdict = call.request.preconditions().judge(Some(etag.as_bytes()))?;
    reply.send(verdict.status(), JSON, &[("ETag", &etag), NO_STORE]);
    Ok(())
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
