//! `GET /brokera/status`, `GET /brokerb/status`: the server's shared broker tokens, as of this
//! instant.

use serde::Serialize;

use super::call::Call;
use super::state::State;
use crate::base::ist;
use crate::brokers::session::token::TokenStatus;
use crate::http::document::coding::etag;
use crate::http::message::response::JSON;
use crate::http::{Problem, Response};

const NO_STORE: (&str, &str) = ("Cache-Control", "no-store");

#[derive(Serialize)]
struct Status {
    initialized: bool,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

/// Computed from the token's own state, so that a refusal or the 06:00 rule shows at once.
pub fn broker_a_status(
    state: &State,
    call: &Call<'_>,
    reply: &mut Response<'_>,
) -> Result<(), Problem> {
    let status = state.broker_a_token.status(state.clock.now());
    show(&status, Some(status.token_type), call, reply)
}

/// The same of broker B's session, which has no type.
pub fn broker_b_status(
    state: &State,
    call: &Call<'_>,
    reply: &mut Response<'_>,
) -> Result<(), Problem> {
    show(&state.broker_b.status(), None, call, reply)
}

pub(crate) fn send_broker_a(status: &TokenStatus, reply: &mut Response<'_>) {
    send(status, Some(status.token_type), reply);
}

pub(crate) fn send_broker_b(status: &TokenStatus, reply: &mut Response<'_>) {
    send(status, None, reply);
}

fn show(
    status: &TokenStatus,
    token_type: Option<&'static str>,
    call: &Call<'_>,
    reply: &mut Response<'_>,
) -> Result<(), Problem> {
    write(status, token_type, reply.body());
    let etag = etag(reply.written());
    let verdict = call.request.preconditions().judge(Some(etag.as_bytes()))?;
    reply.send(verdict.status(), JSON, &[("ETag", &etag), NO_STORE]);
    Ok(())
}

fn send(status: &TokenStatus, token_type: Option<&'static str>, reply: &mut Response<'_>) {
    write(status, token_type, reply.body());
    reply.send(200, JSON, &[NO_STORE]);
}

fn write(status: &TokenStatus, token_type: Option<&'static str>, out: &mut Vec<u8>) {
    let answer = Status {
        initialized: status.initialized,
        valid: status.valid,
        token_type,
        set_at: status.set_at.map(ist::iso),
        expires_at: status.expires_at.map(ist::iso),
    };
    // Text and booleans always serialise; a Vec takes them.
    let _ = sonic_rs::to_writer(out, &answer);
}
