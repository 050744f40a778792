//! `GET /brokera/status`: the server's shared broker token, as of this instant.

use serde::Serialize;

use super::{Call, State};
use crate::base::ist;
use crate::http::reply::JSON;
use crate::http::{Problem, Reply};

#[derive(Serialize)]
struct Status {
    initialized: bool,
    valid: bool,
    token_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

/// Computed from the token's own state, so that a refusal or the 06:00 rule shows at once.
pub fn broker_a_status(state: &State, _: &Call<'_>, reply: &mut Reply<'_>) -> Result<(), Problem> {
    let status = state.broker_a_token.status(state.clock.now());
    let answer = Status {
        initialized: status.initialized,
        valid: status.valid,
        token_type: status.token_type,
        set_at: status.set_at.map(ist::iso),
        expires_at: status.expires_at.map(ist::iso),
    };
    // Text and booleans always serialise; a Vec takes them.
    let _ = sonic_rs::to_writer(reply.body(), &answer);
    reply.send(200, JSON, &[("Cache-Control", "no-store")]);
    Ok(())
}
