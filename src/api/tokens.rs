//! `GET /brokera/status`, `GET /brokerb/status`: the server's shared broker tokens, as of this
//! instant.

use serde::Serialize;

use super::{Call, State};
use crate::base::ist;
use crate::brokers::token::TokenStatus;
use crate::http::reply::JSON;
use crate::http::{Problem, Reply};

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
pub fn broker_a_status(state: &State, _: &Call<'_>, reply: &mut Reply<'_>) -> Result<(), Problem> {
    send_broker_a(&state.broker_a_token.status(state.clock.now()), reply);
    Ok(())
}

/// The same of broker B's session, which has no type.
pub fn broker_b_status(state: &State, _: &Call<'_>, reply: &mut Reply<'_>) -> Result<(), Problem> {
    send_broker_b(&state.broker_b.status(), reply);
    Ok(())
}

pub(super) fn send_broker_a(status: &TokenStatus, reply: &mut Reply<'_>) {
    send(status, Some(status.token_type), reply);
}

pub(super) fn send_broker_b(status: &TokenStatus, reply: &mut Reply<'_>) {
    send(status, None, reply);
}

fn send(status: &TokenStatus, token_type: Option<&'static str>, reply: &mut Reply<'_>) {
    let answer = Status {
        initialized: status.initialized,
        valid: status.valid,
        token_type,
        set_at: status.set_at.map(ist::iso),
        expires_at: status.expires_at.map(ist::iso),
    };
    // Text and booleans always serialise; a Vec takes them.
    let _ = sonic_rs::to_writer(reply.body(), &answer);
    reply.send(200, JSON, &[("Cache-Control", "no-store")]);
}
